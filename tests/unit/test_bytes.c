/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <ctype.h>
#include <stdlib.h>

#include "common/cleanup.h"

static void appends_up_to_the_limit(void **state) {
    CLEANUP(buffer_clear) struct buffer buffer = {0};
    struct viv_error err;

    (void)state;
    assert_int_equal(buffer_append(&buffer, "abc", 3, 5, &err), 0);
    assert_int_equal(buffer_append(&buffer, "de", 2, 5, &err), 0);
    assert_int_equal(buffer.size, 5);
    assert_memory_equal(buffer.data, "abcde", 5);
    assert_fails(buffer_append(&buffer, "f", 1, 5, &err), &err, VIV_CAPACITY, "5 bytes");
    assert_int_equal(buffer.size, 5);
    assert_memory_equal(buffer.data, "abcde", 5);
}

static void capacity_stays_within_the_limit(void **state) {
    CLEANUP(buffer_clear) struct buffer buffer = {0};
    struct viv_error err;
    const size_t limit = 100000;

    (void)state;
    for (size_t size = 0; size < limit; size += 1000) {
        assert_int_equal(buffer_reserve(&buffer, 1000, limit, &err), 0);
        assert_true(buffer.capacity >= size + 1000);
        assert_true(buffer.capacity <= limit);
        memset(buffer.data + size, 'x', 1000);
        buffer.size += 1000;
    }
}

static void refuses_what_overflows(void **state) {
    CLEANUP(buffer_clear) struct buffer buffer = {0};
    struct viv_error err;

    (void)state;
    assert_int_equal(buffer_append(&buffer, "abc", 3, SIZE_MAX, &err), 0);
    assert_fails(buffer_reserve(&buffer, SIZE_MAX - 1, SIZE_MAX, &err), &err,
                 VIV_CAPACITY, "");
    assert_int_equal(buffer.size, 3);
    assert_memory_equal(buffer.data, "abc", 3);
}

static void nothing_needs_no_room(void **state) {
    struct buffer buffer = {0};

    (void)state;
    assert_int_equal(buffer_append(&buffer, NULL, 0, 0, NULL), 0);
    assert_null(buffer.data);
    buffer_clear(&buffer);
}

static void consumes_from_the_front(void **state) {
    CLEANUP(buffer_clear) struct buffer buffer = {0};

    (void)state;
    assert_int_equal(buffer_append(&buffer, "abcdef", 6, 100, NULL), 0);
    buffer_consume(&buffer, 2);
    assert_int_equal(buffer.size, 4);
    assert_memory_equal(buffer.data, "cdef", 4);
    buffer_consume(&buffer, 4);
    assert_int_equal(buffer.size, 0);
}

static void clear_leaves_the_zero_value(void **state) {
    struct buffer buffer = {0};

    (void)state;
    assert_int_equal(buffer_append(&buffer, "x", 1, 1, NULL), 0);
    buffer_clear(&buffer);
    assert_null(buffer.data);
    assert_int_equal(buffer.size, 0);
    assert_int_equal(buffer.capacity, 0);
    buffer_clear(&buffer);
}

static void numbers_are_little_endian(void **state) {
    unsigned char bytes[16] = {0};

    (void)state;
    put_u16(bytes + 1, 0x0201);
    put_u32(bytes + 3, UINT32_C(0x84838281));
    put_u64(bytes + 7, UINT64_C(0xf8f7f6f5f4f3f2f1));
    const unsigned char expected[16] = {0,    1,    2,    0x81, 0x82, 0x83, 0x84, 0xf1,
                                        0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0};
    assert_memory_equal(bytes, expected, sizeof bytes);
    assert_int_equal(get_u16(bytes + 1), 0x0201);
    assert_int_equal(get_u32(bytes + 3), UINT32_C(0x84838281));
    assert_true(get_u64(bytes + 7) == UINT64_C(0xf8f7f6f5f4f3f2f1));
}

static void hex_digits_and_nothing_else(void **state) {
    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[2] = {(char)c};
        int expected = isxdigit(c) ? (int)strtol(text, NULL, 16) : -1;
        assert_int_equal(hex_value((char)c), expected);
    }
}

static void copies_texts(void **state) {
    (void)state;
    CLEANUP(free_ptr) char *whole = viv_xstrdup("abc");
    CLEANUP(free_ptr) char *part = viv_xstrndup("abcdef", 2);
    CLEANUP(free_ptr) char *none = viv_xstrndup("abc", 0);
    whole = viv_xrealloc(whole, 1000);
    assert_string_equal(whole, "abc");
    assert_string_equal(part, "ab");
    assert_string_equal(none, "");
}

static void stolen_things_are_not_released(void **state) {
    char *stolen;

    (void)state;
    {
        CLEANUP(free_ptr) char *text = viv_xstrdup("mine");
        stolen = steal_ptr(&text);
        assert_null(text);
    }
    assert_string_equal(stolen, "mine");
    free(stolen);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(appends_up_to_the_limit),
        cmocka_unit_test(capacity_stays_within_the_limit),
        cmocka_unit_test(refuses_what_overflows),
        cmocka_unit_test(nothing_needs_no_room),
        cmocka_unit_test(consumes_from_the_front),
        cmocka_unit_test(clear_leaves_the_zero_value),
        cmocka_unit_test(numbers_are_little_endian),
        cmocka_unit_test(hex_digits_and_nothing_else),
        cmocka_unit_test(copies_texts),
        cmocka_unit_test(stolen_things_are_not_released),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
