/* SPDX-License-Identifier: MIT */
/*
 * The two filters of a worker that is copied, judged by an interpreter: the one whose
 * listener decides, and the list that lets its calls through. Together they leave one
 * clone(2) to the supervisor and refuse every other process.
 */
#include "tests/unit/unit.h"

#include <sys/syscall.h>

#include "executor/checkpoint.h"
#include "executor/seccomp/architecture.h"
#include "executor/seccomp/checkpoint_filter.h"
#include "tests/unit/seccomp_rules.h"

#define NUMBERS 601 /* from 0 on; no call has a higher one yet */

static struct seccomp_filter list;
static struct sock_filter instructions[CHECKPOINT_FILTER_SIZE];
static const struct seccomp_filter decided = {instructions, CHECKPOINT_FILTER_SIZE, 0};

static int build_filters(void **state) {
    const struct worker_filter_options options = {.kill = KILL_IN_PID_NAMESPACE,
                                                  .copies = true};

    (void)state;
    checkpoint_filter_write(instructions);
    return worker_filter_build(&list, &options, NULL);
}

static int clear_filter(void **state) {
    (void)state;
    seccomp_filter_clear(&list);
    return 0;
}

static uint32_t judge(const struct seccomp_filter *filter, long number, uint64_t first) {
    const uint64_t arguments[6] = {first};

    return bpf_judge(filter, seccomp_native()->audit, (uint32_t)number, arguments);
}

static void the_copy_and_its_parking_are_decided(void **state) {
    (void)state;
    assert_int_equal(judge(&decided, SYS_clone, CHECKPOINT_CLONE_FLAGS),
                     SECCOMP_RET_USER_NOTIF);
    assert_int_equal(judge(&list, SYS_clone, CHECKPOINT_CLONE_FLAGS), SECCOMP_RET_ALLOW);
    assert_int_equal(judge(&decided, SYS_getppid, CHECKPOINT_PARK),
                     SECCOMP_RET_USER_NOTIF);
    assert_int_equal(judge(&list, SYS_getppid, CHECKPOINT_PARK), SECCOMP_RET_ALLOW);
}

static void one_bit_off_makes_no_process(void **state) {
    (void)state;
    for (int bit = 0; bit < 64; bit++) {
        const uint64_t flags = CHECKPOINT_CLONE_FLAGS ^ UINT64_C(1) << bit;
        const uint64_t parking = CHECKPOINT_PARK ^ UINT64_C(1) << bit;
        assert_int_equal(judge(&decided, SYS_clone, flags), SECCOMP_RET_ALLOW);
        assert_int_equal(judge(&list, SYS_clone, flags), BPF_REFUSED(EPERM));
        assert_int_equal(judge(&decided, SYS_getppid, parking), SECCOMP_RET_ALLOW);
        assert_int_equal(judge(&list, SYS_getppid, parking), SECCOMP_RET_ALLOW);
    }
}

static void nothing_else_is_decided(void **state) {
    (void)state;
    for (long number = 0; number < NUMBERS; number++) {
        if (number != SYS_clone)
            assert_int_equal(judge(&decided, number, CHECKPOINT_CLONE_FLAGS),
                             SECCOMP_RET_ALLOW);
        if (number != SYS_getppid)
            assert_int_equal(judge(&decided, number, CHECKPOINT_PARK), SECCOMP_RET_ALLOW);
    }
}

static void no_other_call_makes_a_process(void **state) {
    (void)state;
    assert_int_equal(judge(&list, SYS_clone3, CHECKPOINT_CLONE_FLAGS),
                     BPF_REFUSED(ENOSYS));
#ifdef SYS_fork
    assert_int_equal(judge(&list, SYS_fork, 0), BPF_REFUSED(EPERM));
    assert_int_equal(judge(&list, SYS_vfork, 0), BPF_REFUSED(EPERM));
#endif
}

/* Numbers of a foreign ABI mean other calls; the list ends the process for them. */
static void a_foreign_abi_is_left_to_the_list(void **state) {
    const uint32_t foreign = seccomp_native()->audit ^ 1;
    const uint64_t arguments[6] = {CHECKPOINT_CLONE_FLAGS};

    (void)state;
    assert_int_equal(bpf_judge(&decided, foreign, SYS_clone, arguments),
                     SECCOMP_RET_ALLOW);
    assert_int_equal(bpf_judge(&list, foreign, SYS_clone, arguments),
                     SECCOMP_RET_KILL_PROCESS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_copy_and_its_parking_are_decided),
        cmocka_unit_test(one_bit_off_makes_no_process),
        cmocka_unit_test(nothing_else_is_decided),
        cmocka_unit_test(no_other_call_makes_a_process),
        cmocka_unit_test(a_foreign_abi_is_left_to_the_list),
    };
    return cmocka_run_group_tests(tests, build_filters, clear_filter);
}
