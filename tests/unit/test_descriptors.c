/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <sys/resource.h>

#include "common/descriptors.h"

static void the_soft_limit_becomes_the_hard_one(void **state) {
    struct rlimit limit;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlim_t most = limit.rlim_max;
    limit.rlim_cur = 32;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    descriptors_raise_limit();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(most > 32 && limit.rlim_cur == most && limit.rlim_max == most);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_soft_limit_becomes_the_hard_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
