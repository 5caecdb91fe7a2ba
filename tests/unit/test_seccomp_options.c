/* SPDX-License-Identifier: MIT */
/* What the tiers and the setting seccomp_refuse change in the workers' filter. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "executor/seccomp/preface.h"
#include "executor/seccomp/worker_filter.h"
#include "tests/unit/attempts.h"

#define HERE ((uint64_t)AT_FDCWD)
#define PATH ((uintptr_t) "/nowhere/at/all")

static void build(struct seccomp_filter *filter,
                  const struct worker_filter_options *options) {
    struct viv_error err;

    if (worker_filter_build(filter, options, &err))
        fail_msg("%s", err.message);
}

/* ---- whom signals reach ---- */

/* With signal 0, which is sent to nobody. */
static int try_signals(void *context) {
    struct seccomp_filter *filter = context;
    const uint64_t own = (uint64_t)getpid(), parent = (uint64_t)getppid();

    seccomp_filter_set_pid(filter, getpid());
    load_filter(filter);
    const struct attempt refused[] = {
        CALL(kill, EPERM, parent, 0),
        CALL(kill, EPERM, 1, 0),
        CALL(kill, EPERM, 0, 0),
        CALL(kill, EPERM, (uint64_t)-1, 0),
        CALL(kill, EPERM, -own, 0),
        CALL(kill, EPERM, HIGH | parent, 0),
        CALL(kill, EPERM, own + 1, 0),
        CALL(kill, EPERM, 0x7fffffff, 0),
        CALL(tgkill, EPERM, parent, parent, 0),
        CALL(tgkill, EPERM, parent, own, 0),
        CALL(tgkill, EPERM, (uint64_t)-1, own, 0),
        CALL(tkill, EPERM, own, 0),
        CALL(rt_sigqueueinfo, EPERM, own, 0, 0),
    };
    const struct attempt allowed[] = {
        CALL(kill, 0, own, 0),
        CALL(kill, 0, HIGH | own, 0), /* the same to the kernel */
        CALL(tgkill, 0, own, own, 0),
        CALL(tgkill, ESRCH, own, 0x7fffffff, 0),
    };
    int wrong = try_refused(filter, refused, COUNT_OF(refused)) +
                try_all(allowed, COUNT_OF(allowed));
    REQUIRE(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
    REQUIRE(raise(SIGUSR1) == 0 && pthread_kill(pthread_self(), SIGUSR1) == 0);
    return wrong;
}

static void a_worker_signals_itself_alone(void **state) {
    struct seccomp_filter filter;

    (void)state;
    build(&filter, &(struct worker_filter_options){.kill = KILL_SELF_ONLY});
    in_child(try_signals, &filter);
    seccomp_filter_clear(&filter);
}

static int abort_behind_it(void *context) {
    seccomp_filter_set_pid(context, getpid());
    load_filter(context);
    abort();
}

static void a_worker_can_abort(void **state) {
    struct seccomp_filter filter;

    (void)state;
    build(&filter, &(struct worker_filter_options){.kill = KILL_SELF_ONLY});
    int status = child_status(abort_behind_it, &filter);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    seccomp_filter_clear(&filter);
}

/* One that nobody has put an id into. */
static int try_without_pid(void *context) {
    const uint64_t own = (uint64_t)getpid();

    load_filter(context);
    const struct attempt refused[] = {
        CALL(kill, EPERM, own, 0),
        CALL(kill, EPERM, 0, 0),
        CALL(kill, EPERM, (uint64_t)-1, 0),
        CALL(tgkill, EPERM, own, own, 0),
    };
    return try_refused(context, refused, COUNT_OF(refused));
}

static void without_an_id_signals_reach_nobody(void **state) {
    struct seccomp_filter filter;

    (void)state;
    build(&filter, &(struct worker_filter_options){.kill = KILL_SELF_ONLY});
    in_child(try_without_pid, &filter);
    seccomp_filter_clear(&filter);
}

static void an_id_changes_one_instruction_of_one_kind_of_filter(void **state) {
    struct seccomp_filter one, other;

    (void)state;
    build(&one, &(struct worker_filter_options){.kill = KILL_IN_PID_NAMESPACE});
    build(&other, &(struct worker_filter_options){.kill = KILL_IN_PID_NAMESPACE});
    seccomp_filter_set_pid(&one, 4711);
    assert_memory_equal(one.instructions, other.instructions,
                        one.count * sizeof *one.instructions);
    seccomp_filter_clear(&one);
    seccomp_filter_clear(&other);
    build(&one, &(struct worker_filter_options){.kill = KILL_SELF_ONLY});
    build(&other, &(struct worker_filter_options){.kill = KILL_SELF_ONLY});
    assert_int_equal(one.instructions[one.own_pid].k, NO_PROCESS);
    seccomp_filter_set_pid(&one, 4711);
    assert_int_equal(one.instructions[one.own_pid].k, 4711);
    one.instructions[one.own_pid].k = NO_PROCESS;
    assert_memory_equal(one.instructions, other.instructions,
                        one.count * sizeof *one.instructions);
    seccomp_filter_clear(&one);
    seccomp_filter_clear(&other);
}

/* ---- changes of files by their path ---- */

static int try_paths(void *context) {
    struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_NOW}};
    int fd = memfd_create("file", 0);

    REQUIRE(fd >= 0);
    load_filter(context);
    const struct attempt refused[] = {
#ifdef SYS_chmod
        CALL(chmod, EPERM, PATH, 0600),
        CALL(utime, EPERM, PATH, 0),
        CALL(utimes, EPERM, PATH, 0),
        CALL(futimesat, EPERM, HERE, PATH, 0),
#endif
        CALL(fchmodat, EPERM, HERE, PATH, 0600),
        CALL(utimensat, EPERM, HERE, PATH, 0, 0),
        CALL(utimensat, EPERM, HERE, HIGH, 0, 0),
        CALL(truncate, EPERM, PATH, 0),
    };
    /* By a descriptor, which Landlock let it have. */
    REQUIRE(fchmod(fd, 0600) == 0);
    REQUIRE(futimens(fd, times) == 0);
    REQUIRE(ftruncate(fd, 10) == 0);
    return try_refused(context, refused, COUNT_OF(refused));
}

