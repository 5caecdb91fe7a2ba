/* SPDX-License-Identifier: MIT */
/* What a record says of a session, and what the next vivarium-fcgi has of it. */
#include "tests/unit/sessions_bench.h"

static void a_session_is_taken_over_with_its_past(void **state) {
    struct sessions *sessions = sessions_new(&roomy);
    struct session_record record, adopted;
    struct viv_error err;

    (void)state;
    struct session *session = enter(sessions, "a", NULL);
    sessions_set_sandbox(sessions, session, 7, -1);
    sessions_begin_execution(sessions, session);
    sessions_describe(sessions, session, &record);
    sessions_leave(sessions, session);
    assert_fails(sessions_adopt(sessions, &record, 8, &err), &err, VIV_BUSY,
                 "of that id");

    struct sessions *later = sessions_new(&roomy);
    assert_int_equal(sessions_adopt(later, &record, 7, NULL), 0);
    assert_true(sessions_have_sandbox(later, 7));
    assert_false(sessions_have_sandbox(later, 8));
    assert_true(sessions_record(later, "a", 7, &adopted));
    assert_false(sessions_record(later, "a", 8, &adopted));
    assert_false(sessions_record(later, "b", 7, &adopted));
    assert_true(adopted.created == record.created);
    assert_true(adopted.created_wall_ms == record.created_wall_ms);
    session = enter(later, "a", NULL);
    assert_int_equal(session->execution_count, 1);
    assert_int_equal(session->sandbox, 7);
    assert_int_equal(session->channel, -1);
    sessions_leave(later, session);
    sessions_free(later);
    sessions_free(sessions);
}

static void a_loss_that_was_not_told_is_taken_over(void **state) {
    static const enum session_loss losses[] = {SESSION_LOST_NONE, SESSION_LOST_VARIABLES,
                                               SESSION_LOST_ALL};
    struct session_record record;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(losses); i++) {
        struct sessions *before = sessions_new(&roomy), *later = sessions_new(&roomy);
        struct session *session = enter(before, "a", NULL);
        sessions_set_lost(before, session, losses[i]);
        sessions_describe(before, session, &record);
        sessions_leave(before, session);
        assert_int_equal(sessions_adopt(later, &record, 7, NULL), 0);
        session = enter(later, "a", NULL);
        /* The sandbox itself knows what it has lost of the variables. */
        assert_int_equal(session->lost, losses[i] == SESSION_LOST_ALL
                                            ? SESSION_LOST_ALL
                                            : SESSION_LOST_NONE);
        sessions_leave(later, session);
        sessions_free(later);
        sessions_free(before);
    }
}

/* One that could not be ended may be there still, beside the one that came after it. */
static void of_two_sandboxes_of_one_session_the_later_is_taken_over(void **state) {
    struct session_record older = {.id = "a", .created = 1, .used = 5}, later = older;

    (void)state;
    later.used = 6;
    for (int i = 0; i < 2; i++) {
        struct sessions *sessions = sessions_new(&roomy);
        assert_int_equal(sessions_adopt(sessions, i ? &older : &later, 7 + i, NULL), 0);
        int second = sessions_adopt(sessions, i ? &later : &older, 8 - i, NULL);
        assert_int_equal(second, i ? 0 : -1);
        assert_true(sessions_have_sandbox(sessions, 7));
        assert_false(sessions_have_sandbox(sessions, 8));
        assert_int_equal(sessions->count, 1);
        sessions_free(sessions);
    }
}

static void a_session_that_runs_is_used_when_it_is_recorded(void **state) {
    struct sessions *sessions = sessions_new(&roomy);
    struct session_record during, after, later;

    (void)state;
    struct session *session = enter(sessions, "a", NULL);
    sessions_set_sandbox(sessions, session, 7, -1);
    sessions_begin_execution(sessions, session);
    usleep(2000);
    viv_time now = viv_now();
    assert_true(sessions_record(sessions, "a", 7, &during));
    assert_true(during.used >= now);
    sessions_leave(sessions, session);
    assert_true(sessions_record(sessions, "a", 7, &after));
    usleep(2000);
    assert_true(sessions_record(sessions, "a", 7, &later));
    assert_true(later.used == after.used);
    sessions_free(sessions);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_taken_over_with_its_past),
        cmocka_unit_test(a_loss_that_was_not_told_is_taken_over),
        cmocka_unit_test(of_two_sandboxes_of_one_session_the_later_is_taken_over),
        cmocka_unit_test(a_session_that_runs_is_used_when_it_is_recorded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
