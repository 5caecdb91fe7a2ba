/* SPDX-License-Identifier: MIT */
#include "tests/unit/sessions_bench.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>

/* Enters, runs something, leaves. */
static void visit_once(struct sessions *sessions, const char *id) {
    struct session *session = enter(sessions, id, NULL);

    assert_non_null(session);
    sessions_begin_execution(sessions, session);
    assert_int_equal(sessions_leave(sessions, session), 0);
}

#define assert_no_entry(sessions, id, expected)                                          \
    do {                                                                                 \
        struct viv_error entry_err = {.code = VIV_OK, .message = ""};                    \
        assert_null(enter(sessions, id, &entry_err));                                    \
        assert_int_equal(entry_err.code, expected);                                      \
    } while (0)

static void a_session_lives_on_after_something_ran(void **state) {
    struct sessions *sessions = sessions_new(&roomy);

    (void)state;
    struct session *first = enter(sessions, "a", NULL);
    assert_int_equal(first->execution_count, 0);
    assert_int_equal(first->channel, -1);
    sessions_set_sandbox(sessions, first, 7, -1);
    sessions_begin_execution(sessions, first);
    sessions_set_lost(sessions, first, SESSION_LOST_VARIABLES);
    assert_int_equal(sessions_leave(sessions, first), 0);
    struct session *second = enter(sessions, "a", NULL);
    assert_int_equal(second->execution_count, 1);
    assert_int_equal(second->sandbox, 7);
    assert_int_equal(second->lost, SESSION_LOST_VARIABLES);
    sessions_leave(sessions, second);
    assert_int_equal(sessions_count(sessions), 1);
    sessions_free(sessions);
}

static void a_session_in_which_nothing_ran_ceases_to_exist(void **state) {
    struct sessions *sessions = sessions_new(&roomy);

    (void)state;
    struct session *session = enter(sessions, "a", NULL);
    sessions_set_sandbox(sessions, session, 7, -1);
    sessions_begin_execution(sessions, session);
    assert_int_equal(sessions_count(sessions), 1);
    sessions_revoke_execution(sessions, session);
    assert_int_equal(sessions_count(sessions), 0);
    assert_int_equal(sessions_leave(sessions, session), 7);
    assert_false(sessions_have_sandbox(sessions, 7));
    session = enter(sessions, "a", NULL);
    assert_int_equal(session->sandbox, 0);
    sessions_leave(sessions, session);
    sessions_free(sessions);
}

static void the_number_of_sessions_is_limited(void **state) {
    struct session_limits limits = roomy;

    (void)state;
    limits.max_sessions = 2;
    struct sessions *sessions = sessions_new(&limits);
    visit_once(sessions, "a");
    struct session *starting = enter(sessions, "b", NULL);
    assert_no_entry(sessions, "c", VIV_CAPACITY);
    visit_once(sessions, "a");
    sessions_leave(sessions, starting);
    visit_once(sessions, "c");
    sessions_free(sessions);
}

static void a_client_may_have_only_so_many(void **state) {
    struct session_limits limits = roomy;
    const struct session_visit stranger = {.id = "c", .client = "192.0.2.9"};

    (void)state;
    limits.max_sessions_per_client = 2;
    struct sessions *sessions = sessions_new(&limits);
    visit_once(sessions, "a");
    visit_once(sessions, "b");
    assert_no_entry(sessions, "c", VIV_CAPACITY);
    struct session *session = sessions_enter(sessions, &stranger, NULL);
    assert_non_null(session);
    sessions_begin_execution(sessions, session);
    sessions_leave(sessions, session);
    visit_once(sessions, "c");
    sessions_free(sessions);
}

/* A thread that waits for a session and notes when it had it. */
struct visitor {
    struct sessions *sessions;
    pthread_t thread;
    atomic_int *turn;
    int place;          /* in the order of entries */
    enum viv_code code; /* of a refusal */
    atomic_bool gone;
    bool (*ask_gone)(void *context);
};

static bool visitor_gone(void *context) { return ((struct visitor *)context)->gone; }

static void *visit_in_thread(void *context) {
    struct visitor *visitor = context;
    const struct session_visit visit = {
        .id = "a", .client = "192.0.2.1", .gone = visitor->ask_gone, .context = visitor};
    struct viv_error err = {.code = VIV_OK, .message = ""};
    struct session *session = sessions_enter(visitor->sessions, &visit, &err);

    visitor->code = err.code;
    if (!session)
        return NULL;
    visitor->place = (*visitor->turn)++;
    sessions_begin_execution(visitor->sessions, session);
    sessions_leave(visitor->sessions, session);
    return NULL;
}

