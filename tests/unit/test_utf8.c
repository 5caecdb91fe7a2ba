/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <stdbool.h>

#include "common/utf8.h"

/* Encodes a number as UTF-8 would, whether it is a character or not. */
static size_t encode(uint32_t code, char text[4]) {
    if (code < 0x80) {
        text[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        text[0] = (char)(0xc0 | code >> 6);
        text[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        text[0] = (char)(0xe0 | code >> 12);
        text[1] = (char)(0x80 | (code >> 6 & 0x3f));
        text[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    text[0] = (char)(0xf0 | code >> 18);
    text[1] = (char)(0x80 | (code >> 12 & 0x3f));
    text[2] = (char)(0x80 | (code >> 6 & 0x3f));
    text[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

static void every_character_is_valid(void **state) {
    (void)state;
    for (uint32_t code = 0; code < 0x1fffff; code++) {
        char text[4];
        size_t size = encode(code, text);
        bool is_character = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
        if (utf8_sequence(text, size) != (is_character ? size : 0))
            fail_msg("U+%04X", code);
        if (size > 1 && utf8_sequence(text, size - 1) != 0)
            fail_msg("U+%04X, cut", code);
    }
}

/* Of all sequences of two and three bytes as many are valid as there are
 * characters for. */
static void nothing_else_is_valid(void **state) {
    size_t two = 0, three = 0;

    (void)state;
    for (uint32_t bytes = 0; bytes < 1U << 24; bytes++) {
        const char text[3] = {(char)(bytes >> 16), (char)(bytes >> 8), (char)bytes};
        size_t length = utf8_sequence(text, 3);
        three += length == 3;
        two += length == 2 && (bytes & 0xff) == 0;
        if ((unsigned char)text[0] < 0x80 && length != 1)
            fail_msg("%06x", bytes);
    }
    assert_int_equal(two, 0x800 - 0x80);
    assert_int_equal(three, 0x10000 - 0x800 - 0x800);
}

static void overlong_forms_are_refused(void **state) {
    (void)state;
    assert_false(utf8_valid("\xc0\x80", 2));
    assert_false(utf8_valid("\xc1\xbf", 2));
    assert_false(utf8_valid("\xe0\x9f\xbf", 3));
    assert_false(utf8_valid("\xf0\x8f\xbf\xbf", 4));
    assert_false(utf8_valid("\xf8\x88\x80\x80\x80", 5));
}

static void texts_are_checked_whole(void **state) {
    (void)state;
    assert_true(utf8_valid("", 0));
    assert_true(utf8_valid(NULL, 0));
    assert_true(utf8_valid("a\0b", 3));
    assert_true(utf8_valid("h\xc3\xbcgel \xe2\x98\x95 \xf0\x9f\x98\x80", 15));
    assert_false(utf8_valid("a\x80", 2));
    assert_false(utf8_valid("a\xe2\x98", 3));
    assert_false(utf8_valid("\xe2\x98\xe2\x98\x95", 5));
}

static void cuts_fall_between_characters(void **state) {
    const char text[] = "a\xc3\xbc\xe2\x98\x95\xf0\x9f\x98\x80z";
    const size_t size = sizeof text - 1;
    const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11};

    (void)state;
    assert_int_equal(COUNT_OF(expected), size + 1);
    for (size_t limit = 0; limit <= size; limit++)
        assert_int_equal(utf8_cut(text, size, limit), expected[limit]);
    assert_int_equal(utf8_cut(text, size, SIZE_MAX), size);
}

static void what_is_no_text_is_cut_anywhere(void **state) {
    (void)state;
    assert_int_equal(utf8_cut("\x80\x80\x80\x80\x80\x80", 6, 3), 3);
    assert_int_equal(utf8_cut("\xff\xff\xff\xff", 4, 2), 2);
    /* The sequence is broken behind the limit. */
    assert_int_equal(utf8_cut("\xe2\x98z", 3, 2), 2);
}

static void control_characters_are_those_of_unicode(void **state) {
    (void)state;
    for (uint32_t code = 0; code < 0x3000; code++) {
        char text[6] = "ab";
        size_t size = 1 + encode(code, text + 1);
        text[size++] = 'b';
        bool expected = code < 0x20 || (code >= 0x7f && code < 0xa0);
        assert_int_equal(utf8_has_control(text, size), expected);
    }
    assert_false(utf8_has_control(NULL, 0));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_is_valid),
        cmocka_unit_test(nothing_else_is_valid),
        cmocka_unit_test(overlong_forms_are_refused),
        cmocka_unit_test(texts_are_checked_whole),
        cmocka_unit_test(cuts_fall_between_characters),
        cmocka_unit_test(what_is_no_text_is_cut_anywhere),
        cmocka_unit_test(control_characters_are_those_of_unicode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
