/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "fcgi-app/exec_reply.h"

struct fixture {
    struct budget bytes;
    struct call_result result;
    struct exec_reply reply;
    struct buffer text;
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);

    fixture->bytes.limit = 1 << 20;
    call_result_init(&fixture->result, &fixture->bytes);
    fixture->result.end = CALL_DONE;
    fixture->result.done.outcome = SESSION_RAN;
    fixture->result.has_claims = true;
    fixture->result.runtime_ms = 42;
    fixture->reply = (struct exec_reply){.result = &fixture->result,
                                         .timeout_ms = 1500,
                                         .session_id = "default",
                                         .created = true,
                                         .lost = "none",
                                         .execution_count = 1};
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;

    call_result_clear(&fixture->result);
    buffer_clear(&fixture->text);
    free(fixture);
    return 0;
}

static int append(void *context, const void *data, size_t size) {
    return buffer_append(context, data, size, SIZE_MAX / 2, NULL);
}

/* The body's text; the size that was counted is its size. */
static struct slice body(struct fixture *fixture) {
    struct json_out out = {.sink = append, .context = &fixture->text}, counted = {0};

    buffer_clear(&fixture->text);
    exec_reply_write(&counted, &fixture->reply);
    exec_reply_write(&out, &fixture->reply);
    assert_int_equal(counted.size, fixture->text.size);
    json_t *json =
        json_loadb(fixture->text.data, fixture->text.size, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    json_decref(json);
    return (struct slice){fixture->text.data, fixture->text.size};
}

static bool body_holds(struct fixture *fixture, const char *part) {
    struct slice text = body(fixture);

    return memmem(text.data, text.size, part, strlen(part)) != NULL;
}

static void set_text(struct buffer *buffer, const char *text) {
    buffer_clear(buffer);
    buffer_append(buffer, text, strlen(text), SIZE_MAX / 2, NULL);
}

static void raise_error(struct fixture *fixture, const char *type, const char *text) {
    fixture->result.raised = true;
    set_text(&fixture->result.error_type, type);
    set_text(&fixture->result.error_text, text);
}

#define SESSION                                                                          \
    "\"session\":{\"id\":\"default\",\"created\":true,\"lost\":\"none\","                \
    "\"execution_count\":1,\"checkpoint\":null}}"
#define NOTHING                                                                          \
    "\"std_out\":\"\",\"std_err\":\"\",\"output_files\":[],\"code_runtime\":42,"

static void success_has_the_form_of_the_contract(void **state) {
    struct fixture *fixture = *state;

    call_result_add_output(&fixture->result, 0, SLICE("4\n"));
    assert_slice_equal(
        body(fixture),
        "{\"success\":true,\"result\":{\"success\":true,\"std_out\":\"4\\n\","
        "\"std_err\":\"\",\"final_expression\":null,"
        "\"final_expression_type\":null,\"output_files\":[],"
        "\"code_runtime\":42}," SESSION);
}

static void all_that_may_be_there_is_there(void **state) {
    struct fixture *fixture = *state;
    struct buffer content = {0};

    set_text(&fixture->result.value, "{\"a\": [1.5]}");
    fixture->result.value_is_json = true;
    set_text(&fixture->result.value_type, "dict");
    set_text(&content, "abc");
    call_result_add_file(&fixture->result, SLICE("plots/a.png"), &content);
    call_result_add_left_out(&fixture->result, SLICE("big"), 11000000, "too_large");
    fixture->result.left_out_unnamed = 3;
    fixture->result.value_truncated = true;
    fixture->result.streams[1].truncated = true;
    fixture->reply.created = false;
    fixture->reply.lost = "variables";
    fixture->reply.execution_count = 12;
    assert_slice_equal(
        body(fixture),
        "{\"success\":true,\"result\":{\"success\":true,\"std_out\":\"\",\"std_err\":"
        "\"\","
        "\"final_expression\":{\"a\": [1.5]},\"final_expression_type\":\"dict\","
        "\"output_files\":[{\"filename\":\"plots/a.png\",\"b64_data\":\"YWJj\"}],"
        "\"code_runtime\":42,"
        "\"truncated\":{\"std_out\":false,\"std_err\":true,\"final_expression\":true},"
        "\"files_left_out\":[{\"filename\":\"big\",\"size\":11000000,"
        "\"reason\":\"too_large\"}],\"more_files_left_out\":3},"
        "\"session\":{\"id\":\"default\",\"created\":false,\"lost\":\"variables\","
        "\"execution_count\":12,\"checkpoint\":null}}");
}

static void the_checkpoint_is_told(void **state) {
    struct fixture *fixture = *state;
    struct session_done *done = &fixture->result.done;
    static const char *const words[] = {"threads", "open_files", "shared_memory",
                                        "memory", "refused"};
    char expected[128];

    fixture->reply.execution_count = 12;
    done->checkpoint = 11;
    assert_true(body_holds(fixture, "\"execution_count\":12,\"checkpoint\":11}}"));
    done->restored_to = 9;
    for (int skipped = SESSION_HAS_THREADS; skipped < SESSION_SKIPPED_COUNT; skipped++) {
        done->skipped = (enum session_skipped)skipped;
        snprintf(expected, sizeof expected,
                 "\"checkpoint\":11,\"checkpoint_skipped\":\"%s\",\"restored_to\":9}}",
                 words[skipped - 1]);
        assert_true(body_holds(fixture, expected));
    }
}

static void a_value_that_is_no_json_comes_as_text(void **state) {
    struct fixture *fixture = *state;

    set_text(&fixture->result.value, "NaN \"\xff");
    assert_true(body_holds(fixture, "\"final_expression\":\"NaN \\\"\xef\xbf\xbd\","));
}

static void an_exception_has_the_form_of_the_contract(void **state) {
    struct fixture *fixture = *state;

    raise_error(fixture, "NameError", "PythonError: Traceback\nNameError: name 'x'");
    fixture->result.error_line = 1;
    assert_slice_equal(body(fixture),
                       "{\"success\":false,\"error\":{\"type\":\"NameError\","
                       "\"message\":\"PythonError: Traceback\\nNameError: name "
                       "'x'\",\"line\":1}," NOTHING SESSION);
}

static void no_exception_passes_for_an_error_of_ours(void **state) {
    struct fixture *fixture = *state;

    raise_error(fixture, "system", "no mark");
    assert_slice_equal(body(fixture),
                       "{\"success\":false,\"error\":{\"type\":\"__main__.system\","
                       "\"message\":\"PythonError: no mark\"}," NOTHING SESSION);
}

static void verdicts_have_their_words(void **state) {
    struct fixture *fixture = *state;
    static const struct {
        enum session_outcome outcome;
        int signal, status;
        const char *type, *message;
    } cases[] = {
        {SESSION_TIMED_OUT, 0, 0, "timeout", "Execution exceeded the limit of 1500 ms"},
        {SESSION_OUT_OF_MEMORY, 0, 0, "resource_limit",
         "The code was stopped for its use of memory"},
        {SESSION_INTERRUPTED, 0, 0, "interrupted",
         "The code was interrupted, went on, and was killed"},
        {SESSION_BROKE_PROTOCOL, 0, 0, "crash",
         "The interpreter broke off its connection"},
        {SESSION_CRASHED, 11, 0, "crash",
         "The interpreter died: segmentation fault (SIGSEGV)"},
        {SESSION_CRASHED, 6, 0, "crash", "The interpreter died: aborted (SIGABRT)"},
        {SESSION_CRASHED, 9, 0, "crash", "The interpreter died: killed (SIGKILL)"},
        {SESSION_CRASHED, 200, 0, "crash", "The interpreter died: signal 200"},
        {SESSION_CRASHED, 0, 3, "crash", "The interpreter exited with status 3"},
        {SESSION_CRASHED, 0, 0, "crash", "The interpreter exited with status 0"},
    };

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char expected[512];
        fixture->result.done.outcome = cases[i].outcome;
        fixture->result.done.signal = (uint8_t)cases[i].signal;
        fixture->result.done.status = (uint8_t)cases[i].status;
        snprintf(
            expected, sizeof expected,
            "{\"success\":false,\"error\":{\"type\":\"%s\",\"message\":\"%s\"}," NOTHING
                SESSION,
            cases[i].type, cases[i].message);
        assert_slice_equal(body(fixture), expected);
        assert_string_equal(exec_reply_outcome(&fixture->result), cases[i].type);
    }
}

