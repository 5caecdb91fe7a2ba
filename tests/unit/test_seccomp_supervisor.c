/* SPDX-License-Identifier: MIT */
/* The supervisor's filter in a PID namespace, loaded into children that do what a
 * supervisor does, and then try what it never does. */
#include "tests/unit/unit.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/statvfs.h>

#include "common/io.h"
#include "common/log.h"
#include "common/sanitizer.h"
#include "executor/seccomp/supervisor_filter.h"
#include "executor/supervisor/collect.h"
#include "executor/supervisor/upload.h"
#include "tests/unit/attempts.h"
#include "tests/unit/scratch.h"

static struct seccomp_filter filter;

static int build_filter(void **state) {
    (void)state;
    return supervisor_filter_build(&filter, true, NULL);
}

static int clear_filter(void **state) {
    (void)state;
    seccomp_filter_clear(&filter);
    return 0;
}

/* ---- what it does ---- */

#define MANY                                                                             \
    300 /* files: their list outgrows what qsort(3) sorts without asking for memory */

static void make_files(int home) {
    char name[32];

    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "file-%d", i);
        put_file(home, name, "content");
    }
    put_folder(home, "folder");
    put_file(home, "folder/deep", "content");
}

static int count_ends(void *context, uint8_t type, struct slice first,
                      struct slice second) {
    (void)first;
    (void)second;
    *(int *)context += type == SESSION_FILE_END;
    return 0;
}

static int handle_files(void *context) {
    const int home = *(int *)context;
    struct home_snapshot before;
    struct upload upload;
    struct statvfs room;
    uint32_t unnamed;
    int ends = 0;
    const struct collection collection = {
        .home = home,
        .before = &before,
        .max_files = 2 * MANY,
        .max_file_size = 1 << 20,
        .max_total = 1 << 24,
        .send = count_ends,
        .context = &ends,
    };

    load_filter(&filter);
    REQUIRE(fstatvfs(home, &room) == 0);
    REQUIRE(home_snapshot_take(&before, home, NULL) == 0);
    upload_init(&upload, home);
    upload_open(&upload, SLICE("folder/new/deeper"));
    upload_write(&upload, SLICE("text"));
    upload_open(&upload, SLICE("file-1"));
    upload_write(&upload, SLICE("other text"));
    REQUIRE(upload_commit(&upload) == 0);
    upload_clear(&upload);
    REQUIRE(collect_files(&collection, &unnamed, NULL) == 0);
    REQUIRE(ends == 2);
    home_snapshot_clear(&before);
    before = (struct home_snapshot){0};
    REQUIRE(collect_files(&collection, &unnamed, NULL) == 0);
    REQUIRE(ends == 2 + MANY + 2);
    return 0;
}

static void files_go_in_and_out(void **state) {
    struct scratch home = scratch_new();

    (void)state;
    make_files(home.fd);
    in_child(handle_files, &home.fd);
    scratch_remove(&home);
}

static int handle_channels(void *context) {
    int control[2], channel[2], pipe_ends[2], got[1], there;
    char byte;
    size_t count;

    (void)context;
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0);
    load_filter(&filter);
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) == 0);
    REQUIRE(pipe2(pipe_ends, O_CLOEXEC) == 0);
    REQUIRE(io_send_message(control[0], "x", 1, pipe_ends, 1, NULL) == 0);
    REQUIRE(io_receive_message(control[1], &byte, 1, got, 1, &count, NULL) == 1);
    REQUIRE(count == 1 && io_set_nonblocking(got[0], NULL) == 0);
    REQUIRE(write(pipe_ends[1], "abc", 3) == 3);
    REQUIRE(io_wait(got[0], false, viv_after_ms(60000), NULL) == 0);
    REQUIRE(ioctl(got[0], FIONREAD, &there) == 0 && there == 3);
    REQUIRE(read(got[0], &byte, 1) == 1);
    struct iovec vector = {&byte, 1};
    REQUIRE(io_write_full(channel[0], &vector, 1, viv_after_ms(60000), NULL) == 0);
    REQUIRE(send(channel[0], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1);
    viv_log(VIV_LOG_ERROR, "as_a_supervisor_would", "number=%d", 1);
    return 0;
}

