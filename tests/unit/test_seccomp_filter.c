/* SPDX-License-Identifier: MIT */
/* The filter of the workers, loaded into children that then try calls. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <termios.h>

#include "executor/seccomp/worker_filter.h"
#include "tests/unit/attempts.h"

static const struct worker_filter_options options = {.kill = KILL_IN_PID_NAMESPACE};
static struct seccomp_filter filter;

static int build_filter(void **state) {
    (void)state;
    return worker_filter_build(&filter, &options, NULL);
}

static int clear_filter(void **state) {
    (void)state;
    seccomp_filter_clear(&filter);
    seccomp_filter_clear(&filter);
    return filter.instructions != NULL;
}

/* Each with arguments that the kernel answers in its own way, which no filter would. */
static int try_allowed(void *context) {
    char buffer[64];
    int pipe_ends[2];
    const uint64_t none = (uint64_t)-1, text = (uintptr_t) "/nowhere/at/all";

    (void)context;
    REQUIRE(pipe(pipe_ends) == 0);
    load_filter(&filter);
    const uint64_t end = (uint64_t)pipe_ends[0], to = (uintptr_t)buffer;
    const struct attempt attempts[] = {
        CALL(read, EBADF, none, to, 1),
        CALL(write, EBADF, none, to, 1),
        CALL(pread64, ESPIPE, end, to, 1, 0),
        CALL(openat, ENOENT, (uint64_t)AT_FDCWD, text, O_RDONLY, 0),
        CALL(newfstatat, ENOENT, (uint64_t)AT_FDCWD, text, to, 0),
        CALL(mkdirat, ENOENT, (uint64_t)AT_FDCWD, text, 0700),
        CALL(unlinkat, ENOENT, (uint64_t)AT_FDCWD, text, 0),
        CALL(renameat2, ENOENT, (uint64_t)AT_FDCWD, text, (uint64_t)AT_FDCWD, text, 0),
        CALL(getcwd, ERANGE, to, 0),
        CALL(getdents64, ENOTDIR, end, to, sizeof buffer),
        CALL(flock, EBADF, none, LOCK_SH),
        CALL(ftruncate, EINVAL, end, 0),
        CALL(getpid, 0),
        CALL(getuid, 0),
        CALL(getrandom, 0, to, 1, 0),
        CALL(sched_yield, 0),
        CALL(futex, EINVAL, to | 1, 1, 0),
        CALL(nanosleep, EFAULT, 0, 0),
        CALL(epoll_create1, EINVAL, 0x7f),
        CALL(eventfd2, EINVAL, 0, 2),
        CALL(timerfd_create, EINVAL, 77, 0),
        CALL(munmap, EINVAL, 1, 0),
        CALL(prlimit64, 0, 0, RLIMIT_AS, 0, to),
        CALL(fcntl, 0, end, F_GETFD),
        CALL(fcntl, 0, end, F_SETFD, FD_CLOEXEC),
        CALL(fcntl, 0, end, F_GETFL),
        CALL(fcntl, 0, end, F_SETFL, O_NONBLOCK),
        /* Answered, and not made: the kernel would have looked at the lock. */
        CALL(fcntl, 0, end, F_SETLK, 0),
        CALL(fcntl, 0, end, F_SETLKW, 0),
        CALL(ioctl, 0, end, FIONREAD, to),
        CALL(ioctl, ENOTTY, end, TCGETS, to),
        CALL(ioctl, ENOTTY, end, TIOCGWINSZ, to),
        CALL(ioctl, 0, end, FIOCLEX),
        CALL(ioctl, EFAULT, end, FIONBIO, 0),
        CALL(kill, 0, (uint64_t)getpid(), 0),
        CALL(tgkill, 0, (uint64_t)getpid(), (uint64_t)getpid(), 0),
        CALL(getsockname, ENOTSOCK, end, to, to),
        CALL(recvfrom, ENOTSOCK, end, to, 1, 0, 0, 0),
        CALL(sendto, ENOTSOCK, end, to, 1, 0, 0, 0),
        CALL(shutdown, ENOTSOCK, end, SHUT_RDWR),
    };
    return try_all(attempts, COUNT_OF(attempts));
}

