/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <pthread.h>

#include "common/cleanup.h"
#include "fcgi-app/budget.h"

static void what_is_there_can_be_taken_and_no_more(void **state) {
    struct budget budget = {.limit = 10};
    struct budget_share one = {&budget, 0}, two = {&budget, 0};

    (void)state;
    assert_true(budget_take(&one, 6));
    assert_true(budget_take(&two, 4));
    assert_false(budget_take(&one, 1));
    assert_true(budget_take(&one, 0));
    budget_give_back(&two, 3);
    assert_true(budget_take(&one, 3));
    assert_false(budget_take(&one, UINT64_MAX));
    budget_release(&one);
    budget_release(&two);
    assert_int_equal(budget.used, 0);
    assert_int_equal(one.amount + two.amount, 0);
}

static void a_share_is_released_at_the_end_of_its_scope(void **state) {
    struct budget budget = {.limit = 10};

    (void)state;
    {
        CLEANUP(budget_release) struct budget_share share = {&budget, 0};
        assert_true(budget_take(&share, 7));
        assert_int_equal(budget.used, 7);
    }
    assert_int_equal(budget.used, 0);
}

static void *take_and_give(void *context) {
    struct budget_share share = {context, 0};

    for (int i = 0; i < 20000; i++)
        if (budget_take(&share, 3))
            budget_release(&share);
    return NULL;
}

static void threads_lose_nothing(void **state) {
    struct budget budget = {.limit = 7};
    pthread_t threads[4];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &budget), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(budget.used, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_there_can_be_taken_and_no_more),
        cmocka_unit_test(a_share_is_released_at_the_end_of_its_scope),
        cmocka_unit_test(threads_lose_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
