/* SPDX-License-Identifier: MIT */
#include "executor/seccomp/checkpoint_filter.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "executor/checkpoint.h"
#include "executor/seccomp/architecture.h"

/* Since Linux 5.19: a signal does not call a process off whose call was received. Without
 * it the kernel starts the call again, and it is received a second time. */
#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

#define FIELD(name)                                                                      \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define ARGUMENT_LOW FIELD(args[0]) /* little-endian */
#define ARGUMENT_HIGH                                                                    \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]) + 4)
#define GO_ON_IF(value, so) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, so)
#define JUMP_IF(value, here)                                                             \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), here, 0)

void checkpoint_filter_write(struct sock_filter to[CHECKPOINT_FILTER_SIZE]) {
    const struct sock_filter instructions[CHECKPOINT_FILTER_SIZE] = {
        FIELD(arch),
        GO_ON_IF(seccomp_native()->audit, 12), /* a foreign one is the list's */
        FIELD(nr),
        JUMP_IF(SYS_getppid, 5),
        GO_ON_IF(SYS_clone, 9),
        ARGUMENT_LOW,
        GO_ON_IF(CHECKPOINT_CLONE_FLAGS, 7),
        ARGUMENT_HIGH,
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, 5),
        ARGUMENT_LOW,
        GO_ON_IF(CHECKPOINT_PARK, 3),
        ARGUMENT_HIGH,
        GO_ON_IF(CHECKPOINT_PARK >> 32, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };

    memcpy(to, instructions, sizeof instructions);
}

int checkpoint_filter_load(struct viv_error *err) {
    struct sock_filter instructions[CHECKPOINT_FILTER_SIZE];
    const struct sock_fprog program = {.len = CHECKPOINT_FILTER_SIZE,
                                       .filter = instructions};
    unsigned long flags =
        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;

    checkpoint_filter_write(instructions);
    long listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);

    if (listener < 0 && errno == EINVAL)
        listener = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                           SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    if (listener < 0)
        return viv_fail(err, VIV_SYSTEM, "a filter with a listener: %m");
    return (int)listener;
}
