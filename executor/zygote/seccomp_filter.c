/* SPDX-License-Identifier: MIT */
#include "executor/zygote/seccomp_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"

/* A call that a platform does not have is passed over. */
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
    "truncate",
    "fallocate",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "fadvise64",
    "msync",
    "flock",
    /* names */
    "open",
    "openat",
    "openat2",
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
    "chmod",
    "fchmod",
    "fchmodat",
    "utimensat",
    "utimes",
    "futimesat",
    "utime",
    "umask",
    /* memory */
    "mmap",
    "munmap",
    "mremap",
    "mprotect",
    "brk",
    "madvise",
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
    /* Only its own processes are in its PID namespace; PID 1 cannot be hurt from inside
     * (pid_namespaces(7)), and the preface below says so with an error. */
    "kill",
    "tgkill",
    /* The socket pair that add_limits_and_sockets() lets through. */
    "recvfrom",
    "shutdown",
    "getsockname",
    "getpeername",
    "getsockopt",
};

static const struct {
    const char *name;
    int error;
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

/* Answered with success and not made. A record lock belongs to a process, and a session has one:
 * no lock of its own could ever conflict. Made, each would take kernel memory that no limit
 * counts, and a mapping keeps those of a closed file. Locks of an open file description are
 * refused for that. */
static const int idle_lock_commands[] = {F_SETLK, F_SETLKW};

static const unsigned ioctl_commands[] = {TCGETS,   TIOCGWINSZ, FIOCLEX,
                                          FIONCLEX, FIONBIO,    FIONREAD};

/* The newest system call that this list was made with. A newer one is answered with
 * ENOSYS, so that libraries that know it fall back. */
#define NEWEST_REVIEWED_CALL 462

static int add_names(scmp_filter_ctx context, struct viv_error *err) {
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
        int number = seccomp_syscall_resolve_name(allowed[i]);
        if (number < 0)
            continue;
        int result = seccomp_rule_add(context, SCMP_ACT_ALLOW, number, 0);
        if (result)
            return viv_fail(err, VIV_SYSTEM, "seccomp rule for %s: %s", allowed[i],
                            strerror(-result));
    }
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        int number = seccomp_syscall_resolve_name(refused[i].name);
        if (number < 0)
            continue;
        int result = seccomp_rule_add(context, SCMP_ACT_ERRNO((uint32_t)refused[i].error),
                                      number, 0);
        if (result)
            return viv_fail(err, VIV_SYSTEM, "seccomp rule for %s: %s", refused[i].name,
                            strerror(-result));
    }
    return 0;
}

/* Commands are 32 bits to the kernel and 64 to the filter: the high half must be zero. */
static int add_commands(scmp_filter_ctx context) {
    for (size_t i = 0; i < sizeof fcntl_commands / sizeof *fcntl_commands; i++)
        if (seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1,
                             SCMP_A1_64(SCMP_CMP_EQ, (scmp_datum_t)fcntl_commands[i], 0)))
            return -1;
    for (size_t i = 0; i < sizeof idle_lock_commands / sizeof *idle_lock_commands; i++)
        if (seccomp_rule_add(
                context, SCMP_ACT_ERRNO(0), SCMP_SYS(fcntl), 1,
                SCMP_A1_64(SCMP_CMP_EQ, (scmp_datum_t)idle_lock_commands[i], 0)))
            return -1;
    for (size_t i = 0; i < sizeof ioctl_commands / sizeof *ioctl_commands; i++)
        if (seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                             SCMP_A1_64(SCMP_CMP_EQ, ioctl_commands[i], 0)))
            return -1;
    return 0;
}

/* Threads only: no process, no namespace, nothing traced. A mask over all flags, so that
 * a flag of a future kernel is refused, too. */
static int add_clone(scmp_filter_ctx context) {
    const scmp_datum_t needed =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    const scmp_datum_t free_to_choose =
        CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID;

    return seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                            SCMP_A0_64(SCMP_CMP_MASKED_EQ, ~free_to_choose, needed));
}

/* Reading its own limits; asyncio's self-pipe and what is done with it. */
static int add_limits_and_sockets(scmp_filter_ctx context) {
    const scmp_datum_t type_flags = SOCK_CLOEXEC | SOCK_NONBLOCK;

    if (seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(prlimit64), 2,
                         SCMP_A0_64(SCMP_CMP_EQ, 0, 0), SCMP_A2_64(SCMP_CMP_EQ, 0, 0)))
        return -1;
    if (seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 2,
                         SCMP_A0_64(SCMP_CMP_EQ, AF_UNIX, 0),
                         SCMP_A1_64(SCMP_CMP_MASKED_EQ, ~type_flags, SOCK_STREAM)))
        return -1;
    return seccomp_rule_add(context, SCMP_ACT_ALLOW, SCMP_SYS(sendto), 1,
                            SCMP_A4_64(SCMP_CMP_EQ, 0, 0));
}

