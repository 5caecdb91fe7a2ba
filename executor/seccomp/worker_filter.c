/* SPDX-License-Identifier: MIT */
#include "executor/seccomp/worker_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <termios.h>

#include "common/cleanup.h"
#include "executor/checkpoint.h"
#include "executor/seccomp/builder.h"
#include "executor/seccomp/refusals.h"

static const char *const allowed[] = {
    /* data of open files */
    "read",
    "write",
    "readv",
    "writev",
    "pread64",
    "pwrite64",
    "preadv",
    "pwritev",
    "close",
    "close_range",
    "lseek",
    "dup",
    "dup2",
    "dup3",
    "ftruncate",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "fadvise64",
    "msync",
    "flock",
    /* names */
    "stat",
    "fstat",
    "lstat",
    "newfstatat",
    "statx",
    "statfs",
    "fstatfs",
    "access",
    "faccessat",
    "faccessat2",
    "getdents64",
    "getcwd",
    "chdir",
    "fchdir",
    "readlink",
    "readlinkat",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "fchmod",
    "umask",
    /* memory */
    "munmap",
    "mremap",
    "mprotect",
    "brk",
    "mincore",
    /* threads */
    "futex",
    "futex_waitv",
    "set_robust_list",
    "get_robust_list",
    "rseq",
    "set_tid_address",
    "membarrier",
    "exit",
    "exit_group",
    "sched_yield",
    "sched_getaffinity",
    "sched_getparam",
    "sched_getscheduler",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "getcpu",
    /* signals and time */
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigpending",
    "rt_sigtimedwait",
    "rt_sigsuspend",
    "sigaltstack",
    "pause",
    "restart_syscall",
    "nanosleep",
    "clock_nanosleep",
    "clock_gettime",
    "clock_getres",
    "gettimeofday",
    "time",
    "times",
    "getitimer",
    "setitimer",
    "alarm",
    /* waiting for several things */
    "pipe",
    "pipe2",
    "select",
    "pselect6",
    "poll",
    "ppoll",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "eventfd2",
    "timerfd_create",
    "timerfd_settime",
    "timerfd_gettime",
    /* who and where it is */
    "getpid",
    "getppid",
    "gettid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getgroups",
    "getresuid",
    "getresgid",
    "getpgrp",
    "getpgid",
    "getsid",
    "getpriority",
    "capget",
    "getrusage",
    "getrlimit",
    "sysinfo",
    "uname",
    "getrandom",
    /* Whom they reach is decided in front of these rules: preface.h. */
    "kill",
    "tgkill",
    /* The socket pair that allow_sockets() lets through. */
    "recvfrom",
    "shutdown",
    "getsockname",
    "getpeername",
    "getsockopt",
    NULL,
};

/* With Landlock alone these would reach the files of other sessions of the same user. */
static const char *const path_modes[] = {
    "chmod", "fchmodat", "utimensat", "utimes", "futimesat", "utime", "truncate", NULL,
};

/* These can take disk of which a watch sees nothing in time. */
static const char *const taking_disk[] = {
    "open", "openat", "openat2", "fallocate", NULL,
};

static const struct {
    const char *name;
    uint32_t error;
} refused[] = {
    /* glibc falls back to clone(2), whose flags are in a register and can be checked. */
    {"clone3", ENOSYS},
    /* Libraries fall back to read and write: no page of the page cache gets into
     * a pipe. */
    {"sendfile", ENOSYS},
    {"copy_file_range", ENOSYS},
    {"splice", ENOSYS},
    {"tee", ENOSYS},
    {"vmsplice", ENOSYS},
    /* shutil.copystat() takes no other error. */
    {"getxattr", ENOTSUP},
    {"lgetxattr", ENOTSUP},
    {"fgetxattr", ENOTSUP},
    {"setxattr", ENOTSUP},
    {"lsetxattr", ENOTSUP},
    {"fsetxattr", ENOTSUP},
    {"listxattr", ENOTSUP},
    {"llistxattr", ENOTSUP},
    {"flistxattr", ENOTSUP},
    {"removexattr", ENOTSUP},
    {"lremovexattr", ENOTSUP},
    {"fremovexattr", ENOTSUP},
};

static const int fcntl_commands[] = {
    F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_GETPIPE_SZ,
};

/* Answered with success and not made. A record lock belongs to a process, and a session
 * has one: no lock of its own could ever conflict. Made, each would take kernel memory
 * that no limit counts, and a mapping keeps those of a closed file. Locks of an open file
 * description are refused for that. */
static const int idle_lock_commands[] = {F_SETLK, F_SETLKW};

