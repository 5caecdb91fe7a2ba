/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "common/quantity.h"

static const struct {
    enum quantity kind;
    const char *text;
    uint64_t value;
} good[] = {
    {QUANTITY_COUNT, "0", 0},
    {QUANTITY_COUNT, "00128", 128},
    {QUANTITY_COUNT, "18446744073709551615", UINT64_MAX},
    {QUANTITY_SIZE, "0", 0},
    {QUANTITY_SIZE, "4096", 4096},
    {QUANTITY_SIZE, "64K", 65536},
    {QUANTITY_SIZE, "10M", 10485760},
    {QUANTITY_SIZE, "3G", UINT64_C(3) << 30},
    {QUANTITY_SIZE, "17179869183G", ((UINT64_C(1) << 34) - 1) << 30},
    {QUANTITY_DURATION, "0", 0},
    {QUANTITY_DURATION, "0s", 0},
    {QUANTITY_DURATION, "500ms", 500},
    {QUANTITY_DURATION, "30s", 30000},
    {QUANTITY_DURATION, "10m", 600000},
    {QUANTITY_DURATION, "2h", 7200000},
};

static const struct {
    enum quantity kind;
    const char *text;
} bad[] = {
    {QUANTITY_COUNT, ""},
    {QUANTITY_COUNT, "-1"},
    {QUANTITY_COUNT, "+1"},
    {QUANTITY_COUNT, " 1"},
    {QUANTITY_COUNT, "1 "},
    {QUANTITY_COUNT, "1.5"},
    {QUANTITY_COUNT, "0x10"},
    {QUANTITY_COUNT, "1K"},
    {QUANTITY_COUNT, "ten"},
    {QUANTITY_COUNT, "18446744073709551616"},
    {QUANTITY_COUNT, "99999999999999999999999999"},
    {QUANTITY_SIZE, "K"},
    {QUANTITY_SIZE, "1k"},
    {QUANTITY_SIZE, "1KB"},
    {QUANTITY_SIZE, "1T"},
    {QUANTITY_SIZE, "1 M"},
    {QUANTITY_SIZE, "1s"},
    {QUANTITY_SIZE, "17179869184G"},
    {QUANTITY_DURATION, "5"},
    {QUANTITY_DURATION, "s"},
    {QUANTITY_DURATION, "1M"},
    {QUANTITY_DURATION, "1d"},
    {QUANTITY_DURATION, "1s5ms"},
    {QUANTITY_DURATION, "5124095576030432h"},
};

static void reads_what_has_the_form(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        uint64_t value = 77;
        if (quantity_parse(good[i].kind, good[i].text, &value) || value != good[i].value)
            fail_msg("%s", good[i].text);
    }
}

static void refuses_what_has_not(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        uint64_t value = 77;
        if (quantity_parse(bad[i].kind, bad[i].text, &value) == 0 || value != 77)
            fail_msg("%s", bad[i].text);
    }
}

static void writes_with_the_largest_unit(void **state) {
    char text[QUANTITY_TEXT_SIZE];

    (void)state;
    quantity_format(QUANTITY_SIZE, 10485760, text);
    assert_string_equal(text, "10M");
    quantity_format(QUANTITY_SIZE, 10485761, text);
    assert_string_equal(text, "10485761");
    quantity_format(QUANTITY_DURATION, 90000, text);
    assert_string_equal(text, "90s");
    quantity_format(QUANTITY_DURATION, 3600000, text);
    assert_string_equal(text, "1h");
    quantity_format(QUANTITY_DURATION, 1, text);
    assert_string_equal(text, "1ms");
    quantity_format(QUANTITY_DURATION, 0, text);
    assert_string_equal(text, "0");
    quantity_format(QUANTITY_COUNT, 1048576, text);
    assert_string_equal(text, "1048576");
}

static void reads_what_it_wrote(void **state) {
    (void)state;
    for (uint64_t value = 1; value < UINT64_MAX / 3; value = value * 3 + (value & 1)) {
        for (int kind = QUANTITY_COUNT; kind <= QUANTITY_DURATION; kind++) {
            char text[QUANTITY_TEXT_SIZE];
            uint64_t read = 0;
            quantity_format((enum quantity)kind, value, text);
            assert_int_equal(quantity_parse((enum quantity)kind, text, &read), 0);
            assert_true(read == value);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_has_the_form),
        cmocka_unit_test(refuses_what_has_not),
        cmocka_unit_test(writes_with_the_largest_unit),
        cmocka_unit_test(reads_what_it_wrote),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