static void channels_are_served(void **state) {
    (void)state;
    in_child(handle_channels, NULL);
}

/* The worker is there already: it comes from the zygote. */
static int handle_worker(void *context) {
    siginfo_t info;
    int status;

    (void)context;
    /* A job in the background of a shell has it ignored, and its children, too. */
    signal(SIGINT, SIG_DFL);
    pid_t worker = fork();
    REQUIRE(worker >= 0);
    if (worker == 0)
        for (;;)
            pause();
    load_filter(&filter);
    REQUIRE(waitid(P_PID, (id_t)worker, &info, WEXITED | WNOHANG | WNOWAIT) == 0);
    int pidfd = (int)syscall(SYS_pidfd_open, worker, 0);
    REQUIRE(pidfd >= 0);
    REQUIRE(syscall(SYS_pidfd_send_signal, pidfd, SIGINT, NULL, 0) == 0);
    REQUIRE(io_wait(pidfd, false, viv_after_ms(60000), NULL) == 0);
    REQUIRE(kill(worker, SIGKILL) == 0);
    REQUIRE(waitpid(worker, &status, 0) == worker);
    REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT);
    return 0;
}

static void the_worker_is_ended(void **state) {
    (void)state;
    in_child(handle_worker, NULL);
}

/* More than the heap has, in both ways of malloc(3), and back. */
static int use_memory(void *context) {
    char *volatile blocks[64];
    uint64_t random;

    (void)context;
    load_filter(&filter);
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        blocks[i] = malloc(i % 2 ? 100 * 1024 : 4 << 20);
        REQUIRE(blocks[i]);
        blocks[i][1000] = 1;
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++) {
        blocks[i] = realloc(blocks[i], 8 << 20);
        REQUIRE(blocks[i] && blocks[i][1000] == 1);
    }
    for (size_t i = 0; i < COUNT_OF(blocks); i++)
        free(blocks[i]);
    REQUIRE(getrandom(&random, sizeof random, 0) == sizeof random);
    return 0;
}

static void memory_is_taken_and_given_back(void **state) {
    (void)state;
    in_child(use_memory, NULL);
}

/* A fault that glibc finds: it says so, and the process ends by SIGABRT, not later. */
static int free_twice(void *context) {
    char *volatile block = malloc(100 * 1024);
    char *volatile same = block;

    (void)context;
    REQUIRE(block);
    load_filter(&filter);
    free(block);
    free(same);
    return 0;
}

static int abort_behind_it(void *context) {
    (void)context;
    load_filter(&filter);
    abort();
}

static void it_can_abort(void **state) {
    int (*const bodies[])(void *) = {abort_behind_it, free_twice};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        int status = child_status(bodies[i], NULL);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
    }
}

/* ---- what it never does ---- */

static char buffer[256];

#define TO   ((uintptr_t)buffer)
#define PATH ((uintptr_t) "/")
#define HERE ((uint64_t)AT_FDCWD)
#define NONE ((uint64_t)-1)

