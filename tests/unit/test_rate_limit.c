/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "fcgi-app/rate_limit.h"

#define START (1000 * VIV_SECOND)

static void rate_limit_free_cleanup(struct rate_limit **limiter) {
    rate_limit_free(*limiter);
}

static struct rate_verdict take(struct rate_limit *limiter, viv_time after) {
    return rate_limit_take(limiter, "192.0.2.1", "default", START + after);
}

static void so_many_calls_are_allowed(void **state) {
    CLEANUP(rate_limit_free) struct rate_limit *limiter = rate_limit_new(10);

    (void)state;
    for (uint64_t i = 0; i < 10; i++) {
        struct rate_verdict verdict = take(limiter, (viv_time)i * VIV_SECOND);
        assert_true(verdict.allowed);
        assert_int_equal(verdict.limit, 10);
        assert_int_equal(verdict.remaining, 9 - i);
        assert_int_equal(verdict.reset_s, 60 - i);
    }
    struct rate_verdict verdict = take(limiter, 10 * VIV_SECOND);
    assert_false(verdict.allowed);
    assert_int_equal(verdict.limit, 10);
    assert_int_equal(verdict.remaining, 0);
    assert_int_equal(verdict.reset_s, 50);
}

static void the_window_slides(void **state) {
    CLEANUP(rate_limit_free) struct rate_limit *limiter = rate_limit_new(2);

    (void)state;
    assert_true(take(limiter, 0).allowed);
    assert_true(take(limiter, 30 * VIV_SECOND).allowed);
    assert_false(take(limiter, 60 * VIV_SECOND - 1).allowed);
    assert_true(take(limiter, 60 * VIV_SECOND).allowed);
    assert_false(take(limiter, 60 * VIV_SECOND).allowed);
    assert_false(take(limiter, 90 * VIV_SECOND - 1).allowed);
    assert_true(take(limiter, 90 * VIV_SECOND).allowed);
    assert_false(take(limiter, 119 * VIV_SECOND).allowed);
    assert_true(take(limiter, 120 * VIV_SECOND).allowed);
}

static void refused_calls_do_not_count(void **state) {
    CLEANUP(rate_limit_free) struct rate_limit *limiter = rate_limit_new(1);

    (void)state;
    assert_true(take(limiter, 0).allowed);
    for (viv_time second = 1; second < 60; second++)
        assert_false(take(limiter, second * VIV_SECOND).allowed);
    assert_true(take(limiter, 60 * VIV_SECOND).allowed);
}

static void who_waits_as_told_is_allowed(void **state) {
    CLEANUP(rate_limit_free) struct rate_limit *limiter = rate_limit_new(3);
    viv_time now = 0;

    (void)state;
    for (int i = 0; i < 200; i++) {
        now += VIV_SECOND / 7;
        struct rate_verdict verdict = take(limiter, now);
        if (verdict.allowed)
            continue;
        assert_true(verdict.reset_s >= 1 && verdict.reset_s <= 60);
        assert_false(take(limiter, now + (verdict.reset_s - 1) * VIV_SECOND).allowed);
        now += verdict.reset_s * VIV_SECOND;
        assert_true(take(limiter, now).allowed);
    }
}

/* Against a list of all allowed calls: no 60 seconds ever hold more than the limit, and
 * no call is refused that would have been within it. */
static void the_count_is_exact(void **state) {
    enum { LIMIT = 7, CALLS = 5000 };
    CLEANUP(rate_limit_free) struct rate_limit *limiter = rate_limit_new(LIMIT);
    viv_time allowed[CALLS] = {0}, now = 0;
    size_t count = 0;
    unsigned seed = 1;

    (void)state;
    for (int i = 0; i < CALLS; i++) {
        seed = seed * 1103515245 + 12345;
        now += (seed >> 16) % 9000 * VIV_MS;
        size_t within = 0;
        for (size_t k = count; k > 0 && allowed[k - 1] > now - RATE_LIMIT_WINDOW; k--)
            within++;
        struct rate_verdict verdict = take(limiter, now);
        assert_int_equal(verdict.allowed, within < LIMIT);
        if (verdict.allowed)
            allowed[count++] = now;
    }
}

