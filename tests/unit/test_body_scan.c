/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "common/cleanup.h"
#include "fcgi-app/body_scan.h"

/* A scan of a copy of its text on the heap, so that a sanitizer sees a byte too far. */
struct scanned {
    char *body;
    struct body_scan scan;
    struct viv_error err;
    int failed;
};

static void scanned_clear_cleanup(struct scanned *s) {
    body_scan_clear(&s->scan);
    free(s->body);
}

static struct scanned scan_bytes(struct slice text) {
    struct scanned s = {.body = viv_xmalloc(text.size)};

    if (text.size > 0)
        memcpy(s.body, text.data, text.size);
    s.failed = body_scan(s.body, text.size, &s.scan, &s.err);
    return s;
}

static void check_skeleton(const char *text, const char *skeleton) {
    CLEANUP(scanned_clear) struct scanned s = scan_bytes(slice_of(text));

    if (s.failed)
        fail_msg("%s: %s", text, s.err.message);
    assert_slice_equal((struct slice){s.scan.skeleton.data, s.scan.skeleton.size},
                       skeleton);
}

static void check_string(struct slice text, struct slice expected) {
    CLEANUP(scanned_clear) struct scanned s = scan_bytes(text);

    if (s.failed)
        fail_msg("%.*s: %s", (int)text.size, text.data, s.err.message);
    assert_int_equal(s.scan.count, 1);
    struct slice string = body_scan_string(&s.scan, "0");
    assert_int_equal(string.size, expected.size);
    assert_memory_equal(string.data, expected.data, expected.size);
}

static void check_refused(struct slice text, const char *words) {
    CLEANUP(scanned_clear) struct scanned s = scan_bytes(text);

    if (!s.failed)
        fail_msg("%.*s is taken", (int)(text.size < 60 ? text.size : 60), text.data);
    assert_int_equal(s.err.code, VIV_NOT_JSON);
    if (!strstr(s.err.message, words))
        fail_msg("\"%s\" is not in \"%s\"", words, s.err.message);
}

static void values_are_lifted_and_names_stay(void **state) {
    (void)state;
    check_skeleton("", "");
    check_skeleton("{\"code\": \"x = 1\"}", "{\"code\": \"0\"}");
    check_skeleton("\"\"", "\"0\"");
    check_skeleton(" {\"a\" \t\r\n: [\"b\", \"c\" ] , \"d\":1.5e3,\"e\":null}\n",
                   " {\"a\" \t\r\n: [\"0\", \"1\" ] , \"d\":1.5e3,\"e\":null}\n");
    check_skeleton("{\"a\\u0062\\\"\":\"\\\"\"}", "{\"a\\u0062\\\"\":\"0\"}");
    check_skeleton("[\"0\",\"1\",\"\\\\\"]", "[\"0\",\"1\",\"2\"]");
    check_skeleton("{'a': nonsense]", "{'a': nonsense]");
}

static void strings_are_borrowed_from_the_body(void **state) {
    CLEANUP(scanned_clear)
    struct scanned s =
        scan_bytes(SLICE("{\"a\":\"first\",\"b\":[\"second\",\"third\"]}"));

    (void)state;
    assert_int_equal(s.scan.count, 3);
    assert_slice_equal(body_scan_string(&s.scan, "0"), "first");
    assert_slice_equal(body_scan_string(&s.scan, "1"), "second");
    assert_slice_equal(body_scan_string(&s.scan, "2"), "third");
    assert_ptr_equal(body_scan_string(&s.scan, "0").data, s.body + 6);
}

static void escapes_are_undone(void **state) {
    (void)state;
    check_string(SLICE("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), SLICE("\"\\/\b\f\n\r\t"));
    check_string(SLICE("\"a\\u0041b\""), SLICE("aAb"));
    check_string(SLICE("\"\\u0001\\u007f\\u0080\\u07fF\\u0800\\uffff\""),
                 SLICE("\x01\x7f\xc2\x80\xdf\xbf\xe0\xa0\x80\xef\xbf\xbf"));
    check_string(SLICE("\"\\ud83d\\ude00\\uD800\\uDC00\\uDBFF\\uDFFF\""),
                 SLICE("\xf0\x9f\x98\x80\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"));
    check_string(SLICE("\"QUJ\\/RA==\""), SLICE("QUJ/RA=="));
    check_string(SLICE("\"\\\\n\\\\u0000\""), SLICE("\\n\\u0000"));
    check_string(SLICE("\"h\xc3\xbc\xe2\x98\x95\xf0\x9f\x98\x80\x7f\""),
                 SLICE("h\xc3\xbc\xe2\x98\x95\xf0\x9f\x98\x80\x7f"));
}