static void what_code_needs_is_allowed(void **state) {
    (void)state;
    in_child(try_allowed, NULL);
}

/* Arguments of calls that are refused, whatever they are. */
static char buffer[256];

#define TO   ((uintptr_t)buffer)
#define PATH ((uintptr_t) "/")
#define HERE ((uint64_t)AT_FDCWD)
#define END  ((uint64_t)STDERR_FILENO)

static int try_processes_and_mounts(void *context) {
    const struct attempt attempts[] = {
        /* new processes */
        CALL(execve, EPERM, PATH, 0, 0),
        CALL(execveat, EPERM, HERE, PATH, 0, 0, 0),
        CALL(clone3, ENOSYS, TO, 88),
        /* other processes, and what is kept of them */
        CALL(ptrace, EPERM, 0, 0, 0, 0),
        CALL(process_vm_readv, EPERM, 1, TO, 1, TO, 1, 0),
        CALL(process_vm_writev, EPERM, 1, TO, 1, TO, 1, 0),
        CALL(kcmp, EPERM, 1, 1, 0, 0, 0),
        CALL(pidfd_open, EPERM, (uint64_t)getpid(), 0),
        CALL(pidfd_send_signal, EPERM, END, 0, 0, 0),
        CALL(pidfd_getfd, EPERM, END, 0, 0),
        CALL(tkill, EPERM, (uint64_t)getpid(), 0),
        CALL(rt_sigqueueinfo, EPERM, (uint64_t)getpid(), SIGCONT, TO),
        CALL(rt_tgsigqueueinfo, EPERM, (uint64_t)getpid(), (uint64_t)getpid(), SIGCONT,
             TO),
        CALL(waitid, EPERM, P_ALL, 0, TO, WEXITED | WNOHANG, 0),
        CALL(setpgid, EPERM, 0, 0),
        CALL(setsid, EPERM),
        /* namespaces and mounts */
        CALL(unshare, EPERM, 0),
        CALL(setns, EPERM, END, 0),
        CALL(mount, EPERM, PATH, PATH, PATH, 0, 0),
        CALL(umount2, EPERM, PATH, 0),
        CALL(pivot_root, EPERM, PATH, PATH),
        CALL(chroot, EPERM, PATH),
        CALL(open_tree, EPERM, HERE, PATH, 0),
        CALL(move_mount, EPERM, HERE, PATH, HERE, PATH, 0),
        CALL(fsopen, EPERM, PATH, 0),
        CALL(mount_setattr, EPERM, HERE, PATH, 0, TO, 32),
        CALL(name_to_handle_at, EPERM, HERE, PATH, TO, TO, 0),
        CALL(open_by_handle_at, EPERM, HERE, TO, 0),
    };

    (void)context;
    load_filter(&filter);
    return try_refused(&filter, attempts, COUNT_OF(attempts));
}

static int try_rights(void *context) {
    const struct attempt attempts[] = {
        /* rights */
        CALL(setuid, EPERM, 0),
        CALL(setresuid, EPERM, 0, 0, 0),
        CALL(setgid, EPERM, 0),
        CALL(setgroups, EPERM, 0, 0),
        CALL(capset, EPERM, TO, TO),
        CALL(prctl, EPERM, PR_SET_DUMPABLE, 1),
        CALL(seccomp, EPERM, SECCOMP_GET_ACTION_AVAIL, 0, TO),
        CALL(landlock_create_ruleset, EPERM, 0, 0, 1),
        CALL(personality, EPERM, 0xffffffff),
        CALL(prlimit64, EPERM, 0, RLIMIT_CORE, TO, 0),
        CALL(prlimit64, EPERM, (uint64_t)getpid(), RLIMIT_CORE, 0, TO),
        CALL(setrlimit, EPERM, RLIMIT_CORE, TO),
        CALL(setpriority, EPERM, 0, 0, 0),
        CALL(mlock, EPERM, TO, 1),
        /* what has often been a way into the kernel */
        CALL(bpf, EPERM, 0, TO, 1),
        CALL(userfaultfd, EPERM, 0),
        CALL(perf_event_open, EPERM, TO, 0, 0, END, 0),
        CALL(io_uring_setup, EPERM, 1, TO),
        CALL(io_uring_enter, EPERM, END, 0, 0, 0, 0, 0),
        CALL(add_key, EPERM, PATH, PATH, TO, 1, 0),
        CALL(request_key, EPERM, PATH, PATH, 0, 0),
        CALL(keyctl, EPERM, 0, 0),
        CALL(memfd_create, EPERM, PATH, 0),
        CALL(kexec_load, EPERM, 0, 0, 0, 0),
        CALL(init_module, EPERM, TO, 1, PATH),
        CALL(reboot, EPERM, 0, 0, 0, 0),
        CALL(syslog, EPERM, 0, 0, 0),
        CALL(quotactl, EPERM, 0, 0, 0, 0),
        CALL(clock_settime, EPERM, 0, 0),
    };

    (void)context;
    load_filter(&filter);
    return try_refused(&filter, attempts, COUNT_OF(attempts));
}

