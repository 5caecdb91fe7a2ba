/* SPDX-License-Identifier: MIT */
/*
 * The programs of all filters for both architectures, judged by an interpreter over every
 * number and many arguments: what rules with arguments let through, that nothing else
 * looks at arguments, that the architectures agree, and that the kernel does, too.
 */
#include "tests/unit/unit.h"

#include <linux/audit.h>
#include <seccomp.h>

#include "common/cleanup.h"
#include "common/sanitizer.h"
#include "executor/seccomp/preface.h"
#include "executor/seccomp/supervisor_filter.h"
#include "tests/unit/attempts.h"
#include "tests/unit/seccomp_rules.h"

#define NUMBERS 601 /* from 0 on; no call has a higher one yet */

/* ---- arguments ---- */

static const uint64_t values[] = {
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    15,
    17,
    37,
    F_DUPFD_CLOEXEC,
    F_SETPIPE_SZ,
    F_GETPIPE_SZ,
    F_ADD_SEALS,
    F_SETLEASE,
    TCGETS,
    TIOCSCTTY,
    TIOCSTI,
    TIOCGWINSZ,
    FIONREAD,
    FIONBIO,
    FIONCLEX,
    FIOCLEX,
    FIOASYNC,
    O_TMPFILE,
    O_TMPFILE & ~O_DIRECTORY,
    O_TMPFILE | O_RDWR | O_CLOEXEC,
    O_DIRECTORY | O_CLOEXEC,
    HIGH | O_TMPFILE,
    THREAD,
    THREAD | CLONE_SETTLS | CLONE_PARENT_SETTID,
    THREAD | CLONE_NEWUSER,
    THREAD | SIGCHLD,
    THREAD & ~CLONE_THREAD,
    THREAD | HIGH,
    SOCK_STREAM | SOCK_CLOEXEC,
    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
    SOCK_DGRAM | SOCK_CLOEXEC,
    MAP_PRIVATE | MAP_ANONYMOUS,
    MAP_SHARED | MAP_ANONYMOUS,
    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK,
    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
    OWN_PID,
    OWN_PID + 1,
    0x7fffffff,
    0x80000000,
    0xffffffff,
    HIGH,
    HIGH | 1,
    HIGH | SIGKILL,
    HIGH | OWN_PID,
    HIGH | F_GETFD,
    HIGH | FIONREAD,
    UINT64_MAX,
    (uint64_t)-OWN_PID,
};

enum { BASES = 2, SINGLE = BASES * 6 * (int)COUNT_OF(values), PAIRS = 600 };

#define PATTERNS (SINGLE + PAIRS)

static uint64_t patterns[PATTERNS][6];

/* Each value in each place, the rest zero or all ones, and pairs in the places that rules
 * look at together: the first two and the third and fourth. */
static void make_patterns(void) {
    uint64_t random = 1;
    int at = 0;

    for (int base = 0; base < BASES; base++)
        for (int place = 0; place < 6; place++)
            for (size_t i = 0; i < COUNT_OF(values); i++, at++) {
                memset(patterns[at], base ? 0xff : 0, sizeof patterns[at]);
                patterns[at][place] = values[i];
            }
    for (; at < PATTERNS; at++) {
        for (int place = 0; place < 4; place++) {
            random = random * UINT64_C(6364136223846793005) + 1;
            patterns[at][place] = values[(random >> 33) % COUNT_OF(values)];
        }
        if (at % 3 == 0)
            patterns[at][0] = AF_UNIX;
        if (at % 3 == 1)
            patterns[at][3] = MAP_PRIVATE | MAP_ANONYMOUS;
        if (at % 3 == 2)
            patterns[at][0] = OWN_PID;
    }
}

/* ---- the programs ---- */

enum { X86_64, ARM64, ARCHITECTURES };

static const struct seccomp_architecture *const architectures[ARCHITECTURES] = {
    [X86_64] = &seccomp_x86_64,
    [ARM64] = &seccomp_arm64,
};

static struct seccomp_filter filters[COUNT_OF(kinds)][ARCHITECTURES];

static int build_filters(void **state) {
    (void)state;
    make_patterns();
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        for (int a = 0; a < ARCHITECTURES; a++) {
            struct seccomp_filter *filter = &filters[k][a];
            if (kinds[k].supervisor
                    ? supervisor_filter_build_for(architectures[a], filter,
                                                  kinds[k].in_pid_namespace, NULL)
                    : worker_filter_build_for(architectures[a], filter, &kinds[k].options,
                                              NULL))
                return -1;
            seccomp_filter_set_pid(filter, OWN_PID);
        }
    return 0;
}

static int clear_filters(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        for (int a = 0; a < ARCHITECTURES; a++)
            seccomp_filter_clear(&filters[k][a]);
    return 0;
}

static uint32_t judge(size_t kind, int architecture, uint32_t number,
                      const uint64_t *arguments) {
    return bpf_judge(&filters[kind][architecture], architectures[architecture]->audit,
                     number, arguments);
}

