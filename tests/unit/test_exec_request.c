/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <stdbool.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "fcgi-app/exec_request.h"

/* A parsed copy of a body on the heap. */
struct parsed {
    char *body;
    struct exec_request request;
    struct validation_details details;
    struct viv_error err;
    int failed;
};

static void parsed_clear_cleanup(struct parsed *p) {
    exec_request_clear(&p->request);
    free(p->body);
}

static struct parsed parse_bytes(struct slice text) {
    const struct settings settings = {
        .max_code = 100,
        .max_stdin = 50,
        .max_files = 4,
        .max_file_size = 30,
        .exec_timeout = 30000,
        .max_exec_timeout = 300000,
    };
    struct parsed p = {.body = viv_xmalloc(text.size)};

    if (text.size > 0)
        memcpy(p.body, text.data, text.size);
    p.failed =
        exec_request_parse(p.body, text.size, &settings, &p.request, &p.details, &p.err);
    return p;
}

static struct parsed parse(const char *text) { return parse_bytes(slice_of(text)); }

static struct parsed parse_good(const char *text) {
    struct parsed p = parse(text);

    if (p.failed)
        fail_msg("%s: %s", text, p.err.message);
    assert_int_equal(p.details.count, 0);
    return p;
}

static void check_failure(const char *text, enum viv_code code, const char *words) {
    CLEANUP(parsed_clear) struct parsed p = parse(text);

    if (!p.failed)
        fail_msg("%s is taken", text);
    if (p.err.code != code || !strstr(p.err.message, words))
        fail_msg("%s: code %d, %s", text, p.err.code, p.err.message);
    assert_null(p.request.files);
}

/* Expects a failure with exactly these details, as "path expected" each. */
static void check_details(const char *text, enum viv_code code, const char *expected) {
    CLEANUP(parsed_clear) struct parsed p = parse(text);
    char told[1000] = "";
    int used = 0;

    assert_int_equal(p.failed, -1);
    assert_int_equal(p.err.code, code);
    for (size_t i = 0; i < p.details.count; i++) {
        const struct validation_detail *detail = &p.details.items[i];
        assert_string_equal(detail->on, "body");
        used += snprintf(told + used, sizeof told - (size_t)used, "%s%s %s",
                         i ? ", " : "", detail->path, detail->expected);
    }
    assert_string_equal(told, expected);
    assert_ptr_equal(strstr(p.err.message, p.details.items[0].message), p.err.message);
}

static void the_least_request(void **state) {
    CLEANUP(parsed_clear) struct parsed p = parse_good("{\"code\":\"\"}");

    (void)state;
    assert_int_equal(p.request.code.size, 0);
    assert_false(p.request.has_input);
    assert_int_equal(p.request.timeout_ms, 30000);
    assert_int_equal(p.request.file_count, 0);
}

static void the_full_request(void **state) {
    CLEANUP(parsed_clear)
    struct parsed p = parse_good("{\"files\":[{\"b64_data\":\"QUJD\\r\\nQQ==\","
                                 "\"filename\":\"d\\u00fc/a.csv\",\"mode\":1},"
                                 "{\"filename\":\"empty\",\"b64_data\":\"\"}],"
                                 "\"stdin\":\"line\\n\",\"timeout_ms\":1500,\"code\":"
                                 "\"print('\\u2615')\",\"x\":[{}]}");

    (void)state;
    assert_slice_equal(p.request.code, "print('\xe2\x98\x95')");
    assert_true(p.request.has_input);
    assert_slice_equal(p.request.input, "line\n");
    assert_int_equal(p.request.timeout_ms, 1500);
    assert_int_equal(p.request.file_count, 2);
    assert_slice_equal(p.request.files[0].name, "d\xc3\xbc/a.csv");
    assert_slice_equal(p.request.files[0].base64, "QUJD\r\nQQ==");
    assert_int_equal(p.request.files[0].size, 4);
    assert_int_equal(p.request.files[0].index, 0);
    assert_slice_equal(p.request.files[1].name, "empty");
    assert_int_equal(p.request.files[1].size, 0);
    assert_int_equal(p.request.files[1].index, 1);
}

static void null_is_absent_where_that_is_allowed(void **state) {
    CLEANUP(parsed_clear)
    struct parsed p =
        parse_good("{\"code\":\"1\",\"files\":null,\"stdin\":null,\"timeout_ms\":null}");

    (void)state;
    assert_false(p.request.has_input);
    assert_int_equal(p.request.timeout_ms, 30000);
    assert_int_equal(p.request.file_count, 0);
    CLEANUP(parsed_clear)
    struct parsed empty = parse_good("{\"code\":\"1\",\"stdin\":\"\"}");
    assert_true(empty.request.has_input);
    check_details("{\"code\":null}", VIV_VALIDATION, "/code string");
    check_details("{\"code\":\"1\",\"files\":[{\"filename\":null,\"b64_data\":\"\"}]}",
                  VIV_PARSING, "/files/0/filename string");
}