static int try_paths_by_default(void *context) {
    load_filter(context);
    const struct attempt attempts[] = {
#ifdef SYS_chmod
        CALL(chmod, ENOENT, PATH, 0600),
        CALL(utime, ENOENT, PATH, 0),
        CALL(utimes, ENOENT, PATH, 0),
        CALL(futimesat, ENOENT, HERE, PATH, 0),
#endif
        CALL(fchmodat, ENOENT, HERE, PATH, 0600),
        CALL(utimensat, ENOENT, HERE, PATH, 0, 0),
        CALL(truncate, ENOENT, PATH, 0),
    };
    return try_all(attempts, COUNT_OF(attempts));
}

static void modes_of_paths_are_refused_on_demand(void **state) {
    struct seccomp_filter filter;

    (void)state;
    build(&filter, &(struct worker_filter_options){.refuse_path_modes = true});
    in_child(try_paths, &filter);
    seccomp_filter_clear(&filter);
    build(&filter, &(struct worker_filter_options){0});
    in_child(try_paths_by_default, &filter);
    seccomp_filter_clear(&filter);
}

/* ---- disk that a watch does not see ---- */

#define ROOM 4096

static int try_disk(void *context) {
    const uint64_t here = (uintptr_t) "/tmp";
    FILE *file = tmpfile();
    struct stat status;

    REQUIRE(file);
    const uint64_t fd = (uint64_t)fileno(file);
    load_filter(context);
    const struct attempt refused[] = {
        CALL(fallocate, EOPNOTSUPP, fd, 0, 0, ROOM),
        CALL(fallocate, EOPNOTSUPP, fd, FALLOC_FL_KEEP_SIZE, 0, ROOM),
        CALL(openat2, ENOSYS, HERE, PATH, 0, 0),
#ifdef SYS_open
        CALL(open, EOPNOTSUPP, here, O_TMPFILE | O_RDWR, 0600),
        CALL(open, EOPNOTSUPP, here, HIGH | O_TMPFILE | O_RDWR, 0600),
#endif
        CALL(openat, EOPNOTSUPP, HERE, here, O_TMPFILE | O_RDWR, 0600),
        CALL(openat, EOPNOTSUPP, HERE, here, HIGH | O_TMPFILE | O_RDWR, 0600),
        CALL(openat, EOPNOTSUPP, HERE, here, (O_TMPFILE & ~O_DIRECTORY) | O_RDWR, 0600),
    };
    const struct attempt allowed[] = {
        CALL(openat, ENOENT, HERE, PATH, O_RDWR | O_CREAT, 0600),
        CALL(openat, ENOENT, HERE, PATH, O_DIRECTORY | O_CLOEXEC, 0),
        CALL(openat, ENOENT, HERE, PATH, O_RDONLY, O_TMPFILE),
    };
    /* What glibc does in its place. */
    REQUIRE(posix_fallocate(fileno(file), 0, 3 * ROOM) == 0);
    REQUIRE(fstat(fileno(file), &status) == 0 && status.st_size == 3 * ROOM);
    REQUIRE(fclose(file) == 0);
    file = tmpfile();
    REQUIRE(file && fclose(file) == 0);
    return try_refused(context, refused, COUNT_OF(refused)) +
           try_all(allowed, COUNT_OF(allowed));
}

static int try_disk_by_default(void *context) {
    const uint64_t none = (uint64_t)-1;

    load_filter(context);
    const struct attempt attempts[] = {
        CALL(fallocate, EBADF, none, 0, 0, ROOM),
        CALL(openat2, EINVAL, HERE, PATH, 0, 0),
        CALL(openat, ENOENT, HERE, PATH, O_TMPFILE | O_RDWR, 0600),
    };
    return try_all(attempts, COUNT_OF(attempts));
}

