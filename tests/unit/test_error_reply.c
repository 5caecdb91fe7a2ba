/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "fcgi-app/error_reply.h"
#include "fcgi-app/error_type.h"
#include "tests/unit/memory_connection.h"

struct fixture {
    struct memory_connection memory;
    struct exchange exchange;
};

static void set_up(struct fixture *fixture, enum http_method method) {
    memory_init(&fixture->memory, "POST", "/exec");
    fixture->exchange = (struct exchange){.connection = &fixture->memory.connection,
                                          .request = {.method = method},
                                          .id = "0123456789abcdef",
                                          .route = "exec"};
}

static void reply(struct fixture *fixture, enum viv_code code,
                  const struct validation_details *details) {
    struct viv_error err = {.code = code, .message = "what \"went\" wrong"};

    set_up(fixture, HTTP_POST);
    error_reply(&fixture->exchange, &err, details);
}

static void every_code_has_its_type_and_status(void **state) {
    static const struct {
        enum viv_code code;
        const char *type;
        int status;
        bool retry;
    } rows[] = {
        {VIV_SYSTEM, "system", 500, false},
        {VIV_BAD_GATEWAY, "system", 502, false},
        {VIV_UNAVAILABLE, "system", 503, true},
        {VIV_TIMED_OUT, "system", 503, true},
        {VIV_CONFIG, "system", 500, false},
        {VIV_OK, "system", 500, false},
        {VIV_CODE_COUNT, "system", 500, false},
        {VIV_NOT_JSON, "validation", 400, false},
        {VIV_CONTENT_TYPE, "validation", 415, false},
        {VIV_VALIDATION, "validation", 422, false},
        {VIV_PARSING, "parsing", 422, false},
        {VIV_RESOURCE_LIMIT, "resource_limit", 413, false},
        {VIV_RATE_LIMIT, "rate_limit", 429, true},
        {VIV_BUSY, "busy", 409, true},
        {VIV_CAPACITY, "capacity", 503, true},
        {VIV_NOT_FOUND, "not_found", 404, false},
        {VIV_METHOD, "method", 405, false},
        {VIV_INTERRUPTED, "interrupted", 409, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture fixture;
        const char *type, *message;
        int success;
        reply(&fixture, rows[i].code, NULL);
        json_t *answer = memory_json(&fixture.memory);
        assert_int_equal(json_unpack(answer, "{s:b, s:{s:s, s:s !} !}", "success",
                                     &success, "error", "type", &type, "message",
                                     &message),
                         0);
        assert_false(success);
        assert_string_equal(type, rows[i].type);
        assert_int_equal(memory_status(&fixture.memory), rows[i].status);
        assert_int_equal(fixture.exchange.head.retry_after_s > 0, rows[i].retry);
        bool is_system = strcmp(type, "system") == 0;
        assert_int_equal(strstr(message, "0123456789abcdef") != NULL, is_system);
        assert_int_equal(strcmp(message, "what \"went\" wrong") == 0, !is_system);
        json_decref(answer);
        memory_clear(&fixture.memory);
    }
}

static void details_are_told(void **state) {
    struct fixture fixture;
    struct validation_details details = {0};

    (void)state;
    validation_add(&details, "body", "/code", "string", "code is missing");
    validation_add(&details, "query", "/sessionId", "string", "is \"empty\"");
    reply(&fixture, VIV_VALIDATION, &details);
    json_t *answer = memory_json(&fixture.memory);
    json_t *expected = json_pack("[{s:s, s:s, s:s, s:s}, {s:s, s:s, s:s, s:s}]", "on",
                                 "body", "path", "/code", "expected", "string", "message",
                                 "code is missing", "on", "query", "path", "/sessionId",
                                 "expected", "string", "message", "is \"empty\"");
    assert_true(json_equal(json_object_get(json_object_get(answer, "error"), "details"),
                           expected));
    json_decref(answer);
    json_decref(expected);
    memory_clear(&fixture.memory);
}

static void head_and_options_have_no_body(void **state) {
    struct viv_error err = {.code = VIV_NOT_FOUND, .message = "nothing here"};
    size_t size = 0;

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct fixture fixture;
        set_up(&fixture, i == 0 ? HTTP_HEAD : HTTP_OPTIONS);
        error_reply(&fixture.exchange, &err, NULL);
        assert_int_equal(memory_status(&fixture.memory), 404);
        assert_non_null(memory_body(&fixture.memory, &size));
        assert_int_equal(size, 0);
        assert_int_equal(memory_has_line(&fixture.memory, "Content-Length: 0"), i == 1);
        memory_clear(&fixture.memory);
    }
}

static void what_was_set_before_stays(void **state) {
    struct fixture fixture;
    struct viv_error err = {.code = VIV_RATE_LIMIT, .message = "too fast"};

    (void)state;
    set_up(&fixture, HTTP_POST);
    fixture.exchange.head.retry_after_s = 17;
    error_reply(&fixture.exchange, &err, NULL);
    assert_true(memory_has_line(&fixture.memory, "Retry-After: 17"));
    /* And there is one answer only. */
    size_t size = fixture.memory.answer.size;
    error_reply(&fixture.exchange, &err, NULL);
    assert_int_equal(fixture.memory.answer.size, size);
    memory_clear(&fixture.memory);
}

static void a_client_that_leaves_is_noticed(void **state) {
    struct fixture fixture;
    struct viv_error err = {.code = VIV_BUSY, .message = "busy"};

    (void)state;
    set_up(&fixture, HTTP_POST);
    fixture.memory.takes = 10;
    error_reply(&fixture.exchange, &err, NULL);
    assert_true(fixture.exchange.failed);
    memory_clear(&fixture.memory);
}

static void our_types_are_known(void **state) {
    static const char *const ours[] = {
        "validation", "parsing",    "resource_limit", "timeout", "crash", "busy",
        "capacity",   "rate_limit", "not_found",      "method",  "system"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(ours); i++)
        assert_true(error_type_is_ours(slice_of(ours[i])));
    assert_false(error_type_is_ours(SLICE("ValueError")));
    assert_false(error_type_is_ours(SLICE("__main__.timeout")));
    assert_false(error_type_is_ours(SLICE("")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_its_type_and_status),
        cmocka_unit_test(details_are_told),
        cmocka_unit_test(head_and_options_have_no_body),
        cmocka_unit_test(what_was_set_before_stays),
        cmocka_unit_test(a_client_that_leaves_is_noticed),
        cmocka_unit_test(our_types_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