/* The pass reads eight bytes at a time: what is special must be seen at every place of
 * them. */
static void special_bytes_are_seen_at_every_place(void **state) {
    char text[40];

    (void)state;
    for (size_t at = 1; at < 33; at++) {
        for (int c = 0; c < 256; c++) {
            memset(text, 'x', sizeof text);
            text[0] = text[33] = '"';
            text[at] = (char)c;
            struct slice body = {text, 34};
            if (c < 0x20)
                check_refused(body, "control character");
            else if (c >= 0x80)
                check_refused(body, "invalid UTF-8");
            else if (c == '"')
                check_refused(body, "a string without end");
            else if (c == '\\')
                check_refused(body, at == 32 ? "a string without end" : "invalid escape");
            else
                check_string(body, (struct slice){text + 1, 32});
        }
    }
}

static void malformed_strings_are_refused_with_their_offset(void **state) {
    static const struct {
        struct slice text;
        const char *words;
    } faults[] = {
        {SLICE("\""), "a string without end at byte 0"},
        {SLICE("[\"abc"), "a string without end at byte 1"},
        {SLICE("\"abc\\\""), "a string without end at byte 0"},
        {SLICE("\"\\"), "an invalid escape at byte 1"},
        {SLICE("\"\\a\""), "an invalid escape at byte 1"},
        {SLICE("\"ab\\x41\""), "an invalid escape at byte 3"},
        {SLICE("\"\\u123\""), "an invalid escape at byte 1"},
        {SLICE("\"\\u12"), "an invalid escape at byte 1"},
        {SLICE("\"\\u00g0\""), "an invalid escape at byte 1"},
        {SLICE("\"\\U0041\""), "an invalid escape at byte 1"},
        {SLICE("\"\\u0000\""), "an invalid escape at byte 1"},
        {SLICE("{\"a\\u0000\":1}"), "an invalid escape at byte 3"},
        {SLICE("\"\\ud800\""), "an invalid escape at byte 1"},
        {SLICE("\"\\udc00\""), "an invalid escape at byte 1"},
        {SLICE("\"\\udc00\\ud800\""), "an invalid escape at byte 1"},
        {SLICE("\"\\ud800\\ud800\""), "an invalid escape at byte 1"},
        {SLICE("\"\\ud800\\u0041\""), "an invalid escape at byte 1"},
        {SLICE("\"\\ud800\\udbff\""), "an invalid escape at byte 1"},
        {SLICE("\"\\ud800\\ue000\""), "an invalid escape at byte 1"},
        {SLICE("\"\\ud800\\udc0\""), "an invalid escape at byte 1"},
        {SLICE("\"\\ud800\\"), "an invalid escape at byte 1"},
        {SLICE("\"\\ud800xudc00\""), "an invalid escape at byte 1"},
        {SLICE("\"a\nb\""), "an unescaped control character at byte 2"},
        {SLICE("\"a\0b\""), "an unescaped control character at byte 2"},
        {SLICE("{\"a\":1\0}"), "a NUL at byte 6"},
        {SLICE("\"\xff\""), "invalid UTF-8 at byte 1"},
        {SLICE("\"\xc3\""), "invalid UTF-8 at byte 1"},
        {SLICE("\"\xc0\x80\""), "invalid UTF-8 at byte 1"},
        {SLICE("\"\xed\xa0\x80\""), "invalid UTF-8 at byte 1"},
        {SLICE("{\"\xff\":1}"), "invalid UTF-8 at byte 2"},
        {SLICE("\xef\xbb\xbf{}"), "a byte order mark at byte 0"},
        {SLICE("]"), "a bracket that closes nothing at byte 0"},
        {SLICE("[]}"), "a bracket that closes nothing at byte 2"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(faults); i++)
        check_refused(faults[i].text, faults[i].words);
}

/* `count` times a text, between a head and a tail. */
static struct buffer repeat(const char *head, const char *text, size_t count,
                            const char *tail) {
    struct buffer all = {0};

    buffer_append(&all, head, strlen(head), SIZE_MAX, NULL);
    for (size_t i = 0; i < count; i++)
        buffer_append(&all, text, strlen(text), SIZE_MAX, NULL);
    buffer_append(&all, tail, strlen(tail), SIZE_MAX, NULL);
    return all;
}

static void check_bound(const char *head, const char *text, size_t count,
                        const char *tail, const char *refusal) {
    CLEANUP(buffer_clear) struct buffer all = repeat(head, text, count, tail);
    struct slice body = {all.data, all.size};

    if (refusal) {
        check_refused(body, refusal);
    } else {
        CLEANUP(scanned_clear) struct scanned s = scan_bytes(body);
        if (s.failed)
            fail_msg("%s", s.err.message);
    }
}

static void depth_is_bounded(void **state) {
    (void)state;
    check_bound("", "[", BODY_DEPTH_MAX, "", NULL);
    check_bound("", "[", BODY_DEPTH_MAX + 1, "", "nested more than 64 deep at byte 64");
    check_bound("", "{\"a\":", BODY_DEPTH_MAX + 1, "", "nested more than 64 deep");
    check_bound("[", "[],{},", 1000, "1]", NULL);
}

static void tokens_are_bounded(void **state) {
    (void)state;
    /* One for the bracket, two for each repetition. */
    check_bound("[", "0,", (BODY_TOKENS_MAX - 2) / 2, "]", NULL);
    check_bound("[", "0,", BODY_TOKENS_MAX / 2, "]", "more than 100000 tokens");
    check_bound("[", "\"\",", (BODY_TOKENS_MAX - 2) / 2, "]", NULL);
    check_bound("[", "\"\",", BODY_TOKENS_MAX / 2, "]", "more than 100000 tokens");
    check_bound("", ",", BODY_TOKENS_MAX, "", NULL);
    check_bound("", ",", BODY_TOKENS_MAX + 1, "",
                "more than 100000 tokens at byte 100000");
    check_bound("", "\n", BODY_TOKENS_MAX + 1, "", NULL);
}

static void the_skeleton_is_bounded(void **state) {
    (void)state;
    check_bound("", " ", BODY_SKELETON_MAX, "", NULL);
    check_bound("", " ", BODY_SKELETON_MAX + 1, "", "too much besides the strings");
    check_bound("\"", "x", BODY_SKELETON_MAX + 1, "\"", NULL);
    check_bound("{\"", "x", BODY_SKELETON_MAX + 1, "\":1}",
                "too much besides the strings");
    check_bound("", "1", BODY_SKELETON_MAX + 1, "", "too much besides the strings");
}

static void offsets_lead_back_to_the_body(void **state) {
    const char text[] = "{\"code\": \"a\\nbc\", \"x\": [\"\", 1 2]}";
    CLEANUP(scanned_clear) struct scanned s = scan_bytes(slice_of(text));
    /* What stands in the skeleton stands in the body at the offset that is told. */
    const char *const marks[] = {"{", "code", ", \"x\"", "[", "1 2", "2]}", "]}"};

    (void)state;
    assert_int_equal(s.failed, 0);
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        const char *place = memmem(s.scan.skeleton.data, s.scan.skeleton.size, marks[i],
                                   strlen(marks[i]));
        assert_non_null(place);
        size_t offset = (size_t)(place - s.scan.skeleton.data);
        assert_int_equal(body_scan_offset(&s.scan, offset),
                         strstr(text, marks[i]) - text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_lifted_and_names_stay),
        cmocka_unit_test(strings_are_borrowed_from_the_body),
        cmocka_unit_test(escapes_are_undone),
        cmocka_unit_test(special_bytes_are_seen_at_every_place),
        cmocka_unit_test(malformed_strings_are_refused_with_their_offset),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(tokens_are_bounded),
        cmocka_unit_test(the_skeleton_is_bounded),
        cmocka_unit_test(offsets_lead_back_to_the_body),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