static void what_is_not_json(void **state) {
    static const struct {
        const char *text;
        const char *words;
    } cases[] = {
        {"", "it is empty"},
        {" \r\n\t", "it ends too early"},
        {"code", "a syntax error near byte 4"},
        {"{'code':'1'}", "a syntax error"},
        {"{\"code\":\"1\",}", "a syntax error near byte 13"},
        {"{\"code\":\"print(\"hi\")\"}", "a syntax error near byte 18"},
        {"{\"code\":\"1\"", "it ends too early near byte 11"},
        {"{\"code\":\"1\"}{}", "something follows its end near byte 13"},
        {"{\"code\":\"1\"} // run", "something follows its end"},
        {"{\"code\":\"1\",\"code\":\"2\"}", "a member is given twice"},
        {"{\"code\":\"1\",\"\\u0063ode\":\"2\"}", "a member is given twice"},
        {"{\"code\":\"1\",\"x\":[{\"y\":1,\"y\":1}]}", "a member is given twice"},
        {"{\"code\":\"1\",\"x\":NaN}", "a syntax error"},
        {"{\"code\":\"1\",\"x\":1e999}", "a number is out of range"},
        {"{\"code\":\"1\",\"x\":01}", "a syntax error"},
        {"{\"code\":\"a\nb\"}", "an unescaped control character at byte 10"},
        {"{\"code\":\"\\u0000\"}", "an invalid escape at byte 9"},
        {"{\"code\" \"1\"}", "a syntax error"},
        {"[1}", "a syntax error"},
        {"{\"a\":\"1\" : 2}", "a syntax error"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_failure(cases[i].text, VIV_NOT_JSON, cases[i].words);
    CLEANUP(parsed_clear) struct parsed p = parse_bytes(SLICE("{\"code\":\"1\"}\0"));
    assert_int_equal(p.failed, -1);
    assert_int_equal(p.err.code, VIV_NOT_JSON);
}

static void every_member_of_a_wrong_type_is_named(void **state) {
    (void)state;
    check_details("{}", VIV_VALIDATION, "/code string");
    check_details("[]", VIV_VALIDATION, " object");
    check_details("5", VIV_VALIDATION, " object");
    check_details("\"code\"", VIV_VALIDATION, " object");
    check_details("{\"code\":1,\"files\":\"x\",\"stdin\":[],\"timeout_ms\":\"1\"}",
                  VIV_VALIDATION,
                  "/code string, /stdin string, /timeout_ms integer, /files array");
    check_details("{\"code\":true,\"files\":[{},5,{\"filename\":1,\"b64_data\":\"\"}]}",
                  VIV_VALIDATION,
                  "/code string, /files/0/filename string, /files/0/b64_data string, "
                  "/files/1 object, /files/2/filename string");
}

static void malformed_files_are_a_fault_of_parsing(void **state) {
    (void)state;
    check_details("{\"code\":\"1\",\"files\":[{}]}", VIV_PARSING,
                  "/files/0/filename string, /files/0/b64_data string");
    check_details(
        "{\"code\":\"1\",\"files\":[{\"filename\":\"a\",\"b64_data\":\"\"},null]}",
        VIV_PARSING, "/files/1 object");
    check_details("{\"code\":\"1\",\"files\":[{\"filename\":\"a\",\"data\":\"\"}]}",
                  VIV_PARSING, "/files/0/b64_data string");
}

static void messages_say_what_is_there(void **state) {
    (void)state;
    check_failure("{\"code\":[1]}", VIV_VALIDATION,
                  "code: a string is expected, but it is an array");
    check_failure("{}", VIV_VALIDATION, "code: a string is expected, but it is missing");
    check_failure("{\"code\":null,\"files\":1}", VIV_VALIDATION,
                  "code: a string is expected, but it is null (and 1 more)");
    check_failure("{\"code\":\"\",\"timeout_ms\":1000.0}", VIV_VALIDATION,
                  "timeout_ms: an integer is expected, but it is a number with fraction");
}

static void more_faults_than_details(void **state) {
    CLEANUP(buffer_clear) struct buffer text = {0};
    const char head[] = "{\"code\":\"1\",\"files\":[0", tail[] = "]}";

    (void)state;
    buffer_append(&text, head, sizeof head - 1, SIZE_MAX, NULL);
    for (int i = 0; i < 99; i++)
        buffer_append(&text, ",0", 2, SIZE_MAX, NULL);
    buffer_append(&text, tail, sizeof tail - 1, SIZE_MAX, NULL);
    CLEANUP(parsed_clear)
    struct parsed p = parse_bytes((struct slice){text.data, text.size});
    assert_int_equal(p.err.code, VIV_PARSING);
    assert_int_equal(p.details.count, VALIDATION_DETAILS_MAX);
    assert_int_equal(p.details.untold, 100 - VALIDATION_DETAILS_MAX);
    assert_non_null(strstr(p.err.message, "(and 99 more)"));
}

static void deadlines_have_a_range(void **state) {
    static const char *const bad[] = {"0",
                                      "-1",
                                      "300001",
                                      "4294967297",
                                      "1000.0",
                                      "1e3",
                                      "true",
                                      "\"1\"",
                                      "[1]",
                                      "9223372036854775807",
                                      "-9223372036854775808"};
    char text[100];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        snprintf(text, sizeof text, "{\"code\":\"1\",\"timeout_ms\":%s}", bad[i]);
        check_details(text, VIV_VALIDATION, "/timeout_ms integer");
    }
    CLEANUP(parsed_clear)
    struct parsed least = parse_good("{\"code\":\"\",\"timeout_ms\":1}");
    assert_int_equal(least.request.timeout_ms, 1);
    CLEANUP(parsed_clear)
    struct parsed most = parse_good("{\"code\":\"\",\"timeout_ms\":300000}");
    assert_int_equal(most.request.timeout_ms, 300000);
    check_failure("{\"code\":\"\",\"timeout_ms\":0}", VIV_VALIDATION,
                  "timeout_ms: a number from 1 to 300000");
}

/* A body with code and input of these sizes. */
static struct parsed parse_sizes(int code, int input) {
    char text[300];

    snprintf(text, sizeof text, "{\"code\":\"%0*d\",\"stdin\":\"%0*d\"}", code, 0, input,
             0);
    return parse(text);
}

static void texts_have_a_largest_size(void **state) {
    (void)state;
    CLEANUP(parsed_clear) struct parsed most = parse_sizes(100, 50);
    assert_int_equal(most.failed, 0);
    CLEANUP(parsed_clear) struct parsed code = parse_sizes(101, 50);
    assert_int_equal(code.err.code, VIV_RESOURCE_LIMIT);
    assert_string_equal(code.err.message, "code: 101 bytes, at most 100 are allowed");
    CLEANUP(parsed_clear) struct parsed input = parse_sizes(100, 51);
    assert_int_equal(input.err.code, VIV_RESOURCE_LIMIT);
    assert_string_equal(input.err.message, "stdin: 51 bytes, at most 50 are allowed");
}

#define A_FILE(name, data) "{\"filename\":\"" name "\",\"b64_data\":\"" data "\"}"
#define WITH_FILES(files)  "{\"code\":\"1\",\"files\":[" files "]}"
#define BASE64_30          "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB"

static void files_have_a_largest_number_and_size(void **state) {
    (void)state;
    CLEANUP(parsed_clear)
    struct parsed p = parse_good(WITH_FILES(
        A_FILE("1", "") "," A_FILE("2", "") "," A_FILE("3", BASE64_30 "\\n") "," A_FILE(
            "4", "QUFB\\r\\nQUFB\\r\\nQUFB\\r\\nQUFB\\r\\nQUFB\\r\\n"
                 "QUFB\\r\\nQUFB\\r\\nQUFB\\r\\nQUFB\\r\\nQUFB")));
    assert_int_equal(p.request.file_count, 4);
    assert_int_equal(p.request.files[2].size, 30);
    assert_int_equal(p.request.files[3].size, 30);
    check_failure(WITH_FILES(A_FILE("1", "") "," A_FILE("2", "") "," A_FILE(
                      "3", "") "," A_FILE("4", "") "," A_FILE("1", "")),
                  VIV_RESOURCE_LIMIT, "files: 5 files, at most 4 are allowed");
    check_failure(WITH_FILES(A_FILE("1", "") "," A_FILE("2", BASE64_30 "QQ==")),
                  VIV_RESOURCE_LIMIT,
                  "files[1].b64_data, decoded: 31 bytes, at most 30 are allowed");
}

static void names_are_checked(void **state) {
    (void)state;
    check_failure(WITH_FILES(A_FILE("a", "") "," A_FILE("../x", "")), VIV_PARSING,
                  "files[1].filename is refused: ");
    check_failure(WITH_FILES(A_FILE("a/b", "") "," A_FILE("c", "") "," A_FILE("a", "")),
                  VIV_PARSING, "files[2].filename is a folder of files[0].filename");
    CLEANUP(parsed_clear)
    struct parsed p = parse_good(WITH_FILES(A_FILE("a", "") "," A_FILE(
        "a.b", "") "," A_FILE("ab/c", "") "," A_FILE("b/a", "")));
    assert_int_equal(p.request.file_count, 4);
}

static void the_last_of_a_name_wins(void **state) {
    CLEANUP(parsed_clear)
    struct parsed p = parse_good(WITH_FILES(A_FILE("a", "QQ==") "," A_FILE(
        "b", "Qg==") "," A_FILE("a", "Qw==") "," A_FILE("a", "RA==")));

    (void)state;
    assert_int_equal(p.request.file_count, 2);
    assert_slice_equal(p.request.files[0].name, "b");
    assert_int_equal(p.request.files[0].index, 1);
    assert_slice_equal(p.request.files[1].name, "a");
    assert_slice_equal(p.request.files[1].base64, "RA==");
    assert_int_equal(p.request.files[1].index, 3);
}

static void base64_is_checked_in_every_file(void **state) {
    (void)state;
    check_failure(WITH_FILES(A_FILE("a", "QQ==") "," A_FILE("b", "QU*B")), VIV_PARSING,
                  "files[1].b64_data: not base64 at offset 2");
    check_failure(WITH_FILES(A_FILE("a", "QUJDQ")), VIV_PARSING,
                  "files[0].b64_data: base64 that ends too early at offset 5");
    check_failure(WITH_FILES(A_FILE("a", "!") "," A_FILE("a", "")), VIV_PARSING,
                  "files[0].b64_data: not base64 at offset 0");
    /* The offset is that in the text, not in its JSON. */
    check_failure(WITH_FILES(A_FILE("a", "QUJ\\/\\r\\nQ!JD")), VIV_PARSING,
                  "at offset 7");
}

static void the_first_fault_in_order_is_told(void **state) {
    (void)state;
    check_failure("{\"code\":1,\"files\":[{\"filename\":\"..\",\"b64_data\":\"!\"}]",
                  VIV_NOT_JSON, "");
    check_failure("{\"code\":1,\"files\":[{\"filename\":\"..\",\"b64_data\":\"!\"}]}",
                  VIV_VALIDATION, "code");
    check_failure("{\"code\":\"1\",\"timeout_ms\":0,\"files\":[{}]}", VIV_VALIDATION,
                  "timeout_ms");
    check_failure(WITH_FILES(A_FILE("..", "!") "," A_FILE("2", "") "," A_FILE(
                      "3", "") "," A_FILE("4", "") ",{}"),
                  VIV_PARSING, "files[4].filename");
    check_failure(WITH_FILES(A_FILE("..", "!") "," A_FILE("2", "!" BASE64_30 "QQQ")),
                  VIV_RESOURCE_LIMIT, "files[1]");
    check_failure(WITH_FILES(A_FILE("1", "!") "," A_FILE("..", "")), VIV_PARSING,
                  "files[1].filename");
}

static void messages_never_echo_content(void **state) {
    static const char *const bodies[] = {
        "{\"code\": SECRET}",
        "{\"SECRET\":1,\"SECRET\":2}",
        "{\"code\":[\"SECRET\"]}",
        "{\"code\":\"\",\"timeout_ms\":\"SECRET\"}",
        WITH_FILES(A_FILE("/SECRET", "")),
        WITH_FILES(A_FILE("SECRET/x", "") "," A_FILE("SECRET", "")),
        WITH_FILES(A_FILE("a", "SECRET@")),
        WITH_FILES("\"SECRET\""),
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bodies); i++) {
        CLEANUP(parsed_clear) struct parsed p = parse(bodies[i]);
        assert_int_equal(p.failed, -1);
        assert_null(strstr(p.err.message, "SECRET"));
        for (size_t k = 0; k < p.details.count; k++) {
            assert_null(strstr(p.details.items[k].path, "SECRET"));
            assert_null(strstr(p.details.items[k].message, "SECRET"));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_request),
        cmocka_unit_test(the_full_request),
        cmocka_unit_test(null_is_absent_where_that_is_allowed),
        cmocka_unit_test(what_is_not_json),
        cmocka_unit_test(every_member_of_a_wrong_type_is_named),
        cmocka_unit_test(malformed_files_are_a_fault_of_parsing),
        cmocka_unit_test(messages_say_what_is_there),
        cmocka_unit_test(more_faults_than_details),
        cmocka_unit_test(deadlines_have_a_range),
        cmocka_unit_test(texts_have_a_largest_size),
        cmocka_unit_test(files_have_a_largest_number_and_size),
        cmocka_unit_test(names_are_checked),
        cmocka_unit_test(the_last_of_a_name_wins),
        cmocka_unit_test(base64_is_checked_in_every_file),
        cmocka_unit_test(the_first_fault_in_order_is_told),
        cmocka_unit_test(messages_never_echo_content),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
