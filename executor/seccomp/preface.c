/* SPDX-License-Identifier: MIT */
#include "executor/seccomp/preface.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <string.h>

#define ARGUMENT_0_LOW offsetof(struct seccomp_data, args[0]) /* little-endian */

/* Jumps of BPF are forward and relative to the next instruction. */
#define GO(here, there) (unsigned char)((there) - (here)-1)

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define JUMP(test, value, if_so, if_not)                                                 \
    BPF_JUMP(BPF_JMP | (test) | BPF_K, (value), if_so, if_not)
#define FAIL(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

enum { SIGNALS = 6, PID_TEST = PREFACE_OWN_PID };

static const unsigned char lengths[] = {
    [SIGNALS_UNCHECKED] = SIGNALS,
    [SIGNALS_NOT_TO_INIT] = PREFACE_MAX,
    [SIGNALS_TO_SELF] = PID_TEST + 2,
};

/* What a process id must be: the kernel looks at the low half of the argument. */
static void put_pid_test(struct sock_filter *preface, enum signal_reach reach) {
    const struct sock_filter not_to_one[] = {
        JUMP(BPF_JGE, 0x80000000U, GO(PID_TEST, 11), 0),
        JUMP(BPF_JGT, 1, GO(10, 12), 0),
        FAIL(EPERM),
    };
    const struct sock_filter to_self[] = {
        JUMP(BPF_JEQ, NO_PROCESS, GO(PID_TEST, 11), 0),
        FAIL(EPERM),
    };

    if (reach == SIGNALS_NOT_TO_INIT)
        memcpy(preface + PID_TEST, not_to_one, sizeof not_to_one);
    else
        memcpy(preface + PID_TEST, to_self, sizeof to_self);
}

size_t preface_put(struct sock_filter preface[PREFACE_MAX],
                   const struct seccomp_architecture *architecture,
                   enum signal_reach reach) {
    const unsigned char end = lengths[reach];
    const struct sock_filter numbers[SIGNALS] = {
        LOAD(offsetof(struct seccomp_data, arch)),
        JUMP(BPF_JEQ, architecture->audit, 0, GO(1, end)),
        LOAD(offsetof(struct seccomp_data, nr)),
        JUMP(BPF_JGE, architecture->foreign_numbers, GO(3, end), 0),
        JUMP(BPF_JGT, NEWEST_REVIEWED_CALL, 0, GO(4, SIGNALS)),
        FAIL(ENOSYS),
    };
    const struct sock_filter signals[PID_TEST - SIGNALS] = {
        JUMP(BPF_JEQ, architecture->kill, GO(6, 8), 0),
        JUMP(BPF_JEQ, architecture->tgkill, 0, GO(7, end)),
        LOAD(ARGUMENT_0_LOW),
    };

    memcpy(preface, numbers, sizeof numbers);
    if (reach != SIGNALS_UNCHECKED) {
        memcpy(preface + SIGNALS, signals, sizeof signals);
        put_pid_test(preface, reach);
    }
    return end;
}
