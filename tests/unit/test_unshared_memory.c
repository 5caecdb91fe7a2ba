/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "executor/launcher/unshared_memory.h"
#include "tests/unit/child.h"

#define SIZE 5000 /* more than a page */

static bool is_zero(const char *memory) {
    for (int i = 0; i < SIZE; i++)
        if (memory[i] != 0)
            return false;
    return true;
}

static int look_for_it(void *context) {
    char *memory = context;

    REQUIRE(is_zero(memory));
    memory[SIZE - 1] = 1; /* and it may be written */
    return 0;
}

static void a_child_sees_zeros(void **state) {
    char *memory = unshared_alloc(SIZE);

    (void)state;
    assert_true(is_zero(memory));
    memset(memory, 's', SIZE);
    in_child(look_for_it, memory);
    for (int i = 0; i < SIZE; i++)
        assert_int_equal(memory[i], 's');
    unshared_free(memory, SIZE);
}

/* Each is in pages of its own: what is freed takes nothing else along. */
static void pieces_are_apart(void **state) {
    char *one = unshared_alloc(10), *other = unshared_alloc(10);

    (void)state;
    other[9] = 'x';
    unshared_free(one, 10);
    assert_int_equal(other[9], 'x');
    unshared_free(other, 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_sees_zeros),
        cmocka_unit_test(pieces_are_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
