/* SPDX-License-Identifier: MIT */
#include "tests/unit/zygotes_bench.h"

static void requests_wait_for_a_zygote(void **state) {
    (void)state;
    assert_int_equal(spawn(1), 0);
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 1);
    assert_int_equal(spawn(2), 0);
    assert_int_equal(asked(0), 0);
    say(0, 0, 0);
    assert_int_equal(asked(0), 1);
    assert_int_equal(asked(0), 2);
    assert_int_equal(asked(0), 0);
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 1);
}

static void few_requests_are_under_way(void **state) {
    (void)state;
    start_ready();
    for (uint64_t sandbox = 1; sandbox <= 10; sandbox++)
        assert_int_equal(spawn(sandbox), 0);
    for (uint64_t sandbox = 1; sandbox <= 8; sandbox++)
        assert_int_equal(asked(0), sandbox);
    assert_int_equal(asked(0), 0);
    say(0, 1, 0);
    assert_int_equal(asked(0), 9);
    assert_int_equal(asked(0), 0);
    say(0, 2, 0);
    assert_int_equal(asked(0), 10);
}

/* With namespaces or without, with a cgroup or without. */
static void requests_have_as_many_descriptors_as_they_need(void **state) {
    static const size_t counts[] = {SPAWN_FD_MAX, SPAWN_FOLDER + 1, SPAWN_CGROUP, 1};
    size_t count;

    (void)state;
    zygotes_keep_time(&bench->zygotes);
    int before = open_descriptors(), open_for_them = 0;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        assert_int_equal(spawn_of(i + 1, (uid_t)(50000 + i), counts[i]), 0);
        open_for_them += (int)counts[i];
    }
    assert_int_equal(open_descriptors(), before + open_for_them);
    say(0, 0, 0);
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        struct spawn_request request = asked_with(0, &count);
        assert_int_equal(request.sandbox, i + 1);
        assert_int_equal(request.user, 50000 + i);
        assert_int_equal(count, counts[i]);
    }
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        say(0, i + 1, 0);
        open_for_them -= (int)counts[i];
        assert_int_equal(open_descriptors(), before + open_for_them);
    }
}

static void an_answer_tells_which_process_the_worker_is(void **state) {
    (void)state;
    start_ready();
    for (uint64_t sandbox = 1; sandbox <= 3; sandbox++)
        assert_int_equal(spawn(sandbox), 0);
    static const uint64_t order[] = {2, 3, 1};
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        say(0, order[i], 0);
        assert_int_equal(bench->made.sandbox, order[i]);
        assert_int_equal(bench->made.worker, WORKER_OF(order[i]));
    }
    assert_int_equal(bench->not_made, 0);
}

static void an_answer_is_owed_until_it_comes_or_cannot_come(void **state) {
    (void)state;
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(spawn(1), 0);
    assert_int_equal(spawn(2), 0);
    assert_false(zygotes_owe(&bench->zygotes));
    say(0, 0, 0);
    assert_true(zygotes_owe(&bench->zygotes));
    say(0, 1, 0);
    assert_true(zygotes_owe(&bench->zygotes));
    say(0, 2, EAGAIN);
    assert_false(zygotes_owe(&bench->zygotes));
    assert_int_equal(spawn(3), 0);
    reap(0);
    assert_false(zygotes_owe(&bench->zygotes));
}

static void zygotes_are_known_until_they_are_reaped(void **state) {
    (void)state;
    assert_false(zygotes_have(&bench->zygotes, getpid()));
    start_ready();
    assert_true(zygotes_have(&bench->zygotes, bench->pids[0]));
    bench->zygotes.two[bench->zygotes.current].ready_at -=
        (viv_time)bench->settings.zygote_age * VIV_MS;
    start_ready();
    for (int i = 0; i < 2; i++) {
        assert_true(zygotes_have(&bench->zygotes, bench->pids[i]));
        reap(i);
        assert_false(zygotes_have(&bench->zygotes, bench->pids[i]));
    }
    assert_false(zygotes_reaped(&bench->zygotes, getpid()));
}

static void an_answer_closes_the_descriptors(void **state) {
    (void)state;
    start_ready();
    int before = open_descriptors();
    assert_int_equal(spawn(1), 0);
    assert_int_equal(spawn(2), 0);
    assert_int_equal(asked(0) + asked(0), 3);
    assert_int_equal(open_descriptors(), before + 2 * SPAWN_FD_MAX);
    say(0, 1, 0);
    assert_int_equal(open_descriptors(), before + SPAWN_FD_MAX);
    assert_int_equal(bench->not_made, 0);
}

/* Or the end of its channel would look like a worker that died at once. */
static void a_failure_is_told_before_the_descriptors_are_closed(void **state) {
    (void)state;
    start_ready();
    int before = open_descriptors();
    assert_int_equal(spawn(5), 0);
    assert_int_equal(asked(0), 5);
    say(0, 5, EAGAIN);
    assert_int_equal(bench->not_made, 5);
    assert_int_equal(bench->open_then, before + SPAWN_FD_MAX);
    assert_int_equal(open_descriptors(), before);
}

static void a_sandbox_has_few_requests(void **state) {
    (void)state;
    int before = open_descriptors();
    for (int i = 0; i < 4; i++)
        assert_int_equal(spawn(1), 0);
    assert_int_equal(spawn(1), -1);
    assert_int_equal(open_descriptors(), before + 4 * SPAWN_FD_MAX);
    assert_int_equal(spawn(2), 0);
    zygotes_forget(&bench->zygotes, 1);
    assert_int_equal(open_descriptors(), before + SPAWN_FD_MAX);
    assert_int_equal(spawn(1), 0);
}

