/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <fcntl.h>

#include "fcgi-app/sandbox_call.h"
#include "tests/unit/fake_sandbox.h"

/* A call against a supervisor of make-believe: see fake_sandbox.h for the language of
 * `code`. */
struct fixture {
    struct settings settings;
    struct budget bytes;
    atomic_bool gate;
    struct fake_sandbox fake;
    struct sandbox_call call;
    struct exec_request request;
    struct call_result result;
    struct viv_error err;
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);

    settings_init(&fixture->settings);
    fixture->bytes.limit = 1 << 30;
    fixture->request.timeout_ms = 20000;
    int channel = fake_sandbox_start(&fixture->fake, &fixture->gate);
    fcntl(channel, F_SETFL, O_NONBLOCK);
    fixture->call = (struct sandbox_call){.settings = &fixture->settings,
                                          .channel = channel,
                                          .timeout_ms = fixture->request.timeout_ms};
    call_result_init(&fixture->result, &fixture->bytes);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;

    call_result_clear(&fixture->result);
    assert_int_equal(fixture->bytes.used, 0);
    fixture->gate = true;
    fake_sandbox_stop(&fixture->fake);
    close(fixture->call.channel);
    settings_clear(&fixture->settings);
    free(fixture);
    return 0;
}

static void run_request(struct fixture *fixture) {
    fixture->call.sequence++;
    fixture->call.number++;
    call_result_clear(&fixture->result);
    fixture->err = (struct viv_error){.code = VIV_OK, .message = ""};
    assert_int_equal(sandbox_call_send(&fixture->call, &fixture->request, &fixture->err),
                     0);
    sandbox_call_receive(&fixture->call, &fixture->result, &fixture->err);
}

static struct call_result *run(struct fixture *fixture, const char *code) {
    fixture->request.code = slice_of(code);
    run_request(fixture);
    return &fixture->result;
}

static void assert_text(const struct buffer *buffer, const char *expected) {
    assert_slice_equal((struct slice){buffer->data, buffer->size}, expected);
}

static void a_call_brings_output_value_and_verdict(void **state) {
    struct fixture *fixture = *state;
    struct call_result *result =
        run(fixture, "print one\nerror two\nprint three\nvalue dict {\"a\": 1}");

    assert_int_equal(result->end, CALL_DONE);
    assert_int_equal(result->done.outcome, SESSION_RAN);
    assert_int_equal(result->runtime_ms, 7);
    assert_text(&result->streams[0].text, "onethree");
    assert_text(&result->streams[1].text, "two");
    assert_text(&result->value, "{\"a\": 1}");
    assert_true(result->value_is_json);
    assert_text(&result->value_type, "dict");
    assert_false(result->raised);
    /* And the next one, over the same channel. */
    assert_true(sandbox_channel_is_clean(fixture->call.channel));
    result = run(fixture, "raise NameError 3 PythonError: x");
    assert_true(result->raised);
    assert_text(&result->error_type, "NameError");
    assert_text(&result->error_text, "PythonError: x");
    assert_int_equal(result->error_line, 3);
    assert_int_equal(result->value.size, 0);
}

static void the_request_arrives_whole(void **state) {
    struct fixture *fixture = *state;
    char *large = malloc(4 << 20);
    struct exec_file files[] = {
        {.name = SLICE("empty"), .base64 = SLICE("")},
        {.name = SLICE("small"), .base64 = SLICE("YWJj\r\n")},
        {.name = SLICE("folder/large"), .base64 = {large, 4 << 20}},
    };

    memset(large, 'A', 4 << 20);
    fixture->request.has_input = true;
    fixture->request.input = SLICE("from stdin");
    fixture->request.files = files;
    fixture->request.file_count = COUNT_OF(files);
    struct call_result *result = run(fixture, "uploads\ninput");
    assert_text(&result->streams[0].text,
                "empty 0\nsmall 3\nfolder/large 3145728\nfrom stdin");
    free(large);
    const struct session_exec *exec = &fixture->fake.exec;
    assert_int_equal(exec->number, 1);
    assert_int_equal(exec->timeout_ms, 20000);
    assert_int_equal(exec->grace_ms, 2000);
    assert_int_equal(exec->max_output, 1 << 20);
    assert_int_equal(exec->max_result, 64 << 10);
    assert_int_equal(exec->max_output_files, 100);
    assert_true(exec->max_file_size == 10 << 20);
    assert_true(exec->max_output_total == 100 << 20);
    assert_true(exec->has_stdin);
}

