/* SPDX-License-Identifier: MIT */
/* Users for tests that run as root: of numbers that nobody has, and that another run of
 * the same test at the same time does not use. What kills all processes of a user is
 * tested with them. */
#ifndef VIV_TESTS_OTHER_USERS_H
#define VIV_TESTS_OTHER_USERS_H

#include <sys/types.h>
#include <unistd.h>

#define OTHER_USERS 64

/* The first of OTHER_USERS; the same in all processes of the test. */
static uid_t other_users;

__attribute__((constructor)) static void choose_other_users(void) {
    other_users = 3000000000U + (uid_t)getpid() % (1U << 20) * OTHER_USERS;
}

#endif
