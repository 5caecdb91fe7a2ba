/* SPDX-License-Identifier: MIT */
#include "tests/unit/zygotes_bench.h"

static void one_that_does_not_answer_is_given_up(void **state) {
    struct zygote *zygote = &bench->zygotes.two[0];

    (void)state;
    start_ready();
    zygote->owes_since -= 3600 * VIV_SECOND; /* it owes nothing */
    zygotes_keep_time(&bench->zygotes);
    assert_true(zygote->process.ready);
    assert_int_equal(spawn(1), 0);
    zygote->owes_since -= 10 * VIV_SECOND;
    zygotes_keep_time(&bench->zygotes);
    assert_true(zygote->process.ready);
    zygote->owes_since -= 20 * VIV_SECOND;
    zygotes_keep_time(&bench->zygotes);
    assert_false(zygote->process.ready);
    assert_string_equal(bench->zygotes.reason, "the zygote does not answer");
}

static void one_that_does_not_become_ready_is_given_up(void **state) {
    struct zygote *zygote = &bench->zygotes.two[0];

    (void)state;
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 1);
    zygote->owes_since -= 30 * VIV_SECOND;
    zygotes_keep_time(&bench->zygotes);
    assert_true(zygote->process.socket >= 0);
    zygote->owes_since -= 60 * VIV_SECOND;
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(zygote->process.socket, -1);
    assert_string_equal(bench->zygotes.reason, "the zygote does not become ready");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_that_does_not_answer_is_given_up, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(one_that_does_not_become_ready_is_given_up,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