static void an_interrupt_in_time_says_where(void **state) {
    struct fixture *fixture = *state;

    raise_error(fixture, "KeyboardInterrupt", "PythonError: Traceback");
    fixture->result.error_line = 7;
    fixture->result.done.outcome = SESSION_TIMED_OUT;
    assert_slice_equal(
        body(fixture),
        "{\"success\":false,\"error\":{\"type\":\"timeout\",\"message\":"
        "\"Execution exceeded the limit of 1500 ms\\nPythonError: Traceback\","
        "\"line\":7}," NOTHING SESSION);
    /* What a crashed interpreter claimed before does not matter. */
    fixture->result.done.outcome = SESSION_CRASHED;
    assert_false(body_holds(fixture, "Traceback"));
    assert_false(body_holds(fixture, "line"));
}

static void a_lost_sandbox_is_an_execution_that_failed(void **state) {
    struct fixture *fixture = *state;

    fixture->reply.lost = "all";
    fixture->result.end = CALL_BROKEN;
    assert_string_equal(exec_reply_outcome(&fixture->result), "crash");
    assert_slice_equal(
        body(fixture),
        "{\"success\":false,\"error\":{\"type\":\"crash\",\"message\":"
        "\"The sandbox was lost while the code ran\"}," NOTHING
        "\"session\":{\"id\":\"default\",\"created\":true,\"lost\":\"all\","
        "\"execution_count\":1,\"checkpoint\":null}}");
    fixture->result.end = CALL_OVERDUE;
    assert_string_equal(exec_reply_outcome(&fixture->result), "timeout");
    fixture->result.end = CALL_ENDED;
    assert_string_equal(exec_reply_outcome(&fixture->result), "interrupted");
}