static void start(struct visitor *visitor, struct sessions *sessions, atomic_int *turn) {
    visitor->sessions = sessions;
    visitor->turn = turn;
    visitor->place = -1;
    assert_int_equal(pthread_create(&visitor->thread, NULL, visit_in_thread, visitor), 0);
}

static void calls_have_the_session_in_the_order_of_arrival(void **state) {
    enum { VISITORS = 8 };
    struct visitor visitors[VISITORS] = {0};
    atomic_int turn = 0;

    (void)state;
    for (int round = 0; round < 10; round++) {
        struct session_limits limits = roomy;
        struct sessions *sessions = sessions_new(&limits);
        struct session *session = enter(sessions, "a", NULL);
        turn = 0;
        for (int i = 0; i < VISITORS; i++) {
            start(&visitors[i], sessions, &turn);
            wait_for_queue(sessions, (uint64_t)i + 1);
        }
        sessions_begin_execution(sessions, session);
        sessions_leave(sessions, session);
        for (int i = 0; i < VISITORS; i++) {
            pthread_join(visitors[i].thread, NULL);
            assert_int_equal(visitors[i].place, i);
        }
        assert_int_equal(sessions_count(sessions), 1);
        sessions_free(sessions);
    }
}

static void a_session_that_failed_to_start_goes_to_who_waits(void **state) {
    struct sessions *sessions = sessions_new(&roomy);
    struct session *session = enter(sessions, "a", NULL);
    struct visitor visitor = {0};
    atomic_int turn = 0;

    (void)state;
    sessions_set_sandbox(sessions, session, 7, -1);
    start(&visitor, sessions, &turn);
    wait_for_queue(sessions, 1);
    assert_int_equal(sessions_leave(sessions, session), 0);
    pthread_join(visitor.thread, NULL);
    assert_int_equal(visitor.place, 0);
    assert_true(sessions_have_sandbox(sessions, 7));
    sessions_free(sessions);
}

static void the_queue_is_limited(void **state) {
    struct session_limits limits = roomy;
    struct visitor visitors[2] = {0};
    atomic_int turn = 0;

    (void)state;
    limits.max_queued = 2;
    struct sessions *sessions = sessions_new(&limits);
    struct session *session = enter(sessions, "a", NULL);
    start(&visitors[0], sessions, &turn);
    start(&visitors[1], sessions, &turn);
    wait_for_queue(sessions, 2);
    assert_no_entry(sessions, "a", VIV_BUSY);
    sessions_begin_execution(sessions, session);
    sessions_leave(sessions, session);
    for (int i = 0; i < 2; i++)
        pthread_join(visitors[i].thread, NULL);
    assert_int_equal(turn, 2);
    sessions_free(sessions);
}

static void nobody_waits_longer_than_allowed(void **state) {
    struct session_limits limits = roomy;

    (void)state;
    limits.max_queue_wait = 50;
    struct sessions *sessions = sessions_new(&limits);
    struct session *session = enter(sessions, "a", NULL);
    viv_time begun = viv_now();
    assert_no_entry(sessions, "a", VIV_BUSY);
    assert_true(viv_now() - begun >= 50 * VIV_MS);
    sessions_leave(sessions, session);
    visit_once(sessions, "a");
    sessions_free(sessions);
}

static void who_is_gone_does_not_wait(void **state) {
    struct sessions *sessions = sessions_new(&roomy);
    struct session *session = enter(sessions, "a", NULL);
    struct visitor visitor = {.ask_gone = visitor_gone};
    atomic_int turn = 0;

    (void)state;
    start(&visitor, sessions, &turn);
    wait_for_queue(sessions, 1);
    visitor.gone = true;
    pthread_join(visitor.thread, NULL);
    assert_int_equal(visitor.code, VIV_UNAVAILABLE);
    assert_int_equal(turn, 0);
    sessions_leave(sessions, session);
    visit_once(sessions, "a");
    sessions_free(sessions);
}

