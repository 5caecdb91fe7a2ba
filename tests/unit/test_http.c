/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "fcgi-app/http.h"
#include "tests/unit/memory_connection.h"

static const struct networks nobody = {0};

static struct http_request read_request(struct memory_connection *memory) {
    struct http_request request;

    assert_int_equal(http_request_read(&memory->connection, &nobody, &request, NULL), 0);
    return request;
}

static void targets_are_divided_at_the_first_question_mark(void **state) {
    static const struct {
        const char *target, *path, *query;
    } cases[] = {{"/exec?sessionId=a", "/exec", "sessionId=a"},
                 {"/exec?a=?b", "/exec", "a=?b"},
                 {"/exec?", "/exec", ""},
                 {"/exec", "/exec", ""},
                 {"/e%78ec", "/e%78ec", ""},
                 {"", "", ""}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct memory_connection memory;
        memory_init(&memory, "GET", cases[i].target);
        struct http_request request = read_request(&memory);
        assert_slice_equal(request.path, cases[i].path);
        assert_slice_equal(request.query, cases[i].query);
    }
}

static void the_path_begins_behind_the_prefix(void **state) {
    static const struct {
        const char *script, *target, *path;
    } cases[] = {{"/python", "/python/exec?a=/python/x", "/exec"},
                 {"/python", "/python/", "/"},
                 {"/a/b", "/a/b/health", "/health"},
                 {"/python", "/python/python/exec", "/python/exec"},
                 {"/my tools", "/my%20tools/exec", "/exec"},
                 {"/\xc3\xbc", "/%C3%bc/exec", "/exec"},
                 {"/\xc3\xbc", "/\xc3\xbc/exec", "/exec"},
                 {"/100%", "/100%25/exec", "/exec"},
                 {"/100%", "/100%/exec", "/exec"},
                 {"/python", "/p%79thon/exec", "/exec"},
                 /* what is behind it is not decoded */
                 {"/python", "/python/e%78ec", "/e%78ec"},
                 {"/python", "/python//exec", "//exec"},
                 {"/python", "/python/../exec", "/../exec"}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct memory_connection memory;
        memory_init(&memory, "GET", cases[i].target);
        memory.script = cases[i].script;
        assert_slice_equal(read_request(&memory).path, cases[i].path);
    }
}

static void without_a_prefix_the_path_is_whole(void **state) {
    static const struct {
        const char *script, *target;
    } cases[] = {
        {NULL, "/exec"},
        {"", "/exec"},
        /* the whole path as the name of the script, as nginx has it by default */
        {"/exec", "/exec"},
        {"/exec/", "/exec/"},
        {"/exec", "/e%78ec"},
        {"/exec", "/x/../exec"},
        {"/", "/exec"},
        {"/python/", "/python/exec"},
        /* not under the prefix, but for what the web server made of it */
        {"/python", "/python"},
        {"/python", "/pythonic/exec"},
        {"/python", "/python%2fexec"},
        {"/python", "/Python/exec"},
        {"/python", "//python/exec"},
        {"/python", "/x/../python/exec"},
        {"/python", "/exec"},
        {"/python", "/pyt"},
        {"/python", "/pyth%6"},
        {"/python", "/pyth%"},
        {"/python", ""}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct memory_connection memory;
        memory_init(&memory, "GET", cases[i].target);
        memory.script = cases[i].script;
        assert_slice_equal(read_request(&memory).path, cases[i].target);
    }
}

static void methods_are_told_apart(void **state) {
    static const struct {
        const char *name;
        enum http_method method;
    } cases[] = {{"GET", HTTP_GET},         {"HEAD", HTTP_HEAD}, {"POST", HTTP_POST},
                 {"OPTIONS", HTTP_OPTIONS}, {"PUT", HTTP_OTHER}, {"get", HTTP_OTHER},
                 {"", HTTP_OTHER},          {NULL, HTTP_OTHER}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct memory_connection memory;
        memory_init(&memory, cases[i].name, "/");
        assert_int_equal(read_request(&memory).method, cases[i].method);
    }
}

static void the_content_type_may_have_parameters(void **state) {
    static const struct {
        const char *type;
        bool is_json;
    } cases[] = {{"application/json", true},
                 {"Application/JSON; charset=utf-8", true},
                 {"application/json ;charset=utf-8", true},
                 {"application/json;", true},
                 {"application/jsonp", false},
                 {"application/json, text/plain", false},
                 {"text/json", false},
                 {"", false},
                 {NULL, false}};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct memory_connection memory;
        memory_init(&memory, "POST", "/exec");
        memory.content_type = cases[i].type;
        assert_int_equal(read_request(&memory).is_json, cases[i].is_json);
    }
}

static void lengths_are_numbers(void **state) {
    static const char *const refused[] = {
        "-1", "1x", "0x10", " 1", "18446744073709551616", "99999999999999999999999"};
    struct memory_connection memory;
    struct http_request request;
    struct viv_error err;

    (void)state;
    memory_init(&memory, "POST", "/exec");
    assert_int_equal(read_request(&memory).body_size, 0);
    strcpy(memory.length, "18446744073709551615");
    assert_true(read_request(&memory).body_size == UINT64_MAX);
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        snprintf(memory.length, sizeof memory.length, "%s", refused[i]);
        assert_fails(http_request_read(&memory.connection, &nobody, &request, &err), &err,
                     VIV_NOT_JSON, "Content-Length");
    }
}

static void a_head_has_what_all_have_and_what_was_set(void **state) {
    struct memory_connection memory;
    struct http_head head = {.status = 429,
                             .allow = "POST",
                             .retry_after_s = 7,
                             .rate_limited = true,
                             .rate_limit = 10,
                             .rate_remaining = 0,
                             .rate_reset_s = 7};

    (void)state;
    memory_init(&memory, "GET", "/");
    assert_int_equal(http_head_write(&memory.connection, &head, 12), 0);
    assert_slice_equal((struct slice){memory.answer.data, memory.answer.size},
                       "Status: 429 Too Many Requests\r\n"
                       "Content-Type: application/json\r\n"
                       "Content-Length: 12\r\n"
                       "Cache-Control: no-store\r\n"
                       "X-Content-Type-Options: nosniff\r\n"
                       "Allow: POST\r\n"
                       "Retry-After: 7\r\n"
                       "RateLimit-Limit: 10\r\n"
                       "RateLimit-Remaining: 0\r\n"
                       "RateLimit-Reset: 7\r\n\r\n");
    memory_clear(&memory);
    head = (struct http_head){.status = 200};
    assert_int_equal(http_head_write(&memory.connection, &head, 0), 0);
    assert_null(memmem(memory.answer.data, memory.answer.size, "Retry", 5));
    assert_null(memmem(memory.answer.data, memory.answer.size, "Rate", 4));
    assert_null(memmem(memory.answer.data, memory.answer.size, "Allow", 5));
    memory_clear(&memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(targets_are_divided_at_the_first_question_mark),
        cmocka_unit_test(the_path_begins_behind_the_prefix),
        cmocka_unit_test(without_a_prefix_the_path_is_whole),
        cmocka_unit_test(methods_are_told_apart),
        cmocka_unit_test(the_content_type_may_have_parameters),
        cmocka_unit_test(lengths_are_numbers),
        cmocka_unit_test(a_head_has_what_all_have_and_what_was_set),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
