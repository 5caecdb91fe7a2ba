/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "fcgi-app/validation.h"

static void details_are_kept_in_order(void **state) {
    struct validation_details details = {0};

    (void)state;
    validation_add(&details, "body", "/code", "string", "code: %d", 1);
    validation_add(&details, "query", "/sessionId", "string", "sessionId: %s", "two");
    assert_int_equal(details.count, 2);
    assert_int_equal(details.untold, 0);
    assert_string_equal(details.items[0].on, "body");
    assert_string_equal(details.items[0].path, "/code");
    assert_string_equal(details.items[0].expected, "string");
    assert_string_equal(details.items[0].message, "code: 1");
    assert_string_equal(details.items[1].on, "query");
    assert_string_equal(details.items[1].message, "sessionId: two");
}

static void what_has_no_room_is_counted(void **state) {
    struct validation_details details = {0};

    (void)state;
    for (int i = 0; i < VALIDATION_DETAILS_MAX + 5; i++)
        validation_add(&details, "body", "/x", "string", "%d", i);
    assert_int_equal(details.count, VALIDATION_DETAILS_MAX);
    assert_int_equal(details.untold, 5);
    assert_string_equal(details.items[VALIDATION_DETAILS_MAX - 1].message, "31");
}

static void long_texts_are_cut(void **state) {
    struct validation_details details = {0};
    char text[1000];

    (void)state;
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    validation_add(&details, "body", text, "string", "%s", text);
    assert_int_equal(strlen(details.items[0].path), sizeof details.items[0].path - 1);
    assert_int_equal(strlen(details.items[0].message),
                     sizeof details.items[0].message - 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(details_are_kept_in_order),
        cmocka_unit_test(what_has_no_room_is_counted),
        cmocka_unit_test(long_texts_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