static void outcomes_for_the_log(void **state) {
    struct fixture *fixture = *state;

    assert_string_equal(exec_reply_outcome(&fixture->result), "ok");
    raise_error(fixture, "ValueError", "");
    assert_string_equal(exec_reply_outcome(&fixture->result), "raised");
}

static void long_texts_are_cut_and_say_so(void **state) {
    struct fixture *fixture = *state;
    size_t size = 100000;
    char *claims = malloc(size + 64);
    size_t used = 0;

    /* A status, a type, and an error text that is too long. */
    memcpy(claims, "\1\1\0\0\0\1\5\1\0\0\0E\6", 13);
    used = 13;
    put_u32(claims + used, (uint32_t)size);
    memset(claims + used + 4, 'm', size);
    assert_int_equal(call_result_add_claims(
                         &fixture->result, (struct slice){claims, used + 4 + size}, NULL),
                     0);
    free(claims);
    assert_true(fixture->result.error_text.size < size);
    assert_true(body_holds(fixture, "mmm\\n[the message is cut here]\""));
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        with_fixture(success_has_the_form_of_the_contract),
        with_fixture(all_that_may_be_there_is_there),
        with_fixture(the_checkpoint_is_told),
        with_fixture(a_value_that_is_no_json_comes_as_text),
        with_fixture(an_exception_has_the_form_of_the_contract),
        with_fixture(no_exception_passes_for_an_error_of_ours),
        with_fixture(verdicts_have_their_words),
        with_fixture(an_interrupt_in_time_says_where),
        with_fixture(a_lost_sandbox_is_an_execution_that_failed),
        with_fixture(outcomes_for_the_log),
        with_fixture(long_texts_are_cut_and_say_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