static int try_processes_and_rights(void *context) {
    const struct attempt attempts[] = {
        CALL(execve, EPERM, PATH, 0, 0),
        CALL(execveat, EPERM, HERE, PATH, 0, 0, 0),
        CALL(clone, EPERM, SIGCHLD, 0, 0, 0, 0),
        CALL(clone, EPERM, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0),
        CALL(clone3, EPERM, TO, 88),
        CALL(unshare, EPERM, 0),
        CALL(setns, EPERM, NONE, 0),
        CALL(ptrace, EPERM, 0, 0, 0, 0),
        CALL(process_vm_readv, EPERM, 1, TO, 1, TO, 1, 0),
        CALL(pidfd_getfd, EPERM, NONE, 0, 0),
        CALL(tkill, EPERM, 0x7fffffff, 0),
        CALL(rt_sigqueueinfo, EPERM, 0x7fffffff, 0, TO),
        CALL(setuid, EPERM, 0),
        CALL(setresuid, EPERM, 0, 0, 0),
        CALL(setgroups, EPERM, 0, 0),
        CALL(capset, EPERM, TO, TO),
        CALL(prctl, EPERM, PR_SET_DUMPABLE, 1),
        CALL(seccomp, EPERM, 0, 0, 0),
        CALL(prlimit64, EPERM, 0, 0, 0, TO),
        CALL(mount, EPERM, PATH, PATH, PATH, 0, 0),
        CALL(umount2, EPERM, PATH, 0),
        CALL(chroot, EPERM, PATH),
        CALL(pivot_root, EPERM, PATH, PATH),
        CALL(open_tree, EPERM, HERE, PATH, 0),
        CALL(bpf, EPERM, 0, TO, 1),
        CALL(io_uring_setup, EPERM, 1, TO),
        CALL(userfaultfd, EPERM, 0),
        CALL(keyctl, EPERM, 0, 0),
        CALL(memfd_create, EPERM, PATH, 0),
    };

    (void)context;
    load_filter(&filter);
    return try_refused(&filter, attempts, COUNT_OF(attempts));
}

static int try_sockets_and_files(void *context) {
    const struct attempt attempts[] = {
        CALL(socket, EPERM, AF_UNIX, SOCK_STREAM, 0),
        CALL(connect, EPERM, NONE, TO, 16),
        CALL(bind, EPERM, NONE, TO, 16),
        CALL(accept4, EPERM, NONE, 0, 0, 0),
        CALL(setsockopt, EPERM, NONE, 0, 0, TO, 4),
        CALL(sendmmsg, EPERM, NONE, TO, 1, 0),
        CALL(sendto, EPERM, NONE, TO, 1, 0, TO, 16),
        CALL(socketpair, EPERM, AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0, TO),
        CALL(socketpair, EPERM, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, TO),
        CALL(socketpair, EPERM, AF_UNIX, SOCK_STREAM, 0, TO),
        CALL(socketpair, EPERM, HIGH | AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, TO),
        CALL(linkat, EPERM, HERE, PATH, HERE, PATH, 0),
        CALL(symlinkat, EPERM, PATH, HERE, PATH),
        CALL(mknodat, EPERM, HERE, PATH, 0, 0),
        CALL(fchmod, EPERM, NONE, 0),
        CALL(fchmodat, EPERM, HERE, PATH, 0),
        CALL(fchownat, EPERM, HERE, PATH, 0, 0, 0),
        CALL(chdir, EPERM, PATH),
        CALL(truncate, EPERM, PATH, 0),
        CALL(sendfile, EPERM, NONE, NONE, 0, 1),
        CALL(splice, EPERM, NONE, 0, NONE, 0, 1, 0),
        CALL(fcntl, EPERM, NONE, F_DUPFD, 0),
        CALL(fcntl, EPERM, NONE, F_SETOWN, 1),
        CALL(fcntl, EPERM, NONE, HIGH | F_GETFL, 0),
        CALL(ioctl, EPERM, NONE, TIOCSTI, TO),
        CALL(ioctl, EPERM, NONE, HIGH | FIONREAD, TO),
    };

    (void)context;
    load_filter(&filter);
    return try_refused(&filter, attempts, COUNT_OF(attempts));
}

