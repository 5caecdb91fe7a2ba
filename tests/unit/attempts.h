/* SPDX-License-Identifier: MIT */
/* System calls that are tried in a child behind a filter, and what becomes of them. */
#ifndef VIV_TESTS_ATTEMPTS_H
#define VIV_TESTS_ATTEMPTS_H

#include "tests/unit/bpf.h"
#include "tests/unit/child.h"

#include <sys/resource.h>
#include <sys/syscall.h>

#include "executor/seccomp/architecture.h"

#define HIGH (UINT64_C(1) << 32)

/* One call and the errno that it gives; 0: it succeeds. */
struct attempt {
    const char *name;
    uint64_t arguments[6];
    uint32_t number;
    int expected;
};

#define CALL(call, error, ...)                                                           \
    {                                                                                    \
        .name = #call, .number = SYS_##call, .arguments = {__VA_ARGS__},                 \
        .expected = (error)                                                              \
    }

/* In a child: nothing but the filter is between it and the kernel afterwards. */
static inline void load_filter(const struct seccomp_filter *filter) {
    const struct rlimit none = {0, 0};
    struct viv_error err;

    REQUIRE(setrlimit(RLIMIT_CORE, &none) == 0);
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (seccomp_filter_load(filter, &err)) {
        fprintf(stderr, "%s\n", err.message);
        _exit(CHILD_FAILED);
    }
}

/* Makes the call; returns its errno, or 0. */
static inline int attempt_make(const struct attempt *attempt) {
    const uint64_t *a = attempt->arguments;

    errno = 0;
    long result = syscall(attempt->number, a[0], a[1], a[2], a[3], a[4], a[5]);
    return result == -1 ? errno : 0;
}

static inline bool attempt_went(const struct attempt *attempt, int error) {
    if (error == attempt->expected)
        return true;
    fprintf(stderr, "%s(%#llx, %#llx, ...): errno %d (%s) in place of %d\n",
            attempt->name, (unsigned long long)attempt->arguments[0],
            (unsigned long long)attempt->arguments[1], error, strerror(error),
            attempt->expected);
    return false;
}

/* Tries all; returns how many went another way. */
static inline int try_all(const struct attempt *attempts, size_t count) {
    int wrong = 0;

    for (size_t i = 0; i < count; i++)
        wrong += !attempt_went(&attempts[i], attempt_make(&attempts[i]));
    return wrong;
}

/* The same for calls that the filter itself refuses: the kernel and the interpreter of
 * the tests must both say so. */
static inline int try_refused(const struct seccomp_filter *filter,
                              const struct attempt *attempts, size_t count) {
    int wrong = try_all(attempts, count);

    for (size_t i = 0; i < count; i++) {
        const struct attempt *one = &attempts[i];
        uint32_t verdict =
            bpf_judge(filter, seccomp_native()->audit, one->number, one->arguments);
        if (verdict == BPF_REFUSED(one->expected))
            continue;
        fprintf(stderr, "%s (number %zu): verdict %#x\n", one->name, i, verdict);
        wrong++;
    }
    return wrong;
}

#endif