static void keys_do_not_disturb_each_other(void **state) {
    CLEANUP(rate_limit_free) struct rate_limit *limiter = rate_limit_new(1);
    static const char *const keys[][2] = {
        {"192.0.2.1", "a"},  {"192.0.2.1", "b"}, {"192.0.2.2", "a"}, {"192.0.2.1", "a "},
        {"192.0.2.1 a", ""}, {"192.0.2.1", ""},  {"", "192.0.2.1"},  {"192.0.2.1", "A"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        assert_true(rate_limit_take(limiter, keys[i][0], keys[i][1], START).allowed);
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        assert_false(rate_limit_take(limiter, keys[i][0], keys[i][1], START + 1).allowed);
    assert_int_equal(rate_limit_keys(limiter), COUNT_OF(keys));
}

static void no_limit_counts_nothing(void **state) {
    CLEANUP(rate_limit_free) struct rate_limit *limiter = rate_limit_new(0);

    (void)state;
    for (int i = 0; i < 100; i++) {
        struct rate_verdict verdict = take(limiter, 0);
        assert_true(verdict.allowed);
        assert_int_equal(verdict.limit, 0);
    }
    assert_int_equal(rate_limit_keys(limiter), 0);
}

static void large_limits_are_kept(void **state) {
    CLEANUP(rate_limit_free) struct rate_limit *limiter = rate_limit_new(10000);

    (void)state;
    for (viv_time round = 0; round < 3; round++) {
        for (viv_time i = 0; i < 10000; i++)
            assert_true(take(limiter, round * RATE_LIMIT_WINDOW + i).allowed);
        assert_false(take(limiter, round * RATE_LIMIT_WINDOW + 10000).allowed);
    }
}

static void old_keys_are_forgotten(void **state) {
    CLEANUP(rate_limit_free) struct rate_limit *limiter = rate_limit_new(5);
    char id[32];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        snprintf(id, sizeof id, "%d", i);
        rate_limit_take(limiter, "192.0.2.1", id, START + i * VIV_MS);
    }
    assert_int_equal(rate_limit_keys(limiter), 1000);
    /* The first has called again and stays; half of the others are too old. */
    rate_limit_take(limiter, "192.0.2.1", "0", START + 30 * VIV_SECOND);
    take(limiter, 60 * VIV_SECOND + 499 * VIV_MS);
    assert_int_equal(rate_limit_keys(limiter), 500 + 1 + 1);
    take(limiter, 200 * VIV_SECOND);
    assert_int_equal(rate_limit_keys(limiter), 1);
}

static void keys_are_bounded_and_the_stalest_goes(void **state) {
    CLEANUP(rate_limit_free) struct rate_limit *limiter = rate_limit_new(2);
    char id[32];

    (void)state;
    assert_true(rate_limit_take(limiter, "192.0.2.1", "early", START).allowed);
    assert_true(rate_limit_take(limiter, "192.0.2.1", "stale", START + 1).allowed);
    assert_true(rate_limit_take(limiter, "192.0.2.1", "early", START + 2).allowed);
    for (int i = 0; i < RATE_LIMIT_KEYS_MAX - 1; i++) {
        snprintf(id, sizeof id, "%d", i);
        rate_limit_take(limiter, "192.0.2.66", id, START + 3);
    }
    assert_int_equal(rate_limit_keys(limiter), RATE_LIMIT_KEYS_MAX);
    /* Only the key whose last call was the oldest has been forgotten; calls that are
     * refused have not kept it, nor do they keep another. */
    assert_false(rate_limit_take(limiter, "192.0.2.1", "early", START + 4).allowed);
    assert_int_equal(rate_limit_take(limiter, "192.0.2.1", "stale", START + 5).remaining,
                     1);
    assert_int_equal(rate_limit_keys(limiter), RATE_LIMIT_KEYS_MAX);
    assert_true(rate_limit_take(limiter, "192.0.2.1", "early", START + 6).allowed);
}

static void times_out_of_order_are_taken(void **state) {
    CLEANUP(rate_limit_free) struct rate_limit *limiter = rate_limit_new(2);

    (void)state;
    assert_true(take(limiter, 5).allowed);
    assert_true(take(limiter, 3).allowed);
    assert_false(take(limiter, 4).allowed);
    assert_false(take(limiter, RATE_LIMIT_WINDOW + 4).allowed);
    assert_true(take(limiter, RATE_LIMIT_WINDOW + 5).allowed);
}

static void *take_many(void *context) {
    struct rate_limit *limiter = context;
    size_t *allowed = viv_xcalloc(1, sizeof *allowed);
    char id[32];

    for (int i = 0; i < 10000; i++) {
        snprintf(id, sizeof id, "%d", i % 10);
        *allowed += rate_limit_take(limiter, "192.0.2.1", id, START + i).allowed;
    }
    return allowed;
}

static void threads_share_one_count(void **state) {
    CLEANUP(rate_limit_free) struct rate_limit *limiter = rate_limit_new(100);
    pthread_t threads[4];
    size_t total = 0;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_many, limiter), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        void *allowed;
        pthread_join(threads[i], &allowed);
        total += *(size_t *)allowed;
        free(allowed);
    }
    assert_int_equal(total, 10 * 100);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(so_many_calls_are_allowed),
        cmocka_unit_test(the_window_slides),
        cmocka_unit_test(refused_calls_do_not_count),
        cmocka_unit_test(who_waits_as_told_is_allowed),
        cmocka_unit_test(the_count_is_exact),
        cmocka_unit_test(keys_do_not_disturb_each_other),
        cmocka_unit_test(no_limit_counts_nothing),
        cmocka_unit_test(large_limits_are_kept),
        cmocka_unit_test(old_keys_are_forgotten),
        cmocka_unit_test(keys_are_bounded_and_the_stalest_goes),
        cmocka_unit_test(times_out_of_order_are_taken),
        cmocka_unit_test(threads_share_one_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
