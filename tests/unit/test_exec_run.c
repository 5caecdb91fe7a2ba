/* SPDX-License-Identifier: MIT */
/* What becomes of sessions when their sandboxes die, refuse, or outlive vivarium-fcgi. */
#include "tests/unit/exec_fixture.h"

#include "fcgi-app/adoption.h"

static void a_sandbox_that_died_between_calls_is_replaced(void **state) {
    struct fixture *fixture = *state;

    expect(fixture, "a", "print", true, "none", 1);
    shutdown(fixture->fake.entries[0].sandbox.channel, SHUT_RDWR);
    expect(fixture, "a", "print", false, "all", 2);
    expect(fixture, "a", "print", false, "none", 3);
    assert_int_equal(fixture->fake.acquired, 2);
    assert_int_equal(fixture->fake.ended, 1);
}

static void what_a_sandbox_says_between_calls_ends_it(void **state) {
    struct fixture *fixture = *state;

    expect(fixture, "a", "print", true, "none", 1);
    assert_int_equal(write(fixture->fake.entries[0].sandbox.channel, "x", 1), 1);
    expect(fixture, "a", "print", false, "all", 2);
    assert_false(fixture->fake.entries[0].alive);
}

static void a_sandbox_that_dies_in_a_call_is_told_at_once(void **state) {
    struct fixture *fixture = *state;
    struct answer answer;

    expect(fixture, "a", "print", true, "none", 1);
    post(fixture, "a", "print so far\ndie", &answer);
    assert_int_equal(answer.status, 200);
    assert_string_equal(text(&answer, "error.type"), "crash");
    assert_string_equal(text(&answer, "std_out"), "so far");
    assert_session(&answer, false, "all", 2);
    drop(&answer);
    expect(fixture, "a", "print", false, "none", 3);
}

static void lost_variables_are_told_once(void **state) {
    struct fixture *fixture = *state;

    expect(fixture, "a", "crash 11\nlost", true, "variables", 1);
    expect(fixture, "a", "print", false, "none", 2);
}

static void a_refused_upload_changes_nothing(void **state) {
    struct fixture *fixture = *state;

    expect_error(fixture, "a", "refuse 1 0", 413, "resource_limit", false);
    assert_int_equal(sessions_count(fixture->app.sessions), 0);
    assert_int_equal(fixture->fake.ended, 1);
    expect(fixture, "a", "print", true, "none", 1);
    expect_error(fixture, "a", "refuse 2 0", 422, "parsing", false);
    expect_error(fixture, "a", "refuse 3 0", 500, "system", false);
    expect(fixture, "a", "print", false, "none", 2);
    assert_int_equal(fixture->fake.acquired, 2);
}

static void without_an_executor_there_is_no_session(void **state) {
    struct fixture *fixture = *state;

    expect(fixture, "old", "print", true, "none", 1);
    fixture->fake.refusal = VIV_CAPACITY;
    expect_error(fixture, "a", "print", 503, "capacity", true);
    fixture->fake.refusal = VIV_SYSTEM;
    expect_error(fixture, "a", "print", 503, "system", true);
    fixture->app.executor.path = "/nonexistent";
    expect_error(fixture, "a", "print", 503, "system", true);
    assert_int_equal(sessions_count(fixture->app.sessions), 1);
    /* A loss that no answer could tell is told by the next one that can. */
    shutdown(fixture->fake.entries[0].sandbox.channel, SHUT_RDWR);
    expect_error(fixture, "old", "print", 503, "system", true);
    fixture->app.executor.path = fixture->fake.path;
    fixture->fake.refusal = VIV_OK;
    expect(fixture, "old", "print", false, "all", 2);
}

static void wait_for_record(struct fixture *fixture, unsigned records) {
    for (bool there = false; !there; usleep(1000)) {
        pthread_mutex_lock(&fixture->fake.lock);
        there = fixture->fake.records == records;
        pthread_mutex_unlock(&fixture->fake.lock);
    }
}

static void sessions_are_there_again_after_a_new_start(void **state) {
    struct fixture *fixture = *state;
    struct adoption adoption = {.done = false};

    expect(fixture, "a", "print", true, "none", 1);
    expect(fixture, "a", "print", false, "none", 2);
    expect(fixture, "b", "print", true, "none", 1);
    expect(fixture, "c", "print", true, "none", 1);
    wait_for_record(fixture, 4);
    app_clear(&fixture->app);
    app_start(fixture);
    fake_kill(&fixture->fake.entries[2]);
    assert_int_equal(adoption_tick(&adoption, &fixture->app, viv_now()), 2);
    assert_int_equal(sessions_count(fixture->app.sessions), 2);
    expect(fixture, "a", "print", false, "none", 3);
    assert_int_equal(fixture->fake.attached, 1);
    expect(fixture, "a", "print", false, "none", 4);
    assert_int_equal(fixture->fake.attached, 1);
    /* One that is gone before it is called again. */
    fake_kill(&fixture->fake.entries[1]);
    expect(fixture, "b", "print", false, "all", 2);
    expect(fixture, "c", "print", true, "none", 1);
}