static void files_come_sorted_and_whole(void **state) {
    struct fixture *fixture = *state;
    struct call_result *result =
        run(fixture, "value int 1\nfile z 0\nfile a/b 300000\nleft 1 big 99\nfile a/b 1");

    assert_int_equal(result->end, CALL_DONE);
    assert_int_equal(result->file_count, 2); /* the same name twice is one */
    assert_string_equal(result->files[0].name, "a/b");
    assert_string_equal(result->files[1].name, "z");
    assert_int_equal(result->files[1].content.size, 0);
    assert_int_equal(result->left_out_count, 1);
    assert_string_equal(result->left_out[0].name, "big");
    assert_int_equal(result->left_out[0].size, 99);
    assert_string_equal(result->left_out[0].reason, "too_large");
    result = run(fixture, "file x 300000");
    assert_int_equal(result->files[0].content.size, 300000);
    assert_int_equal(result->files[0].content.data[299999], 'x');
}

static void names_that_are_refused_are_left_out(void **state) {
    struct fixture *fixture = *state;
    struct call_result *result =
        run(fixture, "file ../x 5\nfile /etc/x 6\nfile a\\b 7\nfile ok 1");

    assert_int_equal(result->end, CALL_DONE);
    assert_int_equal(result->file_count, 1);
    assert_int_equal(result->left_out_count, 3);
    assert_string_equal(result->left_out[0].name, "../x");
    assert_string_equal(result->left_out[0].reason, "name");
    assert_int_equal(result->left_out[0].size, 5);
}

static void what_the_budget_does_not_hold_is_left_out(void **state) {
    struct fixture *fixture = *state;

    fixture->bytes.limit = 100000;
    struct call_result *result =
        run(fixture, "print hello\nfile large 300000\nfile small 1000");
    assert_int_equal(result->end, CALL_DONE);
    assert_text(&result->streams[0].text, "hello");
    assert_int_equal(result->file_count, 1);
    assert_string_equal(result->files[0].name, "small");
    assert_string_equal(result->left_out[0].name, "large");
    assert_string_equal(result->left_out[0].reason, "no_room");
    assert_int_equal(result->left_out[0].size, 300000);
    fixture->bytes.limit = 8;
    result = run(fixture, "print 12345\nprint 12345\nprint 1\nvalue str \"long\"");
    assert_text(&result->streams[0].text, "12345");
    assert_true(result->streams[0].truncated);
    assert_false(result->streams[1].truncated);
    assert_true(result->value_truncated);
}

static void a_character_that_was_cut_is_dropped(void **state) {
    struct fixture *fixture = *state;
    static const struct {
        const char *printed, *kept;
    } cases[] = {{"a\xe2\x98", "a"},
                 {"a\xe2\x98\x95", "a\xe2\x98\x95"},
                 {"a\xf0\x9f\x98", "a"},
                 {"a\xc3", "a"},
                 {"a\x80", "a\x80"},
                 {"a\xc3\xbc", "a\xc3\xbc"},
                 {"\x80\x80\x80", "\x80\x80\x80"},
                 {"\xf0", ""}};

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char code[64];
        snprintf(code, sizeof code, "print %s\ncut", cases[i].printed);
        struct call_result *result = run(fixture, code);
        assert_true(result->streams[0].truncated);
        assert_text(&result->streams[0].text, cases[i].kept);
    }
}

static void verdicts_are_told_apart(void **state) {
    struct fixture *fixture = *state;
    static const struct {
        const char *code;
        enum session_outcome outcome;
        int signal, status;
    } cases[] = {{"timeout", SESSION_TIMED_OUT, 0, 0},
                 {"memory", SESSION_OUT_OF_MEMORY, 0, 0},
                 {"broke", SESSION_BROKE_PROTOCOL, 0, 0},
                 {"crash 11", SESSION_CRASHED, 11, 0},
                 {"exit 3", SESSION_CRASHED, 0, 3}};

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct call_result *result = run(fixture, cases[i].code);
        assert_int_equal(result->end, CALL_DONE);
        assert_int_equal(result->done.outcome, cases[i].outcome);
        assert_int_equal(result->done.signal, cases[i].signal);
        assert_int_equal(result->done.status, cases[i].status);
    }
    assert_true(run(fixture, "lost")->done.variables_lost);
}

static void a_refusal_runs_nothing_and_leaves_the_channel(void **state) {
    struct fixture *fixture = *state;
    struct call_result *result = run(fixture, "refuse 2 3");

    assert_int_equal(result->end, CALL_REFUSED);
    assert_int_equal(result->refused.reason, SESSION_IN_THE_WAY);
    assert_int_equal(result->refused.file, 3);
    assert_int_equal(run(fixture, "print x")->end, CALL_DONE);
}

