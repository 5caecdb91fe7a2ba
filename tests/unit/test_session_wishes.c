/* SPDX-License-Identifier: MIT */
/* What others may want of a session while a call has it, or several wait for it. */
#include "tests/unit/sessions_bench.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include "common/cleanup.h"

/* Enters, begins an execution. */
static struct session *begin(struct sessions *sessions) {
    struct session *session = enter(sessions, "a", NULL);

    assert_non_null(session);
    sessions_begin_execution(sessions, session);
    return session;
}

static bool interrupt(struct sessions *sessions) {
    bool running = false;

    assert_int_equal(sessions_interrupt(sessions, "a", &running, NULL), 0);
    return running;
}

/* Returns its sandbox. */
static uint64_t end(struct sessions *sessions, bool expected_running) {
    uint64_t sandbox = 99;
    bool running = !expected_running;

    assert_int_equal(sessions_end(sessions, "a", &sandbox, &running, NULL), 0);
    assert_int_equal(running, expected_running);
    return sandbox;
}

static bool has_rung(int bell) {
    uint64_t rings;

    return read(bell, &rings, sizeof rings) == sizeof rings;
}

static void there_must_be_a_session(void **state) {
    struct sessions *sessions = sessions_new(&roomy);
    struct viv_error err;
    uint64_t sandbox;
    bool running;

    (void)state;
    assert_fails(sessions_interrupt(sessions, "a", &running, &err), &err, VIV_NOT_FOUND,
                 "");
    assert_fails(sessions_end(sessions, "a", &sandbox, &running, &err), &err,
                 VIV_NOT_FOUND, "");
    sessions_free(sessions);
}

static void an_interrupt_is_for_the_call_that_has_it(void **state) {
    struct sessions *sessions = sessions_new(&roomy);
    struct session *session = begin(sessions);

    (void)state;
    assert_int_equal(sessions_wish(sessions, session), WISH_NONE);
    assert_true(interrupt(sessions));
    assert_int_equal(sessions_wish(sessions, session), WISH_INTERRUPT);
    sessions_begin_execution(sessions, session);
    assert_int_equal(sessions_wish(sessions, session), WISH_INTERRUPT);
    sessions_leave(sessions, session);
    assert_false(interrupt(sessions));
    session = begin(sessions);
    assert_int_equal(sessions_wish(sessions, session), WISH_NONE);
    sessions_leave(sessions, session);
    sessions_free(sessions);
}

static void a_bell_rings_for_what_is_wanted(void **state) {
    CLEANUP(close_fd) int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct sessions *sessions = sessions_new(&roomy);
    struct session *session = begin(sessions);

    (void)state;
    sessions_set_bell(sessions, session, bell);
    assert_false(has_rung(bell));
    interrupt(sessions);
    assert_true(has_rung(bell));
    interrupt(sessions); /* that is known */
    assert_false(has_rung(bell));
    sessions_set_bell(sessions, session, -1);
    sessions_set_bell(sessions, session, bell); /* what is wanted already */
    assert_true(has_rung(bell));
    end(sessions, true);
    assert_true(has_rung(bell));
    sessions_set_bell(sessions, session, -1);
    sessions_leave(sessions, session);
    sessions_free(sessions);
}

static void an_idle_session_ends_at_once(void **state) {
    struct sessions *sessions = sessions_new(&roomy);
    struct session *session = begin(sessions);
    int ends[2];
    char byte;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    sessions_set_sandbox(sessions, session, 7, ends[0]);
    sessions_leave(sessions, session);
    assert_int_equal(end(sessions, false), 7);
    assert_int_equal(read(ends[1], &byte, 1), 0); /* its channel was closed */
    close(ends[1]);
    assert_false(sessions_have_sandbox(sessions, 7));
    session = begin(sessions);
    assert_int_equal(session->execution_count, 1);
    assert_int_equal(session->sandbox, 0);
    sessions_leave(sessions, session);
    sessions_free(sessions);
}

