/* SPDX-License-Identifier: MIT */
#include "executor/seccomp/supervisor_filter.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/sanitizer.h"
#include "executor/seccomp/builder.h"

/* A call that a platform does not have is passed over. What glibc makes of a function
 * differs between its versions and architectures: both forms are here. */
static const char *const allowed[] = {
    /* data of open files, channels and pipes */
    "read",
    "write",
    "pread64",
    "lseek",
    "close",
    "pipe2",
    "sendmsg",
    "recvmsg",
    "poll",
    "ppoll",
    /* the session's files */
    "openat",
    "openat2",
    "newfstatat",
    "fstat",
    "fstatfs",
    "getdents64",
    "mkdirat",
    "unlinkat",
    "renameat",
    "utimensat",
    /* the worker */
    "waitid",
    "wait4",
    "pidfd_open",
    /* memory */
    "brk",
    "munmap",
    "mremap",
    /* time, chance, size of the machine: qsort(3) */
    "clock_gettime",
    "getrandom",
    "sysinfo",
    /* its end, and what abort(3) does before */
    "exit_group",
    "rt_sigreturn",
    "rt_sigaction",
    "rt_sigprocmask",
    "restart_syscall",
    "getpid",
    "gettid",
    "writev",
    NULL,
};

/* What a session made unreadable is made readable, to be counted: the kernel counts only
 * where there are namespaces. */
static const char *const revealing[] = {"fchmod", "fchmodat", NULL};

/* F_SETFD: fdopendir(3). */
static const int fcntl_commands[] = {F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_SETFD};

/* Those of seccomp_unotify(2) work on the listener that a worker has sent alone. */
static const unsigned ioctl_commands[] = {
    FIONREAD,
    SECCOMP_IOCTL_NOTIF_RECV,
    SECCOMP_IOCTL_NOTIF_SEND,
    SECCOMP_IOCTL_NOTIF_ADDFD,
};

static int allow_commands(struct filter_builder *builder, struct viv_error *err) {
    for (size_t i = 0; i < sizeof fcntl_commands / sizeof *fcntl_commands; i++)
        if (filter_builder_allow_if(
                builder, "fcntl", 1,
                &SCMP_A1_64(SCMP_CMP_EQ, (scmp_datum_t)fcntl_commands[i], 0), err))
            return -1;
    for (size_t i = 0; i < sizeof ioctl_commands / sizeof *ioctl_commands; i++)
        if (filter_builder_allow_if(builder, "ioctl", 1,
                                    &SCMP_A1_64(SCMP_CMP_EQ, ioctl_commands[i], 0), err))
            return -1;
    return 0;
}

/* Whom: the kernel decides, by the PID namespace. */
static int allow_signals_to_workers(struct filter_builder *builder,
                                    struct viv_error *err) {
    const struct scmp_arg_cmp interrupt[] = {SCMP_A1_64(SCMP_CMP_EQ, SIGINT, 0),
                                             SCMP_A2_64(SCMP_CMP_EQ, 0, 0)};
    const struct scmp_arg_cmp wake[] = {SCMP_A1_64(SCMP_CMP_EQ, SIGCONT, 0),
                                        SCMP_A2_64(SCMP_CMP_EQ, 0, 0)};

    if (filter_builder_allow_if(builder, "kill", 1, &SCMP_A1_64(SCMP_CMP_EQ, SIGKILL, 0),
                                err) ||
        filter_builder_allow_if(builder, "pidfd_send_signal", 2, interrupt, err))
        return -1;
    return filter_builder_allow_if(builder, "pidfd_send_signal", 2, wake, err);
}

/* abort(3) */
static int allow_its_end(struct filter_builder *builder, struct viv_error *err) {
    return filter_builder_allow_if(builder, "tgkill", 1,
                                   &SCMP_A2_64(SCMP_CMP_EQ, SIGABRT, 0), err);
}

/* Without a PID namespace workers are the launcher's children, and other processes have
 * the same user. */
static int allow_by_tier(struct filter_builder *builder, bool in_pid_namespace,
                         struct viv_error *err) {
    return in_pid_namespace ? allow_signals_to_workers(builder, err)
                            : filter_builder_allow(builder, revealing, err);
}

/* What malloc(3) maps: never a file, and nothing that could be executed. */
static int allow_memory(struct filter_builder *builder, struct viv_error *err) {
    const scmp_datum_t access = PROT_READ | PROT_WRITE;
    const scmp_datum_t hints = MAP_NORESERVE | MAP_STACK;
    const struct scmp_arg_cmp anonymous[] = {
        SCMP_A2_64(SCMP_CMP_MASKED_EQ, ~access, 0),
        SCMP_A3_64(SCMP_CMP_MASKED_EQ, ~hints, MAP_PRIVATE | MAP_ANONYMOUS)};

    return filter_builder_allow_if(builder, "mmap", 2, anonymous, err);
}

/* The channel to a worker, and what needs no address. */
static int allow_sockets(struct filter_builder *builder, struct viv_error *err) {
    const struct scmp_arg_cmp stream_pair[] = {
        SCMP_A0_64(SCMP_CMP_EQ, AF_UNIX, 0),
        SCMP_A1_64(SCMP_CMP_EQ, SOCK_STREAM | SOCK_CLOEXEC, 0)};

    if (filter_builder_allow_if(builder, "socketpair", 2, stream_pair, err))
        return -1;
    return filter_builder_allow_if(builder, "sendto", 1, &SCMP_A4_64(SCMP_CMP_EQ, 0, 0),
                                   err);
}

int supervisor_filter_build_for(const struct seccomp_architecture *architecture,
                                struct seccomp_filter *filter, bool in_pid_namespace,
                                struct viv_error *err) {
    CLEANUP(filter_builder)
    struct filter_builder builder = {.architecture = architecture};

    if (filter_builder_open(&builder, err) ||
        filter_builder_allow(&builder, allowed, err) || allow_commands(&builder, err) ||
        allow_its_end(&builder, err) || allow_by_tier(&builder, in_pid_namespace, err) ||
        allow_memory(&builder, err) || allow_sockets(&builder, err))
        return -1;
    return filter_builder_finish(
        &builder, in_pid_namespace ? SIGNALS_UNCHECKED : SIGNALS_TO_SELF, filter, err);
}

int supervisor_filter_build(struct seccomp_filter *filter, bool in_pid_namespace,
                            struct viv_error *err) {
    return supervisor_filter_build_for(seccomp_native(), filter, in_pid_namespace, err);
}

int supervisor_filter_load(struct seccomp_filter *filter, struct viv_error *err) {
    seccomp_filter_set_pid(filter, getpid());
    return BUILT_WITH_ADDRESS_SANITIZER ? 0 : seccomp_filter_load(filter, err);
}
