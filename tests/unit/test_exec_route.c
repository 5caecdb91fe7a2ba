/* SPDX-License-Identifier: MIT */
/* POST /exec as its client sees it: the checks, the limits, the answer. */
#include "tests/unit/exec_fixture.h"

static void code_is_run_in_its_session(void **state) {
    struct fixture *fixture = *state;
    struct answer answer;

    post(fixture, "a%2Fb", "print hello\nvalue int 4", &answer);
    assert_int_equal(answer.status, 200);
    assert_string_equal(text(&answer, "result.std_out"), "hello");
    assert_int_equal(json_integer_value(at(&answer, "result.final_expression")), 4);
    assert_string_equal(text(&answer, "session.id"), "a/b");
    assert_session(&answer, true, "none", 1);
    assert_true(memory_has_line(&answer.memory, "X-Content-Type-Options: nosniff"));
    drop(&answer);
    expect(fixture, "a/b", "raise ValueError 1 x", false, "none", 2);
    expect(fixture, "other", "print", true, "none", 1);
    assert_int_equal(fixture->fake.acquired, 2);
    assert_int_equal(fixture->fake.ended, 0);
}

static void files_and_input_go_in(void **state) {
    struct fixture *fixture = *state;
    struct answer answer;

    post_body(fixture, "a",
              "{\"code\": \"uploads\\ninput\", \"stdin\": \"in\\u00fc\", \"files\": ["
              "{\"filename\": \"d/x\", \"b64_data\": \"YWJj\"},"
              "{\"filename\": \"y\", \"b64_data\": \"\"}]}",
              &answer);
    assert_string_equal(text(&answer, "result.std_out"), "d/x 3\ny 0\nin\xc3\xbc");
    drop(&answer);
}

static void checks_come_before_anything_is_run(void **state) {
    struct fixture *fixture = *state;
    static const struct {
        const char *id, *body;
        int status;
        const char *type;
    } cases[] = {{"", "{\"code\": \"\"}", 422, "validation"},
                 {"a%01", "{\"code\": \"\"}", 422, "validation"},
                 {"a", "", 400, "validation"},
                 {"a", "{", 400, "validation"},
                 {"a", "{}", 422, "validation"},
                 {"a", "{\"code\": \"\", \"files\": [{}]}", 422, "parsing"}};

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct answer answer;
        post_body(fixture, cases[i].id, cases[i].body, &answer);
        assert_int_equal(answer.status, cases[i].status);
        assert_string_equal(text(&answer, "error.type"), cases[i].type);
        drop(&answer);
    }
    assert_int_equal(fixture->fake.acquired, 0);
    assert_int_equal(sessions_count(fixture->app.sessions), 0);
}

static void a_body_over_the_limit_is_not_read(void **state) {
    struct fixture *fixture = *state;
    struct memory_connection memory;

    memory_init(&memory, "POST", "/exec?sessionId=a");
    memory_set_body(&memory, "", 0);
    snprintf(memory.length, sizeof memory.length, "%llu",
             (unsigned long long)settings_max_body(&fixture->settings) + 1);
    routes_handle(&fixture->app, &memory.connection);
    assert_int_equal(memory_status(&memory), 413);
    memory_clear(&memory);
    /* One that is shorter than it says is no request. */
    memory_init(&memory, "POST", "/exec?sessionId=a");
    memory_set_body(&memory, "{}", 2);
    snprintf(memory.length, sizeof memory.length, "3");
    routes_handle(&fixture->app, &memory.connection);
    assert_int_equal(memory_status(&memory), 400);
    memory_clear(&memory);
}

static void without_room_for_a_body_or_a_call_there_is_no_call(void **state) {
    struct fixture *fixture = *state;
    struct budget_share bytes = {&fixture->app.bytes, 0},
                        calls = {&fixture->app.calls, 0};

    assert_true(budget_take(&bytes, fixture->app.bytes.limit));
    expect_error(fixture, "a", "print", 503, "capacity", true);
    budget_release(&bytes);
    assert_true(budget_take(&calls, 4));
    expect_error(fixture, "a", "print", 503, "capacity", true);
    budget_release(&calls);
    expect(fixture, "a", "print", true, "none", 1);
}

static void the_rate_is_limited_and_told(void **state) {
    struct fixture *fixture = *state;
    struct answer answer;

    fixture->settings.rate_limit = 2;
    app_clear(&fixture->app);
    app_start(fixture);
    post(fixture, "a", "print", &answer);
    assert_true(memory_has_line(&answer.memory, "RateLimit-Limit: 2"));
    assert_true(memory_has_line(&answer.memory, "RateLimit-Remaining: 1"));
    drop(&answer);
    post_body(fixture, "a", "not json", &answer);
    assert_int_equal(answer.status, 400);
    assert_true(memory_has_line(&answer.memory, "RateLimit-Remaining: 0"));
    drop(&answer);
    expect_error(fixture, "a", "print", 429, "rate_limit", true);
    expect(fixture, "b", "print", true, "none", 1);
}

static void a_slow_reader_does_not_hold_the_session(void **state) {
    struct fixture *fixture = *state;
    struct answer answer;

    /* Whoever takes no byte is as slow as can be; the session was left before. */
    snprintf(answer.target, sizeof answer.target, "/exec?sessionId=a");
    memory_init(&answer.memory, "POST", answer.target);
    memory_set_body(&answer.memory, "{\"code\": \"print\"}", 17);
    answer.memory.takes = 1;
    routes_handle(&fixture->app, &answer.memory.connection);
    memory_clear(&answer.memory);
    expect(fixture, "a", "print", false, "none", 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        with_fixture(code_is_run_in_its_session),
        with_fixture(files_and_input_go_in),
        with_fixture(checks_come_before_anything_is_run),
        with_fixture(a_body_over_the_limit_is_not_read),
        with_fixture(without_room_for_a_body_or_a_call_there_is_no_call),
        with_fixture(the_rate_is_limited_and_told),
        with_fixture(a_slow_reader_does_not_hold_the_session),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
