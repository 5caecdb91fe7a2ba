/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>

static void fills_and_returns(void **state) {
    struct viv_error err;

    (void)state;
    assert_int_equal(viv_fail(&err, VIV_BUSY, "%d of %s", 3, "four"), -1);
    assert_int_equal(err.code, VIV_BUSY);
    assert_string_equal(err.message, "3 of four");
    assert_null(viv_fail_null(&err, VIV_SYSTEM, "no %c", 'x'));
    assert_int_equal(err.code, VIV_SYSTEM);
    assert_string_equal(err.message, "no x");
}

static void knows_errno(void **state) {
    struct viv_error err;

    (void)state;
    errno = ENOENT;
    viv_fail(&err, VIV_SYSTEM, "open: %m");
    assert_string_equal(err.message, "open: No such file or directory");
}

static void cuts_long_messages(void **state) {
    char longer[2 * VIV_ERROR_MESSAGE_MAX];
    struct viv_error err;

    (void)state;
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    viv_fail(&err, VIV_SYSTEM, "%s", longer);
    assert_int_equal(strlen(err.message), VIV_ERROR_MESSAGE_MAX - 1);
}

static void a_limit_is_named_until_the_next_failure(void **state) {
    struct viv_error err;

    (void)state;
    assert_int_equal(viv_refuse(&err, VIV_CAPACITY, "max_sessions", "%d are enough", 2),
                     -1);
    assert_int_equal(err.code, VIV_CAPACITY);
    assert_string_equal(err.message, "2 are enough");
    assert_string_equal(err.limit, "max_sessions");
    viv_fail(&err, VIV_SYSTEM, "another one");
    assert_null(err.limit);
}

static void works_without_a_place(void **state) {
    (void)state;
    assert_int_equal(viv_fail(NULL, VIV_SYSTEM, "nobody listens"), -1);
    assert_int_equal(viv_refuse(NULL, VIV_BUSY, "max_queued", "nobody listens"), -1);
    assert_null(viv_fail_null(NULL, VIV_SYSTEM, "nobody listens"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_and_returns),
        cmocka_unit_test(knows_errno),
        cmocka_unit_test(cuts_long_messages),
        cmocka_unit_test(a_limit_is_named_until_the_next_failure),
        cmocka_unit_test(works_without_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