/* Starts vivarium-fcgi anew: what it knows is what the records say. */
static void start_anew(struct fixture *fixture, unsigned records) {
    struct adoption adoption = {.done = false};

    wait_for_record(fixture, records);
    app_clear(&fixture->app);
    app_start(fixture);
    adoption_tick(&adoption, &fixture->app, viv_now());
}

static void a_loss_is_told_once_whoever_takes_the_session_over(void **state) {
    struct fixture *fixture = *state;

    expect(fixture, "a", "print", true, "none", 1);
    shutdown(fixture->fake.entries[0].sandbox.channel, SHUT_RDWR);
    expect_error(fixture, "a", "refuse 1 0", 413, "resource_limit", false);
    start_anew(fixture, 3);
    expect(fixture, "a", "print", false, "all", 2);
    start_anew(fixture, 5);
    expect(fixture, "a", "print", false, "none", 3);
}

static void a_sandbox_that_cannot_be_had_for_now_is_kept(void **state) {
    static const enum viv_code refusals[] = {VIV_SYSTEM, VIV_CAPACITY, VIV_UNAVAILABLE};
    struct fixture *fixture = *state;

    expect(fixture, "a", "print", true, "none", 1);
    start_anew(fixture, 1);
    for (size_t i = 0; i < COUNT_OF(refusals); i++) {
        fixture->fake.refusal = refusals[i];
        expect_error(fixture, "a", "print", 503, "system", true);
    }
    fixture->fake.refusal = VIV_OK;
    assert_int_equal(fixture->fake.ended, 0);
    expect(fixture, "a", "print", false, "none", 2);
}

static void assert_recorded(struct fixture *fixture, uint64_t execution_count) {
    struct session_record record;

    pthread_mutex_lock(&fixture->fake.lock);
    struct fake_entry *entry = &fixture->fake.entries[0];
    struct slice bytes = {entry->record, entry->record_size};
    assert_int_equal(session_record_get(bytes, &record, NULL), 0);
    pthread_mutex_unlock(&fixture->fake.lock);
    assert_string_equal(record.id, "a");
    assert_string_equal(record.client, "192.0.2.1");
    assert_int_equal(record.execution_count, execution_count);
}

static void a_session_is_found_again_from_its_first_call_on(void **state) {
    struct fixture *fixture = *state;

    expect(fixture, "a", "hang_up", true, "none", 1);
    /* The record of ACQUIRE, or the one before the call, which says the same. */
    assert_recorded(fixture, 1);
}

/* Whoever takes the session over in the middle of it counts on from there. */
static void the_number_of_a_call_is_recorded_before_its_code_runs(void **state) {
    struct fixture *fixture = *state;
    struct answer answer;

    expect(fixture, "a", "print", true, "none", 1);
    post(fixture, "a", "die", &answer);
    assert_session(&answer, false, "all", 2);
    drop(&answer);
    wait_for_record(fixture, 2);
    assert_recorded(fixture, 2);
}

static void first_calls_at_once_make_one_session(void **state) {
    struct fixture *fixture = *state;
    struct caller callers[4];
    int created = 0, counts = 0;

    for (size_t i = 0; i < COUNT_OF(callers); i++)
        caller_start(&callers[i], fixture, "wait\nprint");
    usleep(20000);
    fixture->fake.gate = true;
    for (size_t i = 0; i < COUNT_OF(callers); i++) {
        struct answer *answer = &callers[i].answer;
        pthread_join(callers[i].thread, NULL);
        assert_int_equal(answer->status, 200);
        created += json_is_true(at(answer, "session.created"));
        counts |= 1 << json_integer_value(at(answer, "session.execution_count"));
        drop(answer);
    }
    assert_int_equal(created, 1);
    assert_int_equal(counts, 0x1e);
    assert_int_equal(fixture->fake.acquired, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        with_fixture(a_sandbox_that_died_between_calls_is_replaced),
        with_fixture(what_a_sandbox_says_between_calls_ends_it),
        with_fixture(a_sandbox_that_dies_in_a_call_is_told_at_once),
        with_fixture(lost_variables_are_told_once),
        with_fixture(a_refused_upload_changes_nothing),
        with_fixture(without_an_executor_there_is_no_session),
        with_fixture(sessions_are_there_again_after_a_new_start),
        with_fixture(a_loss_is_told_once_whoever_takes_the_session_over),
        with_fixture(a_sandbox_that_cannot_be_had_for_now_is_kept),
        with_fixture(a_session_is_found_again_from_its_first_call_on),
        with_fixture(the_number_of_a_call_is_recorded_before_its_code_runs),
        with_fixture(first_calls_at_once_make_one_session),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