static int try_channels_and_commands(void *context) {
    const struct attempt attempts[] = {
        /* what sessions could share */
        CALL(shmget, EPERM, 0, 1, 0),
        CALL(msgget, EPERM, 0, 0),
        CALL(semget, EPERM, 0, 1, 0),
        CALL(mq_open, EPERM, PATH, 0),
        CALL(mknodat, EPERM, HERE, PATH, S_IFIFO, 0),
        CALL(inotify_init1, EPERM, 0),
        CALL(fanotify_init, EPERM, 0, 0),
        CALL(timer_create, EPERM, 0, 0, TO),
        CALL(chown, EPERM, PATH, 0, 0),
        CALL(fchownat, EPERM, HERE, PATH, 0, 0, 0),
        /* files into pipes */
        CALL(sendfile, ENOSYS, END, END, 0, 1),
        CALL(copy_file_range, ENOSYS, END, 0, END, 0, 1, 0),
        CALL(splice, ENOSYS, END, 0, END, 0, 1, 0),
        CALL(tee, ENOSYS, END, END, 1, 0),
        CALL(vmsplice, ENOSYS, END, TO, 1, 0),
        /* what libraries take for an old file system */
        CALL(getxattr, ENOTSUP, PATH, PATH, TO, 1),
        CALL(fsetxattr, ENOTSUP, END, PATH, TO, 1, 0),
        CALL(listxattr, ENOTSUP, PATH, TO, 1),
        CALL(lremovexattr, ENOTSUP, PATH, PATH),
        /* commands */
        CALL(fcntl, EPERM, END, F_OFD_SETLK, 0),
        CALL(fcntl, EPERM, END, F_SETOWN, 1),
        CALL(fcntl, EPERM, END, F_SETSIG, SIGKILL),
        CALL(fcntl, EPERM, END, F_SETLEASE, F_RDLCK),
        CALL(fcntl, EPERM, END, F_NOTIFY, 0),
        CALL(fcntl, EPERM, END, F_SETPIPE_SZ, 4096),
        CALL(fcntl, EPERM, END, F_ADD_SEALS, 0),
        CALL(fcntl, EPERM, END, HIGH | F_GETFD),
        CALL(ioctl, EPERM, END, TIOCSTI, TO),
        CALL(ioctl, EPERM, END, TIOCSCTTY, 0),
        CALL(ioctl, EPERM, END, FIOASYNC, TO),
        CALL(ioctl, EPERM, END, HIGH | FIONREAD, TO),
        CALL(ioctl, EPERM, END, HIGH | TIOCSTI, TO),
    };

    (void)context;
    load_filter(&filter);
    return try_refused(&filter, attempts, COUNT_OF(attempts));
}

static void everything_else_is_refused(void **state) {
    (void)state;
    in_child(try_processes_and_mounts, NULL);
    in_child(try_rights, NULL);
    in_child(try_channels_and_commands, NULL);
}