static int try_memory_and_signals(void *context) {
    const uint64_t nobody = 0x7fffffff;
    const uint64_t both = PROT_READ | PROT_WRITE, own = MAP_PRIVATE | MAP_ANONYMOUS;
    const struct attempt refused[] = {
        CALL(mmap, EPERM, 0, 4096, both | PROT_EXEC, own, NONE, 0),
        CALL(mmap, EPERM, 0, 4096, PROT_EXEC, own, NONE, 0),
        CALL(mmap, EPERM, 0, 4096, HIGH | both, own, NONE, 0),
        CALL(mmap, EPERM, 0, 4096, PROT_READ, MAP_PRIVATE, 0, 0),
        CALL(mmap, EPERM, 0, 4096, both, MAP_SHARED | MAP_ANONYMOUS, NONE, 0),
        CALL(mmap, EPERM, 0, 4096, both, own | MAP_FIXED, NONE, 0),
        CALL(mmap, EPERM, 0, 4096, both, own | MAP_LOCKED, NONE, 0),
        CALL(mprotect, EPERM, TO, 1, PROT_READ),
        CALL(mprotect, EPERM, TO, 1, both | PROT_EXEC),
        CALL(madvise, EPERM, TO, 1, 0),
        CALL(kill, EPERM, nobody, 0),
        CALL(kill, EPERM, nobody, SIGTERM),
        CALL(kill, EPERM, nobody, SIGINT),
        CALL(kill, EPERM, nobody, SIGSTOP),
        CALL(kill, EPERM, nobody, HIGH | SIGKILL),
        CALL(tgkill, EPERM, nobody, nobody, SIGKILL),
        CALL(pidfd_send_signal, EPERM, NONE, SIGKILL, 0, 0),
        CALL(pidfd_send_signal, EPERM, NONE, SIGINT, TO, 0),
        CALL(pidfd_send_signal, EPERM, NONE, SIGCONT, TO, 0),
        CALL(pidfd_send_signal, EPERM, NONE, HIGH | SIGCONT, 0, 0),
        CALL(pidfd_send_signal, EPERM, NONE, SIGSTOP, 0, 0),
        CALL(setpgid, EPERM, 0, 0),
    };
    const struct attempt allowed[] = {
        CALL(kill, ESRCH, nobody, SIGKILL),
        CALL(pidfd_send_signal, EBADF, NONE, SIGINT, 0, 0),
        CALL(pidfd_send_signal, EBADF, NONE, SIGCONT, 0, 0),
        CALL(tgkill, ESRCH, nobody, nobody, SIGABRT),
        CALL(mmap, EINVAL, 0, 0, both, own | MAP_STACK | MAP_NORESERVE, NONE, 0),
        CALL(mmap, EINVAL, 0, 0, PROT_NONE, own, NONE, 0),
    };

    (void)context;
    load_filter(&filter);
    return try_refused(&filter, refused, COUNT_OF(refused)) +
           try_all(allowed, COUNT_OF(allowed));
}

static void everything_else_is_refused(void **state) {
    (void)state;
    in_child(try_processes_and_rights, NULL);
    in_child(try_sockets_and_files, NULL);
    in_child(try_memory_and_signals, NULL);
}

static int load_as_supervisor(void *context) {
    (void)context;
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(supervisor_filter_load(&filter, NULL) == 0);
    REQUIRE(syscall(SYS_getppid) == -1 && errno == EPERM);
    return 0;
}

static void a_supervisor_loads_it(void **state) {
    (void)state;
    in_child(load_as_supervisor, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_go_in_and_out),
        cmocka_unit_test(channels_are_served),
        cmocka_unit_test(the_worker_is_ended),
        cmocka_unit_test(memory_is_taken_and_given_back),
        cmocka_unit_test(it_can_abort),
        cmocka_unit_test(everything_else_is_refused),
        cmocka_unit_test(a_supervisor_loads_it),
    };

    if (BUILT_WITH_ADDRESS_SANITIZER) {
        print_message("skipped: AddressSanitizer needs other calls\n");
        return CHILD_CANNOT; /* what make check takes for a test left out, too */
    }
    return cmocka_run_group_tests(tests, build_filter, clear_filter);
}
