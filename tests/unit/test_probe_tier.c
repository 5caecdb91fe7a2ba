/* SPDX-License-Identifier: MIT */
/* Which tier follows from what works: probe_tier.c. */
#include "executor/launcher/probe.h"
#include "tests/unit/unit.h"

#include <stdio.h>

#define ROWS_IN_NAMESPACES (PROBE_ROOT_CHANGE + 1)

static void nothing_works(struct probe_report *report) {
    *report = (struct probe_report){0};
    for (enum probe_row i = 0; i < PROBE_CONTROL_COUNT; i++)
        probe_set(report, i, PROBE_REFUSED, "Operation not permitted");
    probe_set(report, PROBE_WHOLE_SANDBOX, PROBE_ABSENT, "not tried");
}

static void works(struct probe_report *report, enum probe_row first,
                  enum probe_row last) {
    for (enum probe_row i = first; i <= last; i++)
        probe_set(report, i, PROBE_WORKS, "");
}

static void everything_works(struct probe_report *report) {
    nothing_works(report);
    works(report, 0, PROBE_CONTROL_COUNT - 1);
}

static void assert_concludes(struct probe_report *report, enum isolation_tier tier,
                             const char *weaker) {
    probe_conclude(report);
    assert_true(report->usable);
    assert_string_equal(isolation_name(report->tier), isolation_name(tier));
    assert_string_equal(report->weaker, weaker);
}

static void where_everything_works_the_tier_is_full(void **state) {
    struct probe_report report;

    (void)state;
    everything_works(&report);
    assert_concludes(&report, ISOLATION_FULL, "");
    for (enum probe_row i = 0; i < PROBE_CONTROL_COUNT; i++) {
        assert_non_null(report.controls[i].name);
        assert_non_null(report.controls[i].needed_for);
        assert_non_null(report.controls[i].remedy);
    }
}

static void without_a_controller_it_is_isolated(void **state) {
    struct probe_report report;

    (void)state;
    for (enum probe_row i = PROBE_MEMORY_CONTROLLER; i <= PROBE_CPU_CONTROLLER; i++) {
        everything_works(&report);
        probe_set(&report, i, PROBE_ABSENT, "not delegated");
        char expected[100];
        snprintf(expected, sizeof expected, "%s: not delegated", report.controls[i].name);
        assert_concludes(&report, ISOLATION_ISOLATED, expected);
    }
}

static void reasons_that_are_the_same_are_told_once(void **state) {
    struct probe_report report;

    (void)state;
    everything_works(&report);
    probe_set(&report, PROBE_MEMORY_CONTROLLER, PROBE_REFUSED, "no");
    probe_set(&report, PROBE_PIDS_CONTROLLER, PROBE_REFUSED, "no");
    probe_set(&report, PROBE_CPU_CONTROLLER, PROBE_REFUSED, "never");
    assert_concludes(&report, ISOLATION_ISOLATED,
                     "memory controller, pids controller: no; cpu controller: never");
}

/* Controllers do not make up for it. */
static void without_one_of_the_namespaces_it_is_confined(void **state) {
    struct probe_report report;

    (void)state;
    for (enum probe_row i = 0; i < ROWS_IN_NAMESPACES; i++) {
        everything_works(&report);
        probe_set(&report, i, PROBE_REFUSED, "EPERM");
        char expected[100];
        snprintf(expected, sizeof expected, "%s: EPERM", report.controls[i].name);
        assert_concludes(&report, ISOLATION_CONFINED, expected);
    }
}

static void what_was_not_tried_is_no_reason(void **state) {
    struct probe_report report;

    (void)state;
    everything_works(&report);
    probe_set(&report, PROBE_USER_NAMESPACE, PROBE_REFUSED, "EPERM");
    for (enum probe_row i = PROBE_USER_NAMESPACE + 1; i < ROWS_IN_NAMESPACES; i++)
        probe_set(&report, i, PROBE_ABSENT, "not tried");
    assert_concludes(&report, ISOLATION_CONFINED, "user namespace: EPERM");
}

static void assert_matters(const struct probe_report *report, enum probe_row row,
                           bool matters) {
    if (report->controls[row].matters != matters)
        fail_msg("%s matters: %d", report->controls[row].name, !matters);
}

static void what_would_give_a_better_tier_matters(void **state) {
    struct probe_report report;

    (void)state;
    nothing_works(&report);
    works(&report, 0, ROWS_IN_NAMESPACES - 1);
    works(&report, PROBE_NO_NEW_PRIVS, PROBE_SECCOMP);
    probe_conclude(&report);
    assert_matters(&report, PROBE_USER_NAMESPACE, false);
    assert_matters(&report, PROBE_CPU_CONTROLLER, true);
    assert_matters(&report, PROBE_CHROOT, false); /* of a lesser tier */
    assert_matters(&report, PROBE_SLOT_DIRECTORY, false);
    assert_matters(&report, PROBE_LANDLOCK, true);
    assert_matters(&report, PROBE_OOM_SCORE, true);
    nothing_works(&report);
    works(&report, PROBE_CAPABILITIES, PROBE_OOM_SCORE);
    probe_conclude(&report);
    assert_matters(&report, PROBE_USER_NAMESPACE, true);
    assert_matters(&report, PROBE_PID_NAMESPACE, false); /* was not tried */
    assert_matters(&report, PROBE_CPU_CONTROLLER, false);
    assert_matters(&report, PROBE_LANDLOCK, false);
}

