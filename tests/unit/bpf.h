/* SPDX-License-Identifier: MIT */
/*
 * Runs a filter as the kernel would, for any architecture, number and arguments: an
 * interpreter of the instructions of classic BPF that filters are made of. One that it
 * does not know, or that seccomp(2) would not take, gives BPF_BROKEN, which no filter
 * returns. For children, too: no assertion is in it.
 */
#ifndef VIV_TESTS_BPF_H
#define VIV_TESTS_BPF_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "executor/seccomp/filter.h"

#define BPF_REFUSED(error) (SECCOMP_RET_ERRNO | (uint32_t)(error))
#define BPF_BROKEN         0x7ffe0000U

static inline bool bpf_holds(const struct sock_filter *test, uint32_t accumulator) {
    switch (BPF_OP(test->code)) {
    case BPF_JEQ:
        return accumulator == test->k;
    case BPF_JGT:
        return accumulator > test->k;
    case BPF_JGE:
        return accumulator >= test->k;
    default:
        return accumulator & test->k;
    }
}

static inline bool bpf_is_test(unsigned code) {
    return code == (BPF_JMP | BPF_JEQ | BPF_K) || code == (BPF_JMP | BPF_JGT | BPF_K) ||
           code == (BPF_JMP | BPF_JGE | BPF_K) || code == (BPF_JMP | BPF_JSET | BPF_K);
}

/* The verdict: SECCOMP_RET_..., with the error of SECCOMP_RET_ERRNO. */
static inline uint32_t bpf_run(const struct seccomp_filter *filter,
                               const struct seccomp_data *data) {
    uint32_t accumulator = 0;

    for (size_t at = 0; at < filter->count; at++) {
        const struct sock_filter *now = &filter->instructions[at];
        if (now->code == (BPF_RET | BPF_K))
            return now->k;
        if (now->code == (BPF_LD | BPF_W | BPF_ABS) && now->k % 4 == 0 &&
            now->k < sizeof *data)
            memcpy(&accumulator, (const char *)data + now->k, sizeof accumulator);
        else if (now->code == (BPF_ALU | BPF_AND | BPF_K))
            accumulator &= now->k;
        else if (now->code == (BPF_JMP | BPF_JA))
            at += now->k;
        else if (bpf_is_test(now->code))
            at += bpf_holds(now, accumulator) ? now->jt : now->jf;
        else {
            fprintf(stderr, "instruction %zu: code %#x, %#x\n", at, now->code, now->k);
            return BPF_BROKEN;
        }
    }
    fprintf(stderr, "the program has no end\n");
    return BPF_BROKEN;
}

/* The verdict on a call. */
static inline uint32_t bpf_judge(const struct seccomp_filter *filter, uint32_t audit,
                                 uint32_t number, const uint64_t arguments[6]) {
    struct seccomp_data data = {.nr = (int)number, .arch = audit};

    memcpy(data.args, arguments, sizeof data.args);
    return bpf_run(filter, &data);
}

#endif
