/* SPDX-License-Identifier: MIT */
/* For children: a kernel that lacks system calls, or refuses them. */
#ifndef VIV_TESTS_REFUSE_H
#define VIV_TESTS_REFUSE_H

#include "tests/unit/child.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#define REFUSED_MAX 16

/* From now on each of these calls of the calling process fails with `error`. */
static inline void refuse_calls(const long numbers[], size_t count, int error) {
    struct sock_filter program[REFUSED_MAX + 3];
    struct sock_fprog filter = {.len = (unsigned short)(count + 3), .filter = program};

    REQUIRE(count <= REFUSED_MAX);
    program[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
                                              offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < count; i++)
        program[i + 1] = (struct sock_filter)BPF_JUMP(
            BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)numbers[i], (uint8_t)(count - i), 0);
    program[count + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program[count + 2] = (struct sock_filter)BPF_STMT(
        BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error);
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0);
}

#define REFUSE_CALLS(error, ...)                                                         \
    refuse_calls((const long[]){__VA_ARGS__}, COUNT_OF(((const long[]){__VA_ARGS__})),   \
                 (error))

#endif
