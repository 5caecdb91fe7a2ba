/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <limits.h>
#include <time.h>

#include "common/clock.h"

static void never_goes_back(void **state) {
    viv_time before = viv_now();

    (void)state;
    assert_true(before > 0);
    for (int i = 0; i < 1000; i++) {
        viv_time now = viv_now();
        assert_true(now >= before);
        before = now;
    }
}

static void wall_time_is_that_of_people(void **state) {
    (void)state;
    int64_t seconds = viv_wall_ms() / 1000 - (int64_t)time(NULL);
    assert_true(seconds >= -2 && seconds <= 2);
}

static void deadlines_are_in_the_future(void **state) {
    (void)state;
    viv_time before = viv_now();
    viv_time deadline = viv_after_ms(5000);
    viv_time after = viv_now();
    assert_true(deadline >= before + 5 * VIV_SECOND &&
                deadline <= after + 5 * VIV_SECOND);
}

static void deadlines_do_not_overflow(void **state) {
    (void)state;
    assert_true(viv_after_ms(INT64_MAX) == VIV_TIME_NEVER);
    assert_true(viv_after_ms(INT64_MAX / VIV_MS) == VIV_TIME_NEVER);
}

static void rests_are_rounded_up(void **state) {
    (void)state;
    assert_int_equal(viv_poll_timeout(VIV_TIME_NEVER), -1);
    assert_int_equal(viv_poll_timeout(0), 0);
    assert_int_equal(viv_poll_timeout(viv_now() - 1), 0);
    assert_int_equal(viv_poll_timeout(VIV_TIME_NEVER - 1), INT_MAX);
    /* Rounded down it would never be 100000. */
    viv_time start, end;
    int rest;
    do {
        start = viv_now();
        rest = viv_poll_timeout(start + 100 * VIV_SECOND);
        end = viv_now();
    } while (end - start >= VIV_MS);
    assert_int_equal(rest, 100000);
}

static void each_failure_doubles_the_wait(void **state) {
    static const int64_t expected[] = {100, 200, 400, 800, 1000, 1000, 1000};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(expected); i++)
        assert_true(viv_backoff_ms((int)i + 1, 100, 1000) == expected[i]);
    assert_true(viv_backoff_ms(INT_MAX, 100, 1000) == 1000);
    assert_true(viv_backoff_ms(INT_MAX, 100, INT64_MAX) == INT64_MAX);
    assert_true(viv_backoff_ms(0, 100, 1000) == 100);
    assert_true(viv_backoff_ms(1, 100, 50) == 50);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_goes_back),
        cmocka_unit_test(wall_time_is_that_of_people),
        cmocka_unit_test(deadlines_are_in_the_future),
        cmocka_unit_test(deadlines_do_not_overflow),
        cmocka_unit_test(rests_are_rounded_up),
        cmocka_unit_test(each_failure_doubles_the_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
