/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

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

static void a_spare_one_makes_room_for_one(void **state) {
    struct rlimit limit;
    int spare = descriptors_spare();

    (void)state;
    assert_true(spare >= 0);
    assert_int_equal(fcntl(spare, F_GETFD), FD_CLOEXEC);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlim_t before = limit.rlim_cur;
    limit.rlim_cur = (rlim_t)spare + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int none = descriptors_spare();
    close(spare);
    int one = descriptors_spare();
    limit.rlim_cur = before;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(none, -1);
    assert_int_equal(one, spare);
    close(one);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_soft_limit_becomes_the_hard_one),
        cmocka_unit_test(a_spare_one_makes_room_for_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
