/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "fcgi-app/keyed_hash.h"

/* The vector of appendix A of the paper, and two of its reference implementation. */
static void known_values(void **state) {
    struct hash_key key = {{UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)}};
    unsigned char input[15];

    (void)state;
    for (size_t i = 0; i < sizeof input; i++)
        input[i] = (unsigned char)i;
    assert_true(keyed_hash(key, input, sizeof input) == UINT64_C(0xa129ca6149be45e5));
    assert_true(keyed_hash(key, input, 0) == UINT64_C(0x726fdb47dd0e0e31));
    assert_true(keyed_hash(key, input, 8) == UINT64_C(0x93f5f5799a932462));
}

static void another_key_gives_another_hash(void **state) {
    (void)state;
    assert_true(keyed_hash(hash_key_new(), "a", 1) != keyed_hash(hash_key_new(), "a", 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_values),
        cmocka_unit_test(another_key_gives_another_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