/* Frames out of order, of another form, or of another call: each ends the sandbox. */
static void breaches_are_noticed(void **state) {
    static const char *const codes[] = {
        "raw 17 \3x",                      /* output of no stream */
        "raw 17 \1",                       /* empty output */
        "raw 3 data",                      /* content without a file */
        "raw 19 123456789",                /* the end of no file */
        "raw 2 name\nraw 17 \1x",          /* output inside a file */
        "raw 2 name\nraw 2 name",          /* a file inside a file */
        "raw 2 name\nraw 3 ab\nraw 19 \1", /* a malformed end */
        "value int 1\nfile f 1\nraw 18 x", /* a result behind a file */
        "raw 18 x",                        /* malformed claims */
        "raw 18 \1",                       /* claims without a status */
        "print x\nrefuse 1 0",             /* a refusal of what runs */
        "raw 16 123456",                   /* a malformed refusal */
        "raw 20 ",                         /* a malformed file that is left out */
        "raw 21 short",                    /* a malformed verdict */
        "raw 21 123456789012345678901234567890123456789", /* of another call */
        "checkpoint 4000000", /* the end of a later execution */
        "restored 4000000",
        "raw 1 x",  /* a frame of the other direction */
        "raw 99 x", /* no frame at all */
        "die",
        "print x\ndie",
        "late", /* something behind the verdict */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        void *own;
        set_up(&own);
        struct fixture *fixture = own;
        struct call_result *result = run(fixture, codes[i]);
        if (strcmp(codes[i], "late") == 0 && result->end == CALL_DONE) {
            /* It came after the verdict was read: then it is found before the next
             * call. */
            struct pollfd waited = {.fd = fixture->call.channel, .events = POLLIN};
            assert_int_equal(poll(&waited, 1, 20000), 1);
            assert_false(sandbox_channel_is_clean(fixture->call.channel));
        } else {
            if (result->end != CALL_BROKEN)
                fail_msg("not noticed: %s", codes[i]);
            assert_int_equal(fixture->err.code, VIV_BAD_GATEWAY);
        }
        tear_down(&own);
    }
}

static void a_flood_is_noticed(void **state) {
    struct fixture *fixture = *state;

    fixture->settings.max_output = 10;
    assert_int_equal(run(fixture, "print 12345\nprint 123456")->end, CALL_BROKEN);
    assert_non_null(strstr(fixture->err.message, "too much output"));
}

static void files_beyond_the_limits_are_noticed(void **state) {
    static const char *const codes[] = {"file a 1\nfile b 1\nfile c 1", "file a 501"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        void *own;
        set_up(&own);
        struct fixture *fixture = own;
        fixture->settings.max_output_files = 2;
        fixture->settings.max_file_size = 500;
        assert_int_equal(run(fixture, codes[i])->end, CALL_BROKEN);
        tear_down(&own);
    }
}

static void no_verdict_in_time_is_overdue(void **state) {
    struct fixture *fixture = *state;

    /* The limit is timeout + grace + SANDBOX_COLLECT_MS; unsigned numbers make it
     * short. */
    fixture->call.timeout_ms = 1;
    fixture->settings.interrupt_grace = (uint64_t)(50 - SANDBOX_COLLECT_MS);
    struct call_result *result = run(fixture, "print so far\nhang");
    assert_int_equal(result->end, CALL_OVERDUE);
    assert_int_equal(fixture->err.code, VIV_TIMED_OUT);
    assert_text(&result->streams[0].text, "so far");
    assert_true(result->runtime_ms >= 40);
}

static void a_sandbox_that_is_gone_gets_no_request(void **state) {
    struct fixture *fixture = *state;

    assert_true(sandbox_channel_is_clean(fixture->call.channel));
    run(fixture, "die");
    assert_false(sandbox_channel_is_clean(fixture->call.channel));
    fixture->request.code = SLICE("print x");
    assert_fails(sandbox_call_send(&fixture->call, &fixture->request, &fixture->err),
                 &fixture->err, VIV_BAD_GATEWAY, "");
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        with_fixture(a_call_brings_output_value_and_verdict),
        with_fixture(the_request_arrives_whole),
        with_fixture(files_come_sorted_and_whole),
        with_fixture(names_that_are_refused_are_left_out),
        with_fixture(what_the_budget_does_not_hold_is_left_out),
        with_fixture(a_character_that_was_cut_is_dropped),
        with_fixture(verdicts_are_told_apart),
        with_fixture(a_refusal_runs_nothing_and_leaves_the_channel),
        cmocka_unit_test(breaches_are_noticed),
        with_fixture(a_flood_is_noticed),
        with_fixture(files_beyond_the_limits_are_noticed),
        with_fixture(no_verdict_in_time_is_overdue),
        with_fixture(a_sandbox_that_is_gone_gets_no_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
