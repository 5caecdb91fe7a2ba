/* SPDX-License-Identifier: MIT */
/* Children that lack a control each: what is possible then is what the self-test
 * names. */
#include "tests/unit/unit.h"

#include <grp.h>

#include "executor/confine.h"
#include "executor/landlock.h"
#include "executor/seccomp/worker_filter.h"
#include "executor/zygote/self_test.h"
#include "tests/unit/attempts.h"
#include "tests/unit/child.h"
#include "tests/unit/other_users.h"
#include "tests/unit/refuse.h"
#include "tests/unit/scratch.h"

static const struct worker_filter_options options = {.kill = KILL_SELF_ONLY};
static struct seccomp_filter filter;
static struct scratch scratch; /* a slot, or the root of one */

static int set_up(void **state) {
    (void)state;
    scratch = scratch_new();
    return worker_filter_build(&filter, &options, NULL);
}

static int tear_down(void **state) {
    (void)state;
    seccomp_filter_clear(&filter);
    scratch_remove(&scratch);
    return 0;
}

static void require_failure(enum isolation_tier tier, const char *what) {
    struct viv_error err = {0};

    REQUIRE(self_test(tier, &err) == -1);
    if (err.code != VIV_SYSTEM || !strstr(err.message, what)) {
        fprintf(stderr, "\"%s\" is not in \"%s\"\n", what, err.message);
        REQUIRE(!"it names what is possible");
    }
}

/* ---- what all tiers have ---- */

static int without_anything(void *context) {
    (void)context;
    child_unshare(0, 0);
    require_failure(ISOLATION_ISOLATED, "a capability is left");
    require_failure(ISOLATION_CONFINED, "a capability is left");
    require_failure(ISOLATION_MINIMAL, "a capability is left");
    REQUIRE(confine_to_capabilities(0, NULL) == 0);
    require_failure(ISOLATION_ISOLATED, "seccomp is not on");
    require_failure(ISOLATION_CONFINED, "seccomp is not on");
    require_failure(ISOLATION_MINIMAL, "seccomp is not on");
    return 0;
}

/* A filter that refuses some of what ours does. */
struct weak_filter {
    const char *possible;
    long refused[3];
    size_t count;
};

static int with_a_weak_filter(void *context) {
    const struct weak_filter *weak = context;

    child_unshare(0, 0);
    REQUIRE(confine_to_capabilities(0, NULL) == 0);
    refuse_calls(weak->refused, weak->count, EPERM);
    require_failure(ISOLATION_CONFINED, weak->possible);
    return 0;
}

static void a_capability_or_a_missing_filter_is_found(void **state) {
    static struct weak_filter weak[] = {
        {"seccomp is not on", {SYS_io_uring_setup}, 1},
        {"a socket can be made", {SYS_prctl}, 1},
        {"unshare(2) is possible", {SYS_prctl, SYS_socket}, 2},
        {"execve(2) is possible", {SYS_prctl, SYS_socket, SYS_unshare}, 3},
    };

    (void)state;
    in_child(without_anything, NULL);
    for (size_t i = 0; i < COUNT_OF(weak); i++)
        in_child(with_a_weak_filter, &weak[i]);
}

/* ---- a root of its own ---- */

/* The root of a slot is the one of the child, who is another user then. */
static void enter_root(uid_t user) {
    REQUIRE(confine_root(scratch.fd, NULL) == 0);
    REQUIRE(setgroups(0, NULL) == 0 && confine_become_user(user, user, NULL) == 0);
    REQUIRE(confine_to_capabilities(0, NULL) == 0);
    REQUIRE(confine_privileges(NULL) == 0);
    load_filter(&filter);
}

static int as_root(void *context) {
    (void)context;
    enter_root(0);
    require_failure(ISOLATION_CONFINED, "the user is root");
    return 0;
}

static int in_own_root(void *context) {
    const char *possible = context;

    enter_root(other_users);
    if (possible)
        require_failure(ISOLATION_CONFINED, possible);
    else
        REQUIRE(self_test(ISOLATION_CONFINED, NULL) == 0);
    return 0;
}

