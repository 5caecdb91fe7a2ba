/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <grp.h>
#include <pwd.h>
#include <sys/mount.h>

#include "executor/launcher/uid_range.h"
#include "tests/unit/child.h"
#include "tests/unit/other_users.h"
#include "tests/unit/scratch.h"

#define FREE (other_users + 20) /* and some before and after it */

static void a_free_range_passes(void **state) {
    struct viv_error err;

    (void)state;
    if (uid_range_check(FREE, 100, &err)) {
        if (strstr(err.message, "is not mapped"))
            cannot(err.message);
        fail_msg("%s", err.message);
    }
}

static void a_user_of_the_host_is_refused(void **state) {
    struct viv_error err;

    (void)state;
    assert_fails(uid_range_check(0, 1, &err), &err, VIV_CONFIG,
                 "slot_uid_base: 0 is the user root; choose");
}

/* A group whose number no user has. */
static void a_group_of_the_host_is_refused(void **state) {
    struct viv_error err;
    char expected[128];
    gid_t found = 0;

    (void)state;
    for (gid_t id = 1; id < 1000 && !found; id++)
        if (getgrgid(id) && !getpwuid(id))
            found = id;
    if (!found)
        cannot("every group has a user of its number");
    snprintf(expected, sizeof expected, "%u is the group ", found);
    assert_fails(uid_range_check(found, 1, &err), &err, VIV_CONFIG, expected);
}

static int knows_what_is_mapped(void *context) {
    struct viv_error err;
    char below[64], above[64], own[64];

    (void)context;
    snprintf(below, sizeof below, "%u is not mapped", FREE - 1);
    snprintf(above, sizeof above, "%u is not mapped", FREE + 1);
    snprintf(own, sizeof own, "runs as user %u", FREE);
    child_unshare(0, FREE);
    REQUIRE(uid_range_check(FREE - 1, 2, &err) == -1 && err.code == VIV_CONFIG);
    REQUIRE(strstr(err.message, below));
    REQUIRE(uid_range_check(FREE, 2, &err) == -1 && err.code == VIV_CONFIG);
    REQUIRE(strstr(err.message, above));
    /* It is mapped, but this process has it. */
    REQUIRE(uid_range_check(FREE, 1, &err) == -1);
    REQUIRE(strstr(err.message, own));
    return 0;
}

static void what_is_not_mapped_is_refused(void **state) {
    (void)state;
    in_child(knows_what_is_mapped, NULL);
}

/* All numbers count from FREE. */
struct delegation {
    int first;
    int count;
    int asked_first;
    int asked_count;
    bool free;
};

struct reading {
    const struct delegation *delegation;
    char path[128]; /* of a file that takes the place of the host's */
};

static int reads_delegation(void *context) {
    const struct reading *reading = context;
    struct viv_error err;

    if (unshare(CLONE_NEWNS))
        return CHILD_CANNOT;
    REQUIRE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    REQUIRE(mount(reading->path, "/etc/subuid", NULL, MS_BIND, NULL) == 0);
    const struct delegation *delegation = reading->delegation;
    int result = uid_range_check(FREE + (uid_t)delegation->asked_first,
                                 (uint64_t)delegation->asked_count, &err);
    if (delegation->free)
        return result == 0 ? 0 : CHILD_FAILED;
    return result == -1 && strstr(err.message, "/etc/subuid gives ") ? 0 : CHILD_FAILED;
}

static void what_is_delegated_is_refused(void **state) {
    static const struct delegation delegations[] = {
        {0, 10, 0, 5, false}, {0, 10, 9, 5, false}, {0, 10, -5, 6, false},
        {3, 1, 0, 10, false}, {0, 10, 10, 5, true}, {0, 10, -5, 5, true},
    };

    (void)state;
    if (geteuid() != 0 || access("/etc/subuid", F_OK))
        cannot("only root may put a file in the place of /etc/subuid");
    struct scratch scratch = scratch_new();
    char content[128];
    for (size_t i = 0; i < COUNT_OF(delegations); i++) {
        struct reading reading = {.delegation = &delegations[i]};
        snprintf(content, sizeof content, "# none\n\n:::\nu:1:1\nv:%u:%d\n",
                 FREE + (uid_t)delegations[i].first, delegations[i].count);
        put_file(scratch.fd, "subuid", content);
        snprintf(reading.path, sizeof reading.path, "%s/subuid", scratch.path);
        in_child(reads_delegation, &reading);
    }
    scratch_remove(&scratch);
}

static void a_running_process_is_refused(void **state) {
    struct viv_error err;
    int ready[2];
    char byte, expected[128];

    (void)state;
    if (geteuid() != 0)
        cannot("only root may change the user");
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        REQUIRE(setresuid(FREE + 7, FREE + 7, FREE + 7) == 0);
        REQUIRE(write(ready[1], "", 1) == 1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    snprintf(expected, sizeof expected, "the process %d runs as user %u", (int)child,
             FREE + 7);
    assert_fails(uid_range_check(FREE, 10, &err), &err, VIV_CONFIG, expected);
    /* One that has ended is in nobody's way, also when its parent does not care. */
    siginfo_t ended;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
    assert_int_equal(uid_range_check(FREE, 10, &err), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_free_range_passes),
        cmocka_unit_test(a_user_of_the_host_is_refused),
        cmocka_unit_test(a_group_of_the_host_is_refused),
        cmocka_unit_test(what_is_not_mapped_is_refused),
        cmocka_unit_test(what_is_delegated_is_refused),
        cmocka_unit_test(a_running_process_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
