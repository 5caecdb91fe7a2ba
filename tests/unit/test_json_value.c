/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "common/cleanup.h"
#include "fcgi-app/json_value.h"

static bool is_fit(struct slice text) {
    struct budget budget = {.limit = 100 << 20};
    struct budget_share share = {&budget, 0};
    bool fit = json_value_is_fit(text, &share);

    assert_int_equal(budget.used, 0);
    return fit;
}

static void values_of_all_types_are_fit(void **state) {
    static const char *const texts[] = {
        "null",
        "true",
        "-1.5e3",
        "9223372036854775807",
        "\"a\\u0000\xc3\xbc\"",
        "[]",
        "{}",
        "[1, [2, {\"a\": [\"]\", \"}\\\"\"]}]]",
        " 1 ",
        "{\"\": 1}",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_true(is_fit(slice_of(texts[i])));
}

static void what_is_not_json_is_not(void **state) {
    static const char *const texts[] = {
        "",
        " ",
        "NaN",
        "Infinity",
        "1e999",
        "12345678901234567890",
        "[1,]",
        "1 2",
        "'a'",
        "{\"a\":1,\"a\":2}",
        "\"\\ud800\"",
        "\"\xff\"",
        "\"\n\"",
        "[",
        "]",
        "\357\273\2771",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_false(is_fit(slice_of(texts[i])));
    assert_false(is_fit(SLICE("1\0")));
    assert_false(is_fit(SLICE("[1\0]")));
    assert_false(is_fit(SLICE("\"a\0b\"")));
}

static void depth_is_bounded(void **state) {
    char text[2 * (JSON_VALUE_DEPTH_MAX + 1) + 1];

    (void)state;
    for (size_t depth = JSON_VALUE_DEPTH_MAX; depth <= JSON_VALUE_DEPTH_MAX + 1;
         depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        assert_int_equal(is_fit((struct slice){text, 2 * depth}),
                         depth == JSON_VALUE_DEPTH_MAX);
    }
}

static void memory_is_bounded_by_the_budget(void **state) {
    struct budget budget = {.limit = 1000};
    struct budget_share share = {&budget, 0};

    (void)state;
    assert_true(json_value_is_fit(SLICE("[1,2,3]"), &share));
    assert_false(json_value_is_fit(SLICE("[1,2,3,4,5,6,7,8,9,10,11,12]"), &share));
    assert_int_equal(budget.used, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_all_types_are_fit),
        cmocka_unit_test(what_is_not_json_is_not),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(memory_is_bounded_by_the_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