static int in_the_hosts_root(void *context) {
    (void)context;
    REQUIRE(confine_become_user(other_users, other_users, NULL) == 0);
    REQUIRE(confine_to_capabilities(0, NULL) == 0);
    REQUIRE(confine_privileges(NULL) == 0);
    load_filter(&filter);
    require_failure(ISOLATION_CONFINED, "/usr/bin is there");
    /* With namespaces there is a root of its own just the same. */
    require_failure(ISOLATION_ISOLATED, "/usr/bin is there");
    return 0;
}

static void run(int (*body)(void *context), const char *context) {
    in_child(body, (void *)(uintptr_t)context);
}

static void a_root_that_is_not_its_own_is_found(void **state) {
    (void)state;
    if (geteuid() != 0) {
        skip();
        return;
    }
    assert_int_equal(chmod(scratch.path, 0755), 0);
    run(in_the_hosts_root, NULL);
    run(as_root, NULL);
    run(in_own_root, NULL);
    put_folder(scratch.fd, "etc");
    put_file(scratch.fd, "etc/passwd", "");
    run(in_own_root, NULL);
}

static void a_root_that_can_be_written_is_found(void **state) {
    (void)state;
    if (geteuid() != 0) {
        skip();
        return;
    }
    assert_int_equal(chmod(scratch.path, 0777), 0);
    run(in_own_root, "/self-test can be opened");
    assert_int_equal(unlinkat(scratch.fd, "self-test", 0), 0);
    assert_int_equal(chmod(scratch.path, 0755), 0);
    put_folder(scratch.fd, "etc");
    put_file(scratch.fd, "etc/passwd", "");
    assert_int_equal(fchmodat(scratch.fd, "etc/passwd", 0666, 0), 0);
    run(in_own_root, "/etc/passwd can be opened");
    assert_int_equal(fchmodat(scratch.fd, "etc/passwd", 0644, 0), 0);
    put_folder(scratch.fd, "proc");
    put_folder(scratch.fd, "proc/self");
    put_file(scratch.fd, "proc/self/status", "");
    run(in_own_root, "/proc/self/status can be opened");
    assert_int_equal(unlinkat(scratch.fd, "proc/self/status", 0), 0);
    put_folder(scratch.fd, "usr");
    put_folder(scratch.fd, "usr/bin");
    run(in_own_root, "/usr/bin is there");
}

/* ---- Landlock alone ---- */

static void enter_slot(void) {
    REQUIRE(fchdir(scratch.fd) == 0);
    if (geteuid() == 0)
        REQUIRE(confine_become_user(other_users, other_users, NULL) == 0);
    REQUIRE(confine_to_capabilities(0, NULL) == 0 && chdir("home") == 0);
    REQUIRE(confine_privileges(NULL) == 0);
}

static int in_a_slot(void *context) {
    (void)context;
    enter_slot();
    REQUIRE(landlock_restrict_worker(ISOLATION_MINIMAL, NULL) == 0);
    load_filter(&filter);
    REQUIRE(self_test(ISOLATION_MINIMAL, NULL) == 0);
    return 0;
}

static int in_a_slot_without_landlock(void *context) {
    (void)context;
    enter_slot();
    load_filter(&filter);
    require_failure(ISOLATION_MINIMAL, "/ can be opened");
    return 0;
}

/* Held by rules, but by those for a session that has a root of its own. */
static int in_a_slot_with_other_rules(void *context) {
    (void)context;
    enter_slot();
    REQUIRE(landlock_restrict_worker(ISOLATION_CONFINED, NULL) == 0);
    load_filter(&filter);
    require_failure(ISOLATION_MINIMAL, "/ can be opened");
    return 0;
}

static void missing_rules_of_landlock_are_found(void **state) {
    uid_t owner = geteuid() == 0 ? other_users : geteuid();

    (void)state;
    if (landlock_abi() == 0)
        cannot("this kernel has no Landlock");
    put_folder(scratch.fd, "home");
    put_folder(scratch.fd, "tmp");
    assert_int_equal(fchown(scratch.fd, owner, owner), 0);
    assert_int_equal(fchownat(scratch.fd, "home", owner, owner, 0), 0);
    run(in_a_slot, NULL);
    assert_false(is_there(scratch.fd, "self-test"));
    run(in_a_slot_without_landlock, NULL);
    run(in_a_slot_with_other_rules, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_capability_or_a_missing_filter_is_found),
        TEST(a_root_that_is_not_its_own_is_found),
        TEST(a_root_that_can_be_written_is_found),
        TEST(missing_rules_of_landlock_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