/* The name that a number has, or NULL; the caller frees it. */
static char *name_of(int architecture, uint32_t number) {
    return seccomp_syscall_resolve_num_arch(architectures[architecture]->token,
                                            (int)number);
}

/* ---- the tests ---- */

#define FOR_ALL_PROGRAMS(kind, architecture)                                             \
    for (size_t kind = 0; kind < COUNT_OF(kinds); kind++)                                \
        for (int architecture = 0; architecture < ARCHITECTURES; architecture++)

/* A call with a rule goes as its predicate says, both ways at least once. */
static void check_rule(size_t kind, int architecture, uint32_t number,
                       const struct rule *rule) {
    int allowed = 0;

    for (int p = 0; p < PATTERNS; p++) {
        uint32_t verdict = judge(kind, architecture, number, patterns[p]);
        allowed += verdict == SECCOMP_RET_ALLOW;
        if (verdict != rule->verdict(patterns[p]))
            fail_msg("%s, %s: verdict %#x on arguments %d", kinds[kind].title, rule->name,
                     verdict, p);
    }
    assert_in_range(allowed, 1, PATTERNS - 1);
}

/* Any other one goes one way. */
static void check_constant(size_t kind, int architecture, uint32_t number) {
    const uint32_t verdict = judge(kind, architecture, number, patterns[0]);

    if (number > NEWEST_REVIEWED_CALL)
        assert_int_equal(verdict, BPF_REFUSED(ENOSYS));
    else if (verdict != SECCOMP_RET_ALLOW && verdict != BPF_REFUSED(EPERM))
        assert_true(!kinds[kind].supervisor &&
                    (verdict == BPF_REFUSED(ENOSYS) || verdict == BPF_REFUSED(ENOTSUP)));
    for (int p = 0; p < PATTERNS; p++)
        if (judge(kind, architecture, number, patterns[p]) != verdict)
            fail_msg("%s: number %u: arguments %d matter", kinds[kind].title, number, p);
}

static void only_rules_look_at_arguments(void **state) {
    (void)state;
    FOR_ALL_PROGRAMS(k, a) {
        for (uint32_t number = 0; number < NUMBERS; number++) {
            CLEANUP(free_ptr) char *name = name_of(a, number);
            const struct rule *rule = rule_of(&kinds[k], name);
            if (rule)
                check_rule(k, a, number, rule);
            else
                check_constant(k, a, number);
            if (!name)
                assert_int_not_equal(judge(k, a, number, patterns[0]), SECCOMP_RET_ALLOW);
        }
    }
}

/* What both have goes the same way on both; what only one has of the allowed is said
 * here. */
static void both_architectures_allow_the_same(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        size_t common = 0;
        for (uint32_t number = 0; number < NUMBERS; number++) {
            CLEANUP(free_ptr) char *name = name_of(ARM64, number);
            int other =
                name ? seccomp_syscall_resolve_name_arch(SCMP_ARCH_X86_64, name) : -1;
            for (int p = 0; p < PATTERNS; p++) {
                uint32_t verdict = judge(k, ARM64, number, patterns[p]);
                common += p == 0 && verdict == SECCOMP_RET_ALLOW;
                if (other >= 0)
                    assert_int_equal(verdict,
                                     judge(k, X86_64, (uint32_t)other, patterns[p]));
                else
                    assert_int_not_equal(verdict, SECCOMP_RET_ALLOW);
            }
        }
        assert_true(common > (kinds[k].supervisor ? 30 : 100));
    }
}

/* Calls that x86-64 alone has. Each is an older form of one that both have. */
static void what_one_architecture_lacks_is_known(void **state) {
    static const char *const older[] = {
        "dup2",     "open",   "stat",         "lstat",      "access",
        "readlink", "rename", "link",         "symlink",    "unlink",
        "mkdir",    "rmdir",  "chmod",        "utimes",     "futimesat",
        "utime",    "pause",  "time",         "alarm",      "pipe",
        "select",   "poll",   "epoll_create", "epoll_wait", "getpgrp",
    };

    (void)state;
    FOR_ALL_PROGRAMS(k, a) {
        for (uint32_t number = 0; a == X86_64 && number < NUMBERS; number++) {
            CLEANUP(free_ptr) char *name = name_of(X86_64, number);
            if (!name || judge(k, X86_64, number, patterns[0]) != SECCOMP_RET_ALLOW ||
                seccomp_syscall_resolve_name_arch(SCMP_ARCH_AARCH64, name) >= 0)
                continue;
            bool known = false;
            for (size_t i = 0; i < COUNT_OF(older); i++)
                known |= strcmp(older[i], name) == 0;
            if (!known)
                fail_msg("arm64 has no %s", name);
        }
    }
}