#if defined(__x86_64__)
#define NATIVE_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define NATIVE_ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the system calls of this architecture have not been reviewed"
#endif

#define X32_BIT        0x40000000U
#define ARGUMENT_0_LOW offsetof(struct seccomp_data, args[0]) /* little-endian */

/*
 * What libseccomp cannot say, in front of its program: numbers above the newest reviewed
 * call are unknown (ENOSYS), and kill(2) and tgkill(2) reach single processes other than
 * PID 1 only. A foreign architecture and x32 are left to the program behind, which kills.
 */
enum { TO_PROGRAM = 12, UNKNOWN = 10, NOT_PERMITTED = 11 };

#define GO(here, there) ((there) - (here)-1)

static const struct sock_filter preface[TO_PROGRAM] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCHITECTURE, 0, GO(1, TO_PROGRAM)),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, GO(3, TO_PROGRAM), 0),
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, NEWEST_REVIEWED_CALL, GO(4, UNKNOWN), 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_kill, GO(5, 7), 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, GO(6, TO_PROGRAM)),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ARGUMENT_0_LOW),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x80000000U, GO(8, NOT_PERMITTED), 0),
    BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 1, GO(9, TO_PROGRAM), GO(9, NOT_PERMITTED)),
    [UNKNOWN] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
    [NOT_PERMITTED] = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
};

/* libseccomp 2.5 exports to a descriptor only. */
static int export_filter(scmp_filter_ctx context, struct seccomp_filter *filter,
                         struct viv_error *err) {
    CLEANUP(close_fd) int fd = memfd_create("seccomp", MFD_CLOEXEC);
    struct stat status;

    if (fd < 0)
        return viv_fail(err, VIV_SYSTEM, "memfd_create: %m");
    int result = seccomp_export_bpf(context, fd);
    if (result)
        return viv_fail(err, VIV_SYSTEM, "seccomp_export_bpf: %s", strerror(-result));
    if (fstat(fd, &status))
        return viv_fail(err, VIV_SYSTEM, "fstat: %m");
    size_t size = (size_t)status.st_size;
    size_t count = TO_PROGRAM + size / sizeof *filter->instructions;
    if (size == 0 || count > BPF_MAXINSNS)
        return viv_fail(err, VIV_SYSTEM, "a filter of %zu instructions", count);
    filter->instructions = viv_xmalloc(sizeof preface + size);
    filter->count = (unsigned short)count;
    /* Jumps of BPF are relative and forward: the two programs follow one another. */
    memcpy(filter->instructions, preface, sizeof preface);
    if (pread(fd, filter->instructions + TO_PROGRAM, size, 0) != (ssize_t)size) {
        seccomp_filter_clear(filter);
        return viv_fail(err, VIV_SYSTEM, "read the filter: %m");
    }
    return 0;
}

static void release_context_cleanup(scmp_filter_ctx *context) {
    if (*context)
        seccomp_release(*context);
}

int seccomp_filter_build(struct seccomp_filter *filter, struct viv_error *err) {
    CLEANUP(release_context)
    scmp_filter_ctx context = seccomp_init(SCMP_ACT_ERRNO(EPERM));

    if (!context)
        return viv_fail(err, VIV_SYSTEM, "seccomp_init failed");
    if (seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) ||
        seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2))
        return viv_fail(err, VIV_SYSTEM, "seccomp attributes are refused");
    if (add_names(context, err))
        return -1;
    if (add_commands(context) || add_clone(context) || add_limits_and_sockets(context))
        return viv_fail(err, VIV_SYSTEM, "a seccomp rule with arguments is refused");
    return export_filter(context, filter, err);
}

int seccomp_filter_load(const struct seccomp_filter *filter, struct viv_error *err) {
    const struct sock_fprog program = {.len = filter->count,
                                       .filter = filter->instructions};

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                &program))
        return viv_fail(err, VIV_SYSTEM, "load the seccomp filter: %m");
    return 0;
}

void seccomp_filter_clear(struct seccomp_filter *filter) {
    free(filter->instructions);
    *filter = (struct seccomp_filter){0};
}