static void a_stop_sends_away_who_waits_and_who_comes(void **state) {
    struct sessions *sessions = sessions_new(&roomy);
    struct session *session = enter(sessions, "a", NULL);
    struct visitor visitor = {0};
    atomic_int turn = 0;

    (void)state;
    start(&visitor, sessions, &turn);
    wait_for_queue(sessions, 1);
    sessions_stop(sessions);
    pthread_join(visitor.thread, NULL);
    assert_int_equal(visitor.code, VIV_UNAVAILABLE);
    assert_no_entry(sessions, "a", VIV_UNAVAILABLE);
    assert_no_entry(sessions, "b", VIV_UNAVAILABLE);
    sessions_begin_execution(sessions, session);
    assert_int_equal(sessions_leave(sessions, session), 0);
    sessions_free(sessions);
}

static void idle_sessions_expire_and_busy_ones_do_not(void **state) {
    struct session_limits limits = roomy;
    uint64_t sandboxes[4];
    int ends[2];

    (void)state;
    limits.idle_timeout = 1000;
    struct sessions *sessions = sessions_new(&limits);
    for (uint64_t i = 0; i < 3; i++) {
        const char *const ids[] = {"a", "b", "c"};
        struct session *session = enter(sessions, ids[i], NULL);
        int channel = -1;
        if (i == 0) {
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
            channel = ends[0];
        }
        sessions_set_sandbox(sessions, session, i + 1, channel);
        sessions_begin_execution(sessions, session);
        sessions_leave(sessions, session);
    }
    struct session *busy = enter(sessions, "b", NULL);
    viv_time now = viv_now();
    assert_int_equal(sessions_expire(sessions, now, sandboxes, 4), 0);
    viv_time later = now + 2 * VIV_SECOND;
    assert_int_equal(sessions_expire(sessions, later, sandboxes, 1), 1);
    assert_int_equal(sandboxes[0], 1);
    char byte;
    assert_int_equal(read(ends[1], &byte, 1), 0); /* its channel was closed */
    close(ends[1]);
    assert_int_equal(sessions_expire(sessions, later, sandboxes, 4), 1);
    assert_int_equal(sandboxes[0], 3);
    assert_int_equal(sessions_count(sessions), 1);
    sessions_leave(sessions, busy);
    assert_int_equal(sessions_expire(sessions, viv_now() + 2 * VIV_SECOND, sandboxes, 4),
                     1);
    sessions_free(sessions);
}

static void the_list_shows_what_ran_and_touches_nothing(void **state) {
    struct sessions *sessions = sessions_new(&roomy);
    struct session_line *lines;
    int64_t before = viv_wall_ms();

    (void)state;
    visit_once(sessions, "first");
    visit_once(sessions, "second");
    struct session *busy = enter(sessions, "first", NULL);
    sessions_begin_execution(sessions, busy);
    struct session *starting = enter(sessions, "third", NULL);
    assert_int_equal(sessions_list(sessions, &lines), 2);
    assert_string_equal(lines[0].id, "first");
    assert_true(lines[0].busy);
    assert_int_equal(lines[0].execution_count, 2);
    assert_int_equal(lines[0].idle, 0);
    assert_string_equal(lines[1].id, "second");
    assert_false(lines[1].busy);
    assert_true(lines[1].idle > 0 && lines[1].age >= lines[1].idle);
    assert_true(lines[1].created_wall_ms >= before);
    assert_true(lines[1].used_wall_ms >= lines[1].created_wall_ms);
    viv_time idle = lines[1].idle;
    free(lines);
    usleep(2000);
    assert_int_equal(sessions_list(sessions, &lines), 2);
    assert_true(lines[1].idle >= idle + 2 * VIV_MS);
    free(lines);
    sessions_leave(sessions, starting);
    sessions_leave(sessions, busy);
    sessions_free(sessions);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_lives_on_after_something_ran),
        cmocka_unit_test(a_session_in_which_nothing_ran_ceases_to_exist),
        cmocka_unit_test(the_number_of_sessions_is_limited),
        cmocka_unit_test(a_client_may_have_only_so_many),
        cmocka_unit_test(calls_have_the_session_in_the_order_of_arrival),
        cmocka_unit_test(a_session_that_failed_to_start_goes_to_who_waits),
        cmocka_unit_test(the_queue_is_limited),
        cmocka_unit_test(nobody_waits_longer_than_allowed),
        cmocka_unit_test(who_is_gone_does_not_wait),
        cmocka_unit_test(a_stop_sends_away_who_waits_and_who_comes),
        cmocka_unit_test(idle_sessions_expire_and_busy_ones_do_not),
        cmocka_unit_test(the_list_shows_what_ran_and_touches_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