static void what_waits_for_an_ended_sandbox_is_dropped(void **state) {
    (void)state;
    zygotes_keep_time(&bench->zygotes);
    int before = open_descriptors();
    for (uint64_t sandbox = 1; sandbox <= 3; sandbox++)
        assert_int_equal(spawn(sandbox), 0);
    zygotes_forget(&bench->zygotes, 2);
    zygotes_forget(&bench->zygotes, 77);
    assert_int_equal(open_descriptors(), before + 2 * SPAWN_FD_MAX);
    say(0, 0, 0);
    /* One that is under way is answered still. */
    zygotes_forget(&bench->zygotes, 1);
    assert_int_equal(asked(0), 1);
    assert_int_equal(asked(0), 3);
    assert_int_equal(asked(0), 0);
    say(0, 1, EAGAIN);
    say(0, 3, 0);
    assert_int_equal(open_descriptors(), before);
}

static void the_next_zygote_gets_what_a_dead_one_was_asked(void **state) {
    (void)state;
    start_ready();
    assert_int_equal(spawn(1), 0);
    assert_int_equal(spawn(2), 0);
    assert_int_equal(asked(0), 1);
    say(0, 1, 0);
    reap(0);
    assert_string_equal(bench->zygotes.reason, "the zygote died");
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 1);
    bench->zygotes.two[bench->zygotes.current].start_at = viv_now();
    start_ready();
    assert_int_equal(bench->starts, 2);
    assert_int_equal(asked(1), 2);
    assert_int_equal(asked(1), 0);
    assert_string_equal(bench->zygotes.reason, "");
}

static void one_that_answers_what_it_was_not_asked_is_killed(void **state) {
    static const uint64_t wrong[] = {7, UINT64_MAX};

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        start_ready();
        assert_int_equal(spawn(1), 0);
        say((int)i, wrong[i], 0);
        assert_true(was_killed((int)i));
        reap((int)i);
        bench->zygotes.two[bench->zygotes.current].start_at = viv_now();
    }
    (void)state;
    start_ready();
    assert_int_equal(asked(2), 1);
}

static void attempts_come_later_after_each_failure(void **state) {
    viv_time last = 0;

    (void)state;
    bench->cannot_start = true;
    for (int i = 0; i < 9; i++) {
        struct zygote *zygote = &bench->zygotes.two[bench->zygotes.current];
        viv_time now = viv_now();
        zygote->start_at = now;
        zygotes_keep_time(&bench->zygotes);
        assert_string_equal(bench->zygotes.reason, "it must not start");
        viv_time wait = zygote->start_at - now;
        assert_true(wait >= last - VIV_SECOND && wait < 60 * VIV_SECOND);
        last = wait;
    }
    assert_true(last >= 10 * VIV_SECOND);
}

/* ---- a zygote that is worn ---- */

static void a_worn_zygote_serves_until_the_next_one_is_ready(void **state) {
    (void)state;
    bench->settings.zygote_sessions = 2;
    start_ready();
    assert_int_equal(spawn(1), 0);
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 1);
    assert_int_equal(spawn(2), 0);
    for (int i = 0; i < 2; i++)
        zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 2);
    assert_int_equal(spawn(3), 0);
    assert_int_equal(asked(0) + asked(0) + asked(0), 6);
    say(1, 0, 0);
    assert_int_equal(spawn(4), 0);
    assert_int_equal(asked(0), 0);
    assert_int_equal(asked(1), 4);
    /* It answers all that it was asked, then ends. */
    say(0, 1, 0);
    say(0, 2, 0);
    assert_true(is_open(0));
    say(0, 3, 0);
    assert_true(is_closed(0));
    reap(0);
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 2);
}

static void an_old_zygote_is_replaced(void **state) {
    (void)state;
    start_ready();
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 1);
    bench->zygotes.two[bench->zygotes.current].ready_at -=
        (viv_time)bench->settings.zygote_age * VIV_MS;
    start_ready();
    assert_int_equal(bench->starts, 2);
    assert_true(is_closed(0));
}

static void a_retiring_zygote_that_dies_leaves_its_requests_to_the_next(void **state) {
    (void)state;
    bench->settings.zygote_sessions = 1;
    start_ready();
    assert_int_equal(spawn(1), 0);
    start_ready();
    reap(0);
    assert_int_equal(asked(1), 1);
    assert_string_equal(bench->zygotes.reason, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(requests_wait_for_a_zygote),
        TEST(few_requests_are_under_way),
        TEST(requests_have_as_many_descriptors_as_they_need),
        TEST(an_answer_tells_which_process_the_worker_is),
        TEST(an_answer_is_owed_until_it_comes_or_cannot_come),
        TEST(zygotes_are_known_until_they_are_reaped),
        TEST(an_answer_closes_the_descriptors),
        TEST(a_failure_is_told_before_the_descriptors_are_closed),
        TEST(a_sandbox_has_few_requests),
        TEST(what_waits_for_an_ended_sandbox_is_dropped),
        TEST(the_next_zygote_gets_what_a_dead_one_was_asked),
        TEST(one_that_answers_what_it_was_not_asked_is_killed),
        TEST(attempts_come_later_after_each_failure),
        TEST(a_worn_zygote_serves_until_the_next_one_is_ready),
        TEST(an_old_zygote_is_replaced),
        TEST(a_retiring_zygote_that_dies_leaves_its_requests_to_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