static void a_busy_session_ends_for_all_but_its_call(void **state) {
    struct sessions *sessions = sessions_new(&roomy);
    struct session *old = begin(sessions);
    uint64_t sandboxes[2];

    (void)state;
    sessions_set_sandbox(sessions, old, 7, -1);
    assert_int_equal(end(sessions, true), 7);
    assert_int_equal(sessions_count(sessions), 0);
    struct session *young = begin(sessions);
    assert_ptr_not_equal(young, old);
    assert_int_equal(young->execution_count, 1);
    sessions_set_sandbox(sessions, young, 8, -1);
    /* What the old call does is its own. */
    assert_int_equal(sessions_wish(sessions, old), WISH_END);
    assert_int_equal(sessions_wish(sessions, young), WISH_NONE);
    sessions_set_sandbox(sessions, old, 9, -1);
    sessions_revoke_execution(sessions, old);
    assert_int_equal(sessions_leave(sessions, old), 9);
    assert_true(sessions_have_sandbox(sessions, 8));
    sessions_leave(sessions, young);
    assert_int_equal(sessions_expire(sessions, VIV_TIME_NEVER, sandboxes, 2), 1);
    sessions_free(sessions);
}

/* A thread that waits for the session "a". */
struct visitor {
    struct sessions *sessions;
    pthread_t thread;
    enum viv_code code; /* of its refusal */
};

static void *visit(void *context) {
    struct visitor *visitor = context;
    struct viv_error err = {.code = VIV_OK, .message = ""};
    struct session *session = enter(visitor->sessions, "a", &err);

    visitor->code = err.code;
    if (session) {
        sessions_begin_execution(visitor->sessions, session);
        sessions_leave(visitor->sessions, session);
    }
    return NULL;
}

static void who_waits_for_a_session_that_ends_is_sent_away(void **state) {
    enum { VISITORS = 4 };
    struct visitor visitors[VISITORS];

    (void)state;
    for (int round = 0; round < 20; round++) {
        struct sessions *sessions = sessions_new(&roomy);
        struct session *session = begin(sessions);
        for (int i = 0; i < VISITORS; i++) {
            visitors[i].sessions = sessions;
            pthread_create(&visitors[i].thread, NULL, visit, &visitors[i]);
        }
        wait_for_queue(sessions, VISITORS);
        end(sessions, true);
        /* The entry may be gone before they are awake. */
        sessions_leave(sessions, session);
        for (int i = 0; i < VISITORS; i++) {
            pthread_join(visitors[i].thread, NULL);
            assert_int_equal(visitors[i].code, VIV_INTERRUPTED);
        }
        sessions_free(sessions);
    }
}

static void *end_and_interrupt(void *context) {
    struct visitor *visitor = context;
    uint64_t sandbox;
    bool running;

    for (int i = 0; i < 300; i++) {
        sessions_interrupt(visitor->sessions, "a", &running, NULL);
        sessions_end(visitor->sessions, "a", &sandbox, &running, NULL);
    }
    return NULL;
}

static void *visit_often(void *context) {
    for (int i = 0; i < 300; i++)
        visit(context);
    return NULL;
}

static void all_of_it_may_happen_at_once(void **state) {
    struct sessions *sessions = sessions_new(&roomy);
    struct visitor visitors[6];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(visitors); i++) {
        visitors[i].sessions = sessions;
        pthread_create(&visitors[i].thread, NULL, i < 2 ? end_and_interrupt : visit_often,
                       &visitors[i]);
    }
    for (size_t i = 0; i < COUNT_OF(visitors); i++)
        pthread_join(visitors[i].thread, NULL);
    assert_true(sessions_count(sessions) <= 1);
    sessions_free(sessions);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_must_be_a_session),
        cmocka_unit_test(an_interrupt_is_for_the_call_that_has_it),
        cmocka_unit_test(a_bell_rings_for_what_is_wanted),
        cmocka_unit_test(an_idle_session_ends_at_once),
        cmocka_unit_test(a_busy_session_ends_for_all_but_its_call),
        cmocka_unit_test(who_waits_for_a_session_that_ends_is_sent_away),
        cmocka_unit_test(all_of_it_may_happen_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