static void newer_numbers_are_unknown(void **state) {
    static const uint32_t numbers[] = {463, 512, 547, 1000, 4000, 0xffff, 0x3fffffff};

    (void)state;
    FOR_ALL_PROGRAMS(k, a) {
        for (size_t i = 0; i < COUNT_OF(numbers); i++)
            for (int p = 0; p < PATTERNS; p++)
                assert_int_equal(judge(k, a, numbers[i], patterns[p]),
                                 BPF_REFUSED(ENOSYS));
        /* No call at all: what a tracer leaves. */
        assert_int_equal(judge(k, a, UINT32_MAX, patterns[0]), BPF_REFUSED(EPERM));
    }
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        assert_int_equal(judge(k, ARM64, 0x40000000, patterns[0]), BPF_REFUSED(ENOSYS));
}

static void a_foreign_abi_kills(void **state) {
    static const uint32_t foreign[] = {AUDIT_ARCH_I386,  AUDIT_ARCH_X86_64,
                                       AUDIT_ARCH_ARM,   AUDIT_ARCH_AARCH64,
                                       AUDIT_ARCH_S390X, 0};

    (void)state;
    FOR_ALL_PROGRAMS(k, a) {
        for (uint32_t number = 0; number < NUMBERS; number++)
            for (size_t i = 0; i < COUNT_OF(foreign); i++)
                if (foreign[i] != architectures[a]->audit)
                    assert_int_equal(
                        bpf_judge(&filters[k][a], foreign[i], number, patterns[0]),
                        SECCOMP_RET_KILL_PROCESS);
        for (uint32_t number = 0; a == X86_64 && number < NUMBERS; number++)
            assert_int_equal(judge(k, X86_64, 0x40000000 | number, patterns[0]),
                             SECCOMP_RET_KILL_PROCESS);
    }
}

/* What changes from one of the kinds to the next, and nothing else. */
static const struct difference {
    size_t kind; /* and the one before it */
    const char *names[8];
} differences[] = {
    {1, {"kill", "tgkill", "open", "openat", "openat2", "fallocate"}},
    {2, {"chmod", "fchmodat", "utimensat", "utimes", "futimesat", "utime", "truncate"}},
    {4, {"kill", "pidfd_send_signal", "tgkill", "fchmod", "fchmodat"}},
};

static bool differs(size_t kind, uint32_t number) {
    for (int p = 0; p < PATTERNS; p++)
        if (judge(kind - 1, X86_64, number, patterns[p]) !=
            judge(kind, X86_64, number, patterns[p]))
            return true;
    return false;
}

static void tiers_differ_in_few_calls(void **state) {
    (void)state;
    for (const struct difference *one = differences;
         one < differences + COUNT_OF(differences); one++) {
        size_t count = 0, found = 0;
        while (one->names[count])
            count++;
        for (uint32_t number = 0; number < NUMBERS; number++) {
            CLEANUP(free_ptr) char *name = name_of(X86_64, number);
            bool expected = false;
            for (size_t i = 0; name && i < count; i++)
                expected |= strcmp(name, one->names[i]) == 0;
            if (differs(one->kind, number) != expected)
                fail_msg("%s: number %u", kinds[one->kind].title, number);
            found += expected;
        }
        assert_int_equal(found, count);
    }
}

/* uretprobe and uprobe of x86-64, which a kernel from 6.14 on makes before it asks a
 * filter: code that has such a probe must not break. Without one they end the process or
 * fail. */
static bool passes_every_filter(uint32_t number) {
    return seccomp_native() == &seccomp_x86_64 && (number == 335 || number == 336);
}

/* Makes every call that the interpreter says is refused: none is made in truth. */
static int try_every_refusal(void *context) {
    const size_t kind = *(const size_t *)context;
    const int native = seccomp_native() == &seccomp_arm64 ? ARM64 : X86_64;
    int wrong = 0;

    load_filter(&filters[kind][native]);
    for (uint32_t number = 0; number < NUMBERS; number++)
        for (int p = 0; p < PATTERNS && wrong < 10; p++) {
            uint32_t verdict = judge(kind, native, number, patterns[p]);
            struct attempt attempt = {.name = "a number",
                                      .number = number,
                                      .expected = (int)(verdict & SECCOMP_RET_DATA)};
            memcpy(attempt.arguments, patterns[p], sizeof patterns[p]);
            if (!passes_every_filter(number) &&
                (verdict & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO &&
                !attempt_went(&attempt, attempt_make(&attempt)))
                wrong += printf("number %u, arguments %d\n", number, p) > 0;
        }
    return wrong;
}

static void the_kernel_refuses_the_same(void **state) {
    (void)state;
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        if (!kinds[k].supervisor || !BUILT_WITH_ADDRESS_SANITIZER)
            in_child(try_every_refusal, &k);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_rules_look_at_arguments),
        cmocka_unit_test(both_architectures_allow_the_same),
        cmocka_unit_test(what_one_architecture_lacks_is_known),
        cmocka_unit_test(newer_numbers_are_unknown),
        cmocka_unit_test(a_foreign_abi_kills),
        cmocka_unit_test(tiers_differ_in_few_calls),
        cmocka_unit_test(the_kernel_refuses_the_same),
    };
    return cmocka_run_group_tests(tests, build_filters, clear_filters);
}
