/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/json_out.h"
#include "fcgi-app/json_base64.h"

static int append(void *context, const void *data, size_t size) {
    return buffer_append(context, data, size, SIZE_MAX / 2, NULL);
}

/* Both passes over a string; returns what was written. */
static struct buffer string_of(struct slice text) {
    struct buffer written = {0};
    struct json_out out = {.sink = append, .context = &written}, counted = {0};

    json_out_string(&out, text);
    json_out_string(&counted, text);
    assert_int_equal(out.size, written.size);
    assert_int_equal(counted.size, written.size);
    assert_false(out.failed);
    return written;
}

static void assert_string(struct slice text, const char *expected) {
    CLEANUP(buffer_clear) struct buffer written = string_of(text);

    assert_slice_equal((struct slice){written.data, written.size}, expected);
}

static void strings_are_escaped(void **state) {
    (void)state;
    assert_string(SLICE(""), "\"\"");
    assert_string(SLICE("plain \xc3\xbc \xf0\x9f\x98\x80"),
                  "\"plain \xc3\xbc \xf0\x9f\x98\x80\"");
    assert_string(SLICE("\"\\/\b\f\n\r\t"), "\"\\\"\\\\/\\b\\f\\n\\r\\t\"");
    assert_string(SLICE("\0\x1f\x7f"), "\"\\u0000\\u001f\\u007f\"");
    assert_string(SLICE("a\xe2\x80\xa8g\xe2\x80\xa9\xe2\x80\xaa"),
                  "\"a\\u2028g\\u2029\xe2\x80\xaa\"");
    assert_string(SLICE("</script></"), "\"<\\/script><\\/\"");
}

/* The replacements are those of Python's bytes.decode("utf-8", "replace"). */
static void what_is_not_utf8_is_replaced(void **state) {
#define R "\xef\xbf\xbd"
    (void)state;
    assert_string(SLICE("\xff"), "\"" R "\"");
    assert_string(SLICE("a\x80z"), "\"a" R "z\"");
    assert_string(SLICE("\xc3"), "\"" R "\"");
    assert_string(SLICE("\xc3("), "\"" R "(\"");
    assert_string(SLICE("\xe2\x82"), "\"" R "\"");
    assert_string(SLICE("\xe2\x82\xe2\x82\xac"), "\"" R "\xe2\x82\xac\"");
    assert_string(SLICE("\xf0\x9f\x98"), "\"" R "\"");
    assert_string(SLICE("\xf0\x80\x80\x80"), "\"" R R R R "\"");
    assert_string(SLICE("\xed\xa0\x80"), "\"" R R R "\"");
    assert_string(SLICE("\xc0\xaf"), "\"" R R "\"");
    assert_string(SLICE("\xf4\x90\x80\x80"), "\"" R R R R "\"");
    assert_string(SLICE("\xf1\x80\x41"), "\"" R "A\"");
#undef R
}

static void any_bytes_become_valid_json(void **state) {
    char bytes[64];

    (void)state;
    srandom(1);
    for (int round = 0; round < 20000; round++) {
        size_t size = (size_t)random() % sizeof bytes;
        for (size_t i = 0; i < size; i++)
            bytes[i] = (char)(random() % 3 ? random() % 256 : 0xe0 + random() % 24);
        CLEANUP(buffer_clear)
        struct buffer written = string_of((struct slice){bytes, size});
        json_t *value = json_loadb(written.data, written.size,
                                   JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        assert_true(json_is_string(value));
        json_decref(value);
    }
}

static void numbers_and_literals(void **state) {
    CLEANUP(buffer_clear) struct buffer written = {0};
    struct json_out out = {.sink = append, .context = &written};

    (void)state;
    json_out_unsigned(&out, UINT64_MAX);
    json_out_raw(&out, " ");
    json_out_signed(&out, INT64_MIN);
    json_out_raw(&out, " ");
    json_out_fixed(&out, 5.0);
    json_out_raw(&out, " ");
    json_out_fixed(&out, 0.126);
    json_out_raw(&out, " ");
    json_out_bool(&out, true);
    json_out_bool(&out, false);
    json_out_splice(&out, SLICE("[1]"));
    assert_slice_equal(
        (struct slice){written.data, written.size},
        "18446744073709551615 -9223372036854775808 5.00 0.13 truefalse[1]");
    json_out_fixed(&out, 1e300);
    assert_int_equal(out.size, written.size);
}

static void parts_are_strings_of_an_array(void **state) {
    CLEANUP(buffer_clear) struct buffer written = {0};
    struct json_out out = {.sink = append, .context = &written};

    (void)state;
    json_out_parts(&out, "", ",");
    json_out_parts(&out, "a", ",");
    json_out_parts(&out, "a \"b\"; c;d; ", "; ");
    json_out_parts(&out, ",x", ",");
    assert_slice_equal((struct slice){written.data, written.size},
                       "[][\"a\"][\"a \\\"b\\\"\",\"c;d\"][\"\",\"x\"]");
}

static void base64_has_the_size_that_was_counted(void **state) {
    char data[100] = "abcdefg";

    (void)state;
    for (size_t size = 0; size <= sizeof data; size++) {
        CLEANUP(buffer_clear) struct buffer written = {0};
        struct json_out out = {.sink = append, .context = &written}, counted = {0};
        json_out_base64(&out, (struct slice){data, size});
        json_out_base64(&counted, (struct slice){data, size});
        assert_int_equal(counted.size, out.size);
        assert_int_equal(written.size, out.size);
        assert_null(memchr(written.data, '\n', written.size));
        if (size == 7)
            assert_slice_equal((struct slice){written.data, written.size},
                               "\"YWJjZGVmZw==\"");
    }
}

static int refuse(void *context, const void *data, size_t size) {
    (void)data, (void)size;
    ++*(int *)context;
    return -1;
}

static void a_sink_that_fails_is_not_asked_again(void **state) {
    int asked = 0;
    struct json_out out = {.sink = refuse, .context = &asked};

    (void)state;
    json_out_text(&out, "a\nb");
    json_out_base64(&out, SLICE("abc"));
    assert_int_equal(asked, 1);
    assert_true(out.failed);
    assert_int_equal(out.size, strlen("\"a\\nb\"\"YWJj\""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(what_is_not_utf8_is_replaced),
        cmocka_unit_test(any_bytes_become_valid_json),
        cmocka_unit_test(numbers_and_literals),
        cmocka_unit_test(parts_are_strings_of_an_array),
        cmocka_unit_test(base64_has_the_size_that_was_counted),
        cmocka_unit_test(a_sink_that_fails_is_not_asked_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
