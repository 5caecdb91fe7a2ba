/* SPDX-License-Identifier: MIT */
/* What each unit test includes: cmocka, whose header needs others before it, and a few
 * words. */
#ifndef VIV_TESTS_UNIT_H
#define VIV_TESTS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "common/bytes.h"
#include "common/error.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* A string literal as a slice, NULs inside it included. */
#define SLICE(literal) ((struct slice){(literal), sizeof(literal) - 1})

static inline struct slice slice_of(const char *text) {
    return (struct slice){text, strlen(text)};
}

static inline void assert_slice_equal(struct slice slice, const char *expected) {
    assert_int_equal(slice.size, strlen(expected));
    assert_memory_equal(slice.data, expected, slice.size);
}

/* Asserts that a call failed, with which code, and with a message that
 * contains `part`. */
#define assert_fails(call, err, expected_code, part)                                     \
    do {                                                                                 \
        (err)->code = VIV_OK;                                                            \
        assert_int_equal((call), -1);                                                    \
        assert_int_equal((err)->code, (expected_code));                                  \
        if (!strstr((err)->message, (part)))                                             \
            fail_msg("\"%s\" is not in \"%s\"", (part), (err)->message);                 \
    } while (0)

#endif