static void disk_is_taken_by_writing_on_demand(void **state) {
    struct seccomp_filter filter;

    (void)state;
    build(&filter, &(struct worker_filter_options){.refuse_preallocation = true});
    in_child(try_disk, &filter);
    seccomp_filter_clear(&filter);
    build(&filter, &(struct worker_filter_options){0});
    in_child(try_disk_by_default, &filter);
    seccomp_filter_clear(&filter);
}

/* ---- the setting ---- */

/* Names of rules with arguments and without, with blanks around and nothing between. */
#define NAMED                                                                            \
    " flock, clone,,fcntl ,ioctl,prlimit64,\tsocketpair,sendto,kill,utimensat,pause,"

static int try_named(void *context) {
    char buffer[64];
    const uint64_t end = STDERR_FILENO, own = (uint64_t)getpid(), to = (uintptr_t)buffer;
    const uint64_t none = (uint64_t)-1;
    const uint64_t thread =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;

    load_filter(context);
    const struct attempt refused[] = {
        CALL(flock, EPERM, none, 0),
        CALL(clone, EPERM, thread, 0, 0, 0, 0),
        CALL(fcntl, EPERM, end, F_GETFD),
        CALL(fcntl, EPERM, end, F_SETLK, 0),
        CALL(ioctl, EPERM, end, FIONREAD, to),
        CALL(prlimit64, EPERM, 0, RLIMIT_AS, 0, to),
        CALL(socketpair, EPERM, AF_UNIX, SOCK_STREAM, 0, to),
        CALL(sendto, EPERM, end, to, 1, 0, 0, 0),
        CALL(kill, EPERM, own, 0),
        CALL(utimensat, EPERM, end, 0, 0, 0),
#ifdef SYS_pause
        CALL(pause, EPERM),
#endif
    };
    const struct attempt allowed[] = {
        CALL(tgkill, 0, own, own, 0),
        CALL(recvfrom, EBADF, none, to, 1, 0, 0, 0),
        CALL(getpid, 0),
    };
    return try_refused(context, refused, COUNT_OF(refused)) +
           try_all(allowed, COUNT_OF(allowed));
}

static void named_calls_are_refused(void **state) {
    struct seccomp_filter filter;

    (void)state;
    build(&filter, &(struct worker_filter_options){.refuse = NAMED});
    in_child(try_named, &filter);
    seccomp_filter_clear(&filter);
}

/* What is refused already is not changed, nor is anything that this machine does not
 * have. */
static void naming_allows_nothing(void **state) {
    static const char *const without_effect[] = {
        "",
        " , \t,",
        "socket",
        "clone3,sendfile,getxattr",
        "ptrace, mount, execve, fork, memfd_create, pidfd_open",
        "socketcall,mmap2,_llseek,riscv_flush_icache",
    };
    struct seccomp_filter plain, named;

    (void)state;
    build(&plain, &(struct worker_filter_options){0});
    for (size_t i = 0; i < COUNT_OF(without_effect); i++) {
        build(&named, &(struct worker_filter_options){.refuse = without_effect[i]});
        assert_int_equal(named.count, plain.count);
        assert_memory_equal(named.instructions, plain.instructions,
                            plain.count * sizeof *plain.instructions);
        seccomp_filter_clear(&named);
    }
    seccomp_filter_clear(&plain);
}

static void names_that_are_no_system_call_are_told(void **state) {
    static const char *const unknown[][2] = {
        {"no_such_call", "no_such_call"},
        {"read,reed", "reed"},
        {"Read", "Read"},
        {"read write,ALL", "ALL"},
        {"42", "42"},
        {"*", "*"},
        {"flock;fcntl", "flock;fcntl"},
        {"flock,-fcntl", "-fcntl"},
        {"flock_but_with_a_name_that_is_longer_than_any_call_has_ever_had_or_will",
         "flock_but_with_a_name"},
    };
    struct seccomp_filter filter = {0};
    struct viv_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        const struct worker_filter_options options = {.refuse = unknown[i][0]};
        assert_fails(worker_filter_build(&filter, &options, &err), &err, VIV_CONFIG,
                     unknown[i][1]);
        assert_null(filter.instructions);
    }
}

/* Its operator's business: the filter is made. */
static void what_a_worker_needs_can_be_named(void **state) {
    struct seccomp_filter filter;

    (void)state;
    build(&filter, &(struct worker_filter_options){
                       .refuse = "read,sendto,exit_group,futex,mmap,rt_sigreturn"});
    assert_true(filter.count > 0);
    seccomp_filter_clear(&filter);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_signals_itself_alone),
        cmocka_unit_test(a_worker_can_abort),
        cmocka_unit_test(without_an_id_signals_reach_nobody),
        cmocka_unit_test(an_id_changes_one_instruction_of_one_kind_of_filter),
        cmocka_unit_test(modes_of_paths_are_refused_on_demand),
        cmocka_unit_test(disk_is_taken_by_writing_on_demand),
        cmocka_unit_test(named_calls_are_refused),
        cmocka_unit_test(naming_allows_nothing),
        cmocka_unit_test(names_that_are_no_system_call_are_told),
        cmocka_unit_test(what_a_worker_needs_can_be_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
