/* SPDX-License-Identifier: MIT */
/* Calls that are interrupted, whose session is ended, and whose client has left. */
#include "fcgi-app/sandbox_call.h"
#include "tests/unit/exec_fixture.h"

/* Begins a call and waits until it runs. */
static void begin(struct caller *caller, struct fixture *fixture, const char *code) {
    bool there = false;

    caller_start(caller, fixture, code);
    for (; !there; usleep(1000))
        there = sessions_count(fixture->app.sessions) == 1 &&
                fixture->fake.entries[0].sandbox.runs == 1;
}

static int ask(struct fixture *fixture, const char *method, const char *target) {
    struct memory_connection memory;

    memory_init(&memory, method, target);
    routes_handle(&fixture->app, &memory.connection);
    int status = memory_status(&memory);
    memory_clear(&memory);
    return status;
}

static void an_interrupt_reaches_the_sandbox_once(void **state) {
    struct fixture *fixture = *state;
    struct caller caller;

    begin(&caller, fixture, "print begun\nawait\nwait\nraise KeyboardInterrupt 1 x");
    for (int i = 0; i < 5; i++)
        assert_int_equal(ask(fixture, "POST", "/sessions/a/interrupt"), 200);
    fixture->fake.gate = true;
    pthread_join(caller.thread, NULL);
    assert_string_equal(text(&caller.answer, "error.type"), "KeyboardInterrupt");
    assert_string_equal(text(&caller.answer, "std_out"), "beguninterrupted");
    assert_session(&caller.answer, true, "none", 1);
    drop(&caller.answer);
    /* Nothing of it is left in the channel. */
    expect(fixture, "a", "print", false, "none", 2);
    assert_int_equal(fixture->fake.acquired, 1);
}

static void code_that_was_killed_for_it_is_told_from_a_time_out(void **state) {
    struct fixture *fixture = *state;
    struct caller caller;

    begin(&caller, fixture, "await\nlost\nstubborn");
    assert_int_equal(ask(fixture, "POST", "/sessions/a/interrupt"), 200);
    pthread_join(caller.thread, NULL);
    assert_string_equal(text(&caller.answer, "error.type"), "interrupted");
    assert_session(&caller.answer, true, "variables", 1);
    drop(&caller.answer);
}

/* The deadline of the call would be half a minute later. */
static void a_sandbox_that_does_not_heed_it_is_given_up_early(void **state) {
    struct fixture *fixture = *state;
    struct caller caller;

    /* Unsigned numbers make the sum of the two short. */
    fixture->settings.interrupt_grace = (uint64_t)(50 - SANDBOX_COLLECT_MS);
    begin(&caller, fixture, "hang");
    assert_int_equal(ask(fixture, "POST", "/sessions/a/interrupt"), 200);
    pthread_join(caller.thread, NULL);
    assert_string_equal(text(&caller.answer, "error.type"), "interrupted");
    assert_session(&caller.answer, true, "all", 1);
    assert_true(json_integer_value(at(&caller.answer, "code_runtime")) < 15000);
    drop(&caller.answer);
}

static void an_end_answers_the_call_at_once(void **state) {
    struct fixture *fixture = *state;
    struct caller caller;

    begin(&caller, fixture, "hang");
    assert_int_equal(ask(fixture, "DELETE", "/sessions/a"), 200);
    pthread_join(caller.thread, NULL);
    assert_int_equal(caller.answer.status, 200);
    assert_string_equal(text(&caller.answer, "error.type"), "interrupted");
    assert_session(&caller.answer, true, "all", 1);
    drop(&caller.answer);
    assert_false(fixture->fake.entries[0].alive);
    expect(fixture, "a", "print", true, "none", 1);
    assert_int_equal(fixture->fake.acquired, 2);
}

static void a_client_that_left_interrupts_its_call(void **state) {
    struct fixture *fixture = *state;
    struct memory_connection memory;
    const char *body = "{\"code\": \"await\"}";

    expect(fixture, "a", "print", true, "none", 1);
    memory_init(&memory, "POST", "/exec?sessionId=a");
    memory_set_body(&memory, body, strlen(body));
    memory.gone = true;
    routes_handle(&fixture->app, &memory.connection);
    memory_clear(&memory);
    expect(fixture, "a", "print", false, "none", 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        with_fixture(an_interrupt_reaches_the_sandbox_once),
        with_fixture(code_that_was_killed_for_it_is_told_from_a_time_out),
        with_fixture(a_sandbox_that_does_not_heed_it_is_given_up_early),
        with_fixture(an_end_answers_the_call_at_once),
        with_fixture(a_client_that_left_interrupts_its_call),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
