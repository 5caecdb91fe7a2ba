/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <signal.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "executor/launcher/host_memory.h"
#include "tests/unit/child.h"
#include "tests/unit/scratch.h"

#define PAGE ((uint64_t)sysconf(_SC_PAGESIZE))

static int real_proc(void) {
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_true(proc >= 0);
    return proc;
}

static void reads_what_the_host_says(void **state) {
    CLEANUP(close_fd) int proc = real_proc();
    uint64_t available = host_memory_available(proc);

    (void)state;
    assert_true(available > 0);
    assert_true(available <= (uint64_t)sysconf(_SC_PHYS_PAGES) * PAGE);
}

static void finds_the_line_among_others(void **state) {
    struct scratch proc = scratch_new();

    (void)state;
    put_file(proc.fd, "meminfo",
             "MemTotal:       24585716 kB\nMemFree:         1000000 kB\n"
             "MemAvailable:   23169180 kB\nBuffers:           10000 kB\n");
    assert_int_equal(host_memory_available(proc.fd), UINT64_C(23169180) * 1024);
    scratch_remove(&proc);
}

/* No limit is kept where there is nothing to keep it by. */
static void a_host_that_does_not_tell_has_enough(void **state) {
    struct scratch proc = scratch_new();

    (void)state;
    assert_true(host_memory_available(proc.fd) == UINT64_MAX);
    put_file(proc.fd, "meminfo", "");
    assert_true(host_memory_available(proc.fd) == UINT64_MAX);
    put_file(proc.fd, "meminfo", "MemTotal: 5 kB\n");
    assert_true(host_memory_available(proc.fd) == UINT64_MAX);
    assert_true(host_memory_available(-1) == UINT64_MAX);
    scratch_remove(&proc);
}

static void sums_the_children(void **state) {
    struct scratch proc = scratch_new();

    (void)state;
    put_folder(proc.fd, "12");
    put_folder(proc.fd, "12/task");
    put_folder(proc.fd, "12/task/12");
    put_folder(proc.fd, "13");
    put_folder(proc.fd, "15");
    put_file(proc.fd, "12/statm", "1 1 1 1 0 1 0\n");
    put_file(proc.fd, "13/statm", "1000 200 5 1 0 50 0\n");
    put_file(proc.fd, "15/statm", "9000 30 5 1 0 50 0\n");
    assert_int_equal(host_memory_of_children(proc.fd, 12), 0);
    put_file(proc.fd, "12/task/12/children", "");
    assert_int_equal(host_memory_of_children(proc.fd, 12), 0);
    /* 14 ended in between. */
    put_file(proc.fd, "12/task/12/children", "13 14 15 ");
    assert_int_equal(host_memory_of_children(proc.fd, 12), 230 * PAGE);
    scratch_remove(&proc);
}

static void sees_a_child_of_this_process(void **state) {
    CLEANUP(close_fd) int proc = real_proc();
    const size_t size = (size_t)16 << 20;
    int ready[2];
    char byte;

    (void)state;
    if (faccessat(proc, "self/task", F_OK, 0) ||
        access("/proc/thread-self/children", R_OK))
        cannot("the kernel does not list children");
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        memset(memory, 1, size);
        REQUIRE(write(ready[1], "x", 1) == 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    uint64_t seen = host_memory_of_children(proc, getpid());
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ready[0]);
    close(ready[1]);
    assert_true(seen >= size);
    assert_int_equal(host_memory_of_children(proc, getpid()), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_the_host_says),
        cmocka_unit_test(finds_the_line_among_others),
        cmocka_unit_test(a_host_that_does_not_tell_has_enough),
        cmocka_unit_test(sums_the_children),
        cmocka_unit_test(sees_a_child_of_this_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
