/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <jansson.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "executor/launcher/check.h"

static const struct probe_control controls[] = {
    {"user namespace", "full, isolated", "one; two", PROBE_REFUSED, true,
     "unshare: \"no\""},
    {"mount namespace", "full, isolated", "five", PROBE_ABSENT, false, "not tried"},
    {"memory controller", "full", "one; two", PROBE_REFUSED, true, "none"},
    {"Landlock", "minimal", "three", PROBE_ABSENT, true, "none"},
    {"no_new_privs", "every tier", "four", PROBE_WORKS, false, ""},
};

/* The report of a host; the rows that are not in `controls` work. */
static struct probe_report made_up(enum isolation_tier tier, const char *weaker) {
    struct probe_report report = {.tier = tier, .usable = true, .landlock_abi = 3};

    for (size_t i = 0; i < PROBE_CONTROL_COUNT; i++)
        report.controls[i] = (struct probe_control){.name = "row", .needed_for = "x"};
    memcpy(report.controls, controls, sizeof controls);
    snprintf(report.weaker, sizeof report.weaker, "%s", weaker);
    return report;
}

typedef void printer(const struct probe_report *, const char *, FILE *);

static char *printed(printer *print, const struct probe_report *report,
                     const char *min_isolation) {
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    print(report, min_isolation, to);
    fclose(to);
    return text;
}

static void assert_has(const char *text, const char *part) {
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void people_are_told_what_may_help(void **state) {
    const struct probe_report report = made_up(ISOLATION_CONFINED, "a: b; c: d");
    CLEANUP(free_ptr) char *text = printed(check_print, &report, "minimal");

    (void)state;
    assert_has(text, "user namespace              refused: unshare: \"no\"\n"
                     "    for: full, isolated\n"
                     "    try: one\n"
                     "    try: two\n"
                     /* what does not matter needs no remedy */
                     "mount namespace             absent: not tried\n"
                     /* the same remedy is said once */
                     "memory controller           refused: none\n"
                     "Landlock                    absent: none\n"
                     "    for: minimal\n"
                     "    try: three\n"
                     "no_new_privs                ok\n"
                     "row  ");
    assert_has(text, "\ntier: confined (min_isolation is minimal)\n"
                     "not a better one for:\n"
                     "    a: b\n"
                     "    c: d\n");
}

static void the_best_tier_needs_no_reason(void **state) {
    const struct probe_report report = made_up(ISOLATION_FULL, "");
    CLEANUP(free_ptr) char *text = printed(check_print, &report, "full");

    (void)state;
    assert_has(text, "\ntier: full (min_isolation is full)\n");
    assert_null(strstr(text, "better"));
}

static void people_are_told_that_it_would_not_start(void **state) {
    struct probe_report report = made_up(ISOLATION_CONFINED, "a: b");
    CLEANUP(free_ptr) char *text = printed(check_print, &report, "isolated");

    (void)state;
    assert_has(text, "tier: confined (min_isolation is isolated: vivarium-executor does "
                     "not start)\n");
    report.usable = false;
    CLEANUP(free_ptr) char *without = printed(check_print, &report, "minimal");
    assert_has(without,
               "tier: none (min_isolation is minimal: vivarium-executor does not "
               "start)\n");
}

static void the_status_is_that_of_the_tier(void **state) {
    static const struct {
        const char *min_isolation;
        enum isolation_tier tier;
        int status;
    } cases[] = {
        {"minimal", ISOLATION_FULL, 0},     {"full", ISOLATION_FULL, 0},
        {"minimal", ISOLATION_ISOLATED, 1}, {"full", ISOLATION_ISOLATED, 4},
        {"minimal", ISOLATION_CONFINED, 2}, {"confined", ISOLATION_CONFINED, 2},
        {"minimal", ISOLATION_MINIMAL, 3},  {"confined", ISOLATION_MINIMAL, 4},
    };
    struct probe_report report;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        report = made_up(cases[i].tier, "");
        assert_int_equal(check_status(&report, cases[i].min_isolation), cases[i].status);
    }
    report.usable = false;
    assert_int_equal(check_status(&report, "minimal"), 4);
}

static json_t *as_json(const struct probe_report *report, const char *min_isolation) {
    CLEANUP(free_ptr) char *text = printed(check_print_json, report, min_isolation);

    assert_int_equal(text[strlen(text) - 1], '\n');
    json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(value);
    return value;
}

static void machines_are_told_the_same(void **state) {
    const struct probe_report report = made_up(ISOLATION_CONFINED, "a: b; c: d");
    json_t *value = as_json(&report, "isolated"), *rows, *reasons;
    const char *tier, *minimum;
    int enough, abi;

    (void)state;
    assert_int_equal(json_unpack(value, "{s:s, s:s, s:b, s:i, s:o, s:o !}", "tier", &tier,
                                 "min_isolation", &minimum, "enough", &enough,
                                 "landlock_abi", &abi, "reasons", &reasons, "controls",
                                 &rows),
                     0);
    assert_string_equal(tier, "confined");
    assert_string_equal(minimum, "isolated");
    assert_false(enough);
    assert_int_equal(abi, 3);
    assert_int_equal(json_array_size(reasons), 2);
    assert_string_equal(json_string_value(json_array_get(reasons, 1)), "c: d");
    assert_int_equal(json_array_size(rows), PROBE_CONTROL_COUNT);
    json_decref(value);
}

static void assert_row(const json_t *row, const char *name, const char *said_state,
                       const char *said_reason, size_t remedies) {
    const char *its_name, *needed_for, *its_state, *reason;
    json_t *list;

    assert_int_equal(json_unpack((json_t *)row, "{s:s, s:s, s:s, s:s, s:o !}", "name",
                                 &its_name, "needed_for", &needed_for, "state",
                                 &its_state, "reason", &reason, "remedies", &list),
                     0);
    assert_string_equal(its_name, name);
    assert_string_equal(its_state, said_state);
    assert_string_equal(reason, said_reason);
    assert_int_equal(json_array_size(list), remedies);
}

static void machines_are_told_of_each_control(void **state) {
    const struct probe_report report = made_up(ISOLATION_ISOLATED, "");
    json_t *value = as_json(&report, "confined");
    const json_t *rows = json_object_get(value, "controls");

    (void)state;
    assert_true(json_is_true(json_object_get(value, "enough")));
    assert_row(json_array_get(rows, 0), "user namespace", "refused", "unshare: \"no\"",
               2);
    assert_row(json_array_get(rows, 1), "mount namespace", "absent", "not tried", 0);
    assert_row(json_array_get(rows, 2), "memory controller", "refused", "none", 2);
    assert_row(json_array_get(rows, 4), "no_new_privs", "works", "", 0);
    json_decref(value);
}

static void no_tier_is_none(void **state) {
    struct probe_report report = made_up(ISOLATION_MINIMAL, "a: b");

    (void)state;
    report.usable = false;
    json_t *value = as_json(&report, "minimal");
    assert_string_equal(json_string_value(json_object_get(value, "tier")), "none");
    assert_true(json_is_false(json_object_get(value, "enough")));
    json_decref(value);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(people_are_told_what_may_help),
        cmocka_unit_test(the_best_tier_needs_no_reason),
        cmocka_unit_test(people_are_told_that_it_would_not_start),
        cmocka_unit_test(the_status_is_that_of_the_tier),
        cmocka_unit_test(machines_are_told_the_same),
        cmocka_unit_test(machines_are_told_of_each_control),
        cmocka_unit_test(no_tier_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