/* With signal 0, which is sent to nobody. The kernel would allow some of them. */
static int try_kill(void *context) {
    const uint64_t own = (uint64_t)getpid();

    (void)context;
    load_filter(&filter);
    const struct attempt attempts[] = {
        CALL(kill, EPERM, 1, 0),
        CALL(kill, EPERM, 0, 0),
        CALL(kill, EPERM, (uint64_t)-1, 0),
        CALL(kill, EPERM, (uint64_t)-getpgrp(), 0),
        CALL(kill, EPERM, (uint32_t)-1, 0),
        CALL(kill, EPERM, 0x80000000, 0),
        CALL(kill, EPERM, HIGH | 1, 0),
        CALL(kill, EPERM, HIGH, 0),
        CALL(kill, 0, own, 0),
        CALL(kill, 0, HIGH | own, 0), /* the same to the kernel */
        CALL(kill, ESRCH, 0x7fffffff, 0),
        CALL(tgkill, EPERM, 1, 1, 0),
        CALL(tgkill, EPERM, 0, own, 0),
        CALL(tgkill, EPERM, (uint64_t)-1, own, 0),
        CALL(tgkill, EPERM, HIGH | 1, 1, 0),
        CALL(tgkill, 0, own, own, 0),
    };
    return try_all(attempts, COUNT_OF(attempts));
}

static void signals_reach_single_processes_only(void **state) {
    (void)state;
    in_child(try_kill, NULL);
}

static void *add_one(void *context) {
    ++*(int *)context;
    return NULL;
}

static int try_threads(void *context) {
    pthread_t threads[3];
    int count = 0;

    (void)context;
    load_filter(&filter);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        REQUIRE(pthread_create(&threads[i], NULL, add_one, &count) == 0);
        REQUIRE(pthread_join(threads[i], NULL) == 0);
    }
    REQUIRE(count == 3);
    return 0;
}

static void threads_are_allowed(void **state) {
    (void)state;
    in_child(try_threads, NULL);
}

/* clone(2) as fork(2), as vfork(2) and with all that a thread has but one flag more or
 * less. A child that is made all the same ends at once. */
static int try_clone(void *context) {
    const uint64_t thread =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    const uint64_t flags[] = {
        SIGCHLD,
        0,
        SIGCHLD | CLONE_PARENT_SETTID,
        SIGCHLD | CLONE_NEWUSER,
        SIGCHLD | CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID,
        thread | CLONE_NEWUSER,
        thread | CLONE_NEWNET,
        thread | CLONE_NEWCGROUP,
        thread | CLONE_PTRACE,
        thread | CLONE_UNTRACED,
        thread | CLONE_PARENT,
        thread | CLONE_PIDFD,
        thread | CLONE_IO,
        thread | CLONE_VFORK,
        thread | SIGCHLD,
        thread & ~(uint64_t)CLONE_THREAD,
        thread & ~(uint64_t)CLONE_SIGHAND,
        thread & ~(uint64_t)CLONE_FILES,
        thread & ~(uint64_t)CLONE_VM,
        thread | HIGH << 8,
    };

    (void)context;
    load_filter(&filter);
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        errno = 0;
        long result = syscall(SYS_clone, flags[i], NULL, NULL, NULL, NULL);
        if (result == 0)
            syscall(SYS_exit_group, 0);
        if (result == -1 && errno == EPERM)
            continue;
        fprintf(stderr, "clone flags %#llx: %ld, %m\n", (unsigned long long)flags[i],
                result);
        return 1;
    }
#ifdef SYS_fork
    const struct attempt attempts[] = {CALL(fork, EPERM), CALL(vfork, EPERM)};
    return try_all(attempts, COUNT_OF(attempts));
#else
    return 0;
#endif
}

static void processes_are_not_allowed(void **state) {
    (void)state;
    in_child(try_clone, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_code_needs_is_allowed),
        cmocka_unit_test(everything_else_is_refused),
        cmocka_unit_test(signals_reach_single_processes_only),
        cmocka_unit_test(threads_are_allowed),
        cmocka_unit_test(processes_are_not_allowed),
    };
    return cmocka_run_group_tests(tests, build_filter, clear_filter);
}