static void controllers_are_those_of_the_control_groups(void **state) {
    const struct cgroups cgroups = {.controllers = {[CGROUP_MEMORY] = {.enabled = true},
                                                    [CGROUP_PIDS] = {.enabled = true},
                                                    [CGROUP_CPU] = {.reason = "busy"}}};
    struct probe_report report;

    (void)state;
    everything_works(&report);
    probe_set(&report, PROBE_MEMORY_CONTROLLER, PROBE_ABSENT, "not asked");
    probe_set_controllers(&report, &cgroups);
    assert_int_equal(report.controls[PROBE_MEMORY_CONTROLLER].state, PROBE_WORKS);
    assert_int_equal(report.controls[PROBE_PIDS_CONTROLLER].state, PROBE_WORKS);
    assert_int_equal(report.controls[PROBE_CPU_CONTROLLER].state, PROBE_ABSENT);
    assert_int_equal(report.tier, ISOLATION_ISOLATED);
    assert_string_equal(report.weaker, "cpu controller: busy");
}

static void confined_does_without_landlock(void **state) {
    struct probe_report report;

    (void)state;
    nothing_works(&report);
    works(&report, PROBE_CAPABILITIES, PROBE_SECCOMP);
    probe_set(&report, PROBE_LANDLOCK, PROBE_ABSENT, "none");
    assert_concludes(&report, ISOLATION_CONFINED,
                     "user namespace: Operation not permitted");
}

static void minimal_needs_landlock(void **state) {
    struct probe_report report;

    (void)state;
    nothing_works(&report);
    works(&report, PROBE_SLOT_DIRECTORY, PROBE_SECCOMP);
    assert_concludes(&report, ISOLATION_MINIMAL,
                     "user namespace, capabilities of root, chroot, change of user, "
                     "bounding set, secure bits: Operation not permitted");
    probe_set(&report, PROBE_LANDLOCK, PROBE_ABSENT, "none");
    probe_conclude(&report);
    assert_false(report.usable);
    assert_non_null(strstr(report.weaker, "; Landlock: none"));
}

static void without_what_all_need_there_is_no_tier(void **state) {
    struct probe_report report;

    (void)state;
    for (enum probe_row i = PROBE_NO_NEW_PRIVS; i <= PROBE_SECCOMP; i++) {
        everything_works(&report);
        probe_set(&report, i, PROBE_REFUSED, "EPERM");
        probe_conclude(&report);
        assert_false(report.usable);
        assert_non_null(strstr(report.weaker, report.controls[i].name));
    }
}

static void what_nobody_needs_may_fail(void **state) {
    struct probe_report report;

    (void)state;
    everything_works(&report);
    probe_set(&report, PROBE_OOM_SCORE, PROBE_REFUSED, "EACCES");
    assert_concludes(&report, ISOLATION_FULL, "");
}

static void long_reasons_are_cut(void **state) {
    char reason[2 * PROBE_REASON_SIZE];
    struct probe_report report;

    (void)state;
    nothing_works(&report);
    memset(reason, 'x', sizeof reason - 1);
    reason[sizeof reason - 1] = '\0';
    for (enum probe_row i = 0; i < PROBE_CONTROL_COUNT; i++) {
        reason[0] = (char)('a' + i);
        probe_set(&report, i, PROBE_REFUSED, reason);
        assert_int_equal(strlen(report.controls[i].reason), PROBE_REASON_SIZE - 1);
    }
    probe_conclude(&report);
    assert_int_equal(strlen(report.weaker), sizeof report.weaker - 1);
}

/* Until somebody has tried, nothing follows from it. */
static void a_sandbox_that_cannot_be_made_is_a_reason(void **state) {
    struct probe_report report;

    (void)state;
    everything_works(&report);
    probe_set(&report, PROBE_WHOLE_SANDBOX, PROBE_ABSENT, "not tried");
    assert_concludes(&report, ISOLATION_FULL, "");
    probe_set(&report, PROBE_WHOLE_SANDBOX, PROBE_REFUSED, "mount: EACCES");
    assert_concludes(&report, ISOLATION_CONFINED, "a whole sandbox: mount: EACCES");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(where_everything_works_the_tier_is_full),
        cmocka_unit_test(without_a_controller_it_is_isolated),
        cmocka_unit_test(reasons_that_are_the_same_are_told_once),
        cmocka_unit_test(without_one_of_the_namespaces_it_is_confined),
        cmocka_unit_test(what_was_not_tried_is_no_reason),
        cmocka_unit_test(what_would_give_a_better_tier_matters),
        cmocka_unit_test(controllers_are_those_of_the_control_groups),
        cmocka_unit_test(confined_does_without_landlock),
        cmocka_unit_test(minimal_needs_landlock),
        cmocka_unit_test(without_what_all_need_there_is_no_tier),
        cmocka_unit_test(what_nobody_needs_may_fail),
        cmocka_unit_test(long_reasons_are_cut),
        cmocka_unit_test(a_sandbox_that_cannot_be_made_is_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