static const unsigned ioctl_commands[] = {TCGETS,   TIOCGWINSZ, FIOCLEX,
                                          FIONCLEX, FIONBIO,    FIONREAD};

/* Of Linux 5.18, 6.1 and 6.13: the C library's header may not have them. */
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif

static const int advices[] = {
    MADV_NORMAL,    MADV_RANDOM,        MADV_SEQUENTIAL,     MADV_WILLNEED,
    MADV_DONTNEED,  MADV_FREE,          MADV_REMOVE,         MADV_DOFORK,
    MADV_MERGEABLE, MADV_UNMERGEABLE,   MADV_HUGEPAGE,       MADV_NOHUGEPAGE,
    MADV_DONTDUMP,  MADV_DODUMP,        MADV_KEEPONFORK,     MADV_COLD,
    MADV_PAGEOUT,   MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_DONTNEED_LOCKED,
    MADV_COLLAPSE,  MADV_GUARD_INSTALL, MADV_GUARD_REMOVE};

/* A copy of the worker would be without that memory, or find zeros there. This is what a
 * kernel says that does not have them. */
static const int advices_against_copies[] = {MADV_DONTFORK, MADV_WIPEONFORK};

static int answer_refused(struct filter_builder *builder, struct viv_error *err) {
    /* They keep their error when a setting names them, too. */
    struct filter_builder all = *builder;

    all.left_out = NULL;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (filter_builder_answer_if(&all, refused[i].name, refused[i].error, 0, NULL,
                                     err))
            return -1;
    return 0;
}

/* Commands are 32 bits to the kernel and 64 to the filter: the high half must be zero. */
static int allow_commands(struct filter_builder *builder, struct viv_error *err) {
    for (size_t i = 0; i < sizeof fcntl_commands / sizeof *fcntl_commands; i++)
        if (filter_builder_allow_if(
                builder, "fcntl", 1,
                &SCMP_A1_64(SCMP_CMP_EQ, (scmp_datum_t)fcntl_commands[i], 0), err))
            return -1;
    for (size_t i = 0; i < sizeof idle_lock_commands / sizeof *idle_lock_commands; i++)
        if (filter_builder_answer_if(
                builder, "fcntl", 0, 1,
                &SCMP_A1_64(SCMP_CMP_EQ, (scmp_datum_t)idle_lock_commands[i], 0), err))
            return -1;
    for (size_t i = 0; i < sizeof ioctl_commands / sizeof *ioctl_commands; i++)
        if (filter_builder_allow_if(builder, "ioctl", 1,
                                    &SCMP_A1_64(SCMP_CMP_EQ, ioctl_commands[i], 0), err))
            return -1;
    return 0;
}

static int allow_advices(struct filter_builder *builder, struct viv_error *err) {
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
        if (filter_builder_allow_if(builder, "madvise", 1,
                                    &SCMP_A2_64(SCMP_CMP_EQ, (scmp_datum_t)advices[i], 0),
                                    err))
            return -1;
    for (size_t i = 0; i < sizeof advices_against_copies / sizeof *advices_against_copies;
         i++)
        if (filter_builder_answer_if(
                builder, "madvise", EINVAL, 1,
                &SCMP_A2_64(SCMP_CMP_EQ, (scmp_datum_t)advices_against_copies[i], 0),
                err))
            return -1;
    return 0;
}

/* Threads only: no process, no namespace, nothing traced. A mask over all flags, so that
 * a flag of a future kernel is refused, too. */
static int allow_threads(struct filter_builder *builder, struct viv_error *err) {
    const scmp_datum_t needed =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    const scmp_datum_t free_to_choose =
        CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID;

    return filter_builder_allow_if(
        builder, "clone", 1, &SCMP_A0_64(SCMP_CMP_MASKED_EQ, ~free_to_choose, needed),
        err);
}

/* The one process that the supervisor may let be made. */
static int allow_copies(struct filter_builder *builder, bool copies,
                        struct viv_error *err) {
    if (!copies)
        return 0;
    return filter_builder_allow_if(
        builder, "clone", 1, &SCMP_A0_64(SCMP_CMP_EQ, CHECKPOINT_CLONE_FLAGS, 0), err);
}

/* Reading its own limits. */
static int allow_limits(struct filter_builder *builder, struct viv_error *err) {
    const struct scmp_arg_cmp own_no_new[] = {SCMP_A0_64(SCMP_CMP_EQ, 0, 0),
                                              SCMP_A2_64(SCMP_CMP_EQ, 0, 0)};

    return filter_builder_allow_if(builder, "prlimit64", 2, own_no_new, err);
}

/* asyncio's self-pipe and what is done with it. */
static int allow_sockets(struct filter_builder *builder, struct viv_error *err) {
    const scmp_datum_t type_flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
    const struct scmp_arg_cmp stream_pair[] = {
        SCMP_A0_64(SCMP_CMP_EQ, AF_UNIX, 0),
        SCMP_A1_64(SCMP_CMP_MASKED_EQ, ~type_flags, SOCK_STREAM)};

    if (filter_builder_allow_if(builder, "socketpair", 2, stream_pair, err))
        return -1;
    return filter_builder_allow_if(builder, "sendto", 1, &SCMP_A4_64(SCMP_CMP_EQ, 0, 0),
                                   err);
}

static int allow_path_modes(struct filter_builder *builder, bool by_path,
                            struct viv_error *err) {
    if (by_path)
        return filter_builder_allow(builder, path_modes, err);
    /* futimens(3): the times of an open file. */
    return filter_builder_allow_if(builder, "utimensat", 1,
                                   &SCMP_A1_64(SCMP_CMP_EQ, 0, 0), err);
}

/* Allows a call without a bit; with it, its answer is that error. */
static int allow_without(struct filter_builder *builder, const char *name,
                         const struct scmp_arg_cmp *without,
                         const struct scmp_arg_cmp *with, int error,
                         struct viv_error *err) {
    if (filter_builder_allow_if(builder, name, 1, without, err))
        return -1;
    return filter_builder_answer_if(builder, name, (uint32_t)error, 1, with, err);
}

/* All kinds of mappings but MAP_DROPPABLE, of Linux 6.11 and the only one with its bit: a
 * copy of the worker would find zeros there. */
static int allow_mappings(struct filter_builder *builder, struct viv_error *err) {
    const scmp_datum_t bit = 0x08;

    return allow_without(builder, "mmap", &SCMP_A3_64(SCMP_CMP_MASKED_EQ, bit, 0),
                         &SCMP_A3_64(SCMP_CMP_MASKED_EQ, bit, bit), EINVAL, err);
}

static int allow_taking_disk(struct filter_builder *builder, bool unseen,
                             struct viv_error *err) {
    /* The bit that tells O_TMPFILE from O_DIRECTORY; the kernel looks at it alone. */
    const scmp_datum_t bit = O_TMPFILE & ~O_DIRECTORY;

    if (unseen)
        return filter_builder_allow(builder, taking_disk, err);
    if (filter_builder_answer_if(builder, "fallocate", EOPNOTSUPP, 0, NULL, err) ||
        /* Its flags are in memory. */
        filter_builder_answer_if(builder, "openat2", ENOSYS, 0, NULL, err) ||
        allow_without(builder, "open", &SCMP_A1_64(SCMP_CMP_MASKED_EQ, bit, 0),
                      &SCMP_A1_64(SCMP_CMP_MASKED_EQ, bit, bit), EOPNOTSUPP, err))
        return -1;
    return allow_without(builder, "openat", &SCMP_A2_64(SCMP_CMP_MASKED_EQ, bit, 0),
                         &SCMP_A2_64(SCMP_CMP_MASKED_EQ, bit, bit), EOPNOTSUPP, err);
}

int worker_filter_build_for(const struct seccomp_architecture *architecture,
                            struct seccomp_filter *filter,
                            const struct worker_filter_options *options,
                            struct viv_error *err) {
    CLEANUP(filter_builder)
    struct filter_builder builder = {.architecture = architecture,
                                     .left_out = options->refuse};
    const enum signal_reach reach =
        options->kill == KILL_SELF_ONLY ? SIGNALS_TO_SELF : SIGNALS_NOT_TO_INIT;

    if (refusals_check(options->refuse, err) || filter_builder_open(&builder, err) ||
        filter_builder_allow(&builder, allowed, err) || answer_refused(&builder, err) ||
        allow_commands(&builder, err) || allow_advices(&builder, err) ||
        allow_mappings(&builder, err) || allow_threads(&builder, err) ||
        allow_copies(&builder, options->copies, err) || allow_limits(&builder, err) ||
        allow_sockets(&builder, err) ||
        allow_path_modes(&builder, !options->refuse_path_modes, err) ||
        allow_taking_disk(&builder, !options->refuse_preallocation, err))
        return -1;
    return filter_builder_finish(&builder, reach, filter, err);
}

int worker_filter_build(struct seccomp_filter *filter,
                        const struct worker_filter_options *options,
                        struct viv_error *err) {
    return worker_filter_build_for(seccomp_native(), filter, options, err);
}
