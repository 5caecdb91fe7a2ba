/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "executor/launcher/wipe.h"
#include "tests/unit/child.h"
#include "tests/unit/other_users.h"
#include "tests/unit/scratch.h"

#define OWNER    other_users
#define GUARD    (other_users + 1)
#define STRANGER (other_users + 2)

static const char *const home[] = {"home"};

static struct wipe_user slot_user(bool kill) {
    return (struct wipe_user){OWNER, GUARD, kill};
}

static void only_root(void) {
    if (geteuid() != 0)
        cannot("only root may become somebody else");
}

/* A folder with a home of the owner's in it. */
static struct scratch tree_new(void) {
    struct scratch tree = scratch_new();

    assert_int_equal(fchmod(tree.fd, 0755), 0);
    assert_int_equal(mkdirat(tree.fd, "home", 0700), 0);
    assert_int_equal(fchownat(tree.fd, "home", OWNER, OWNER, 0), 0);
    return tree;
}

static void assert_wiped(const struct scratch *tree, const struct wipe_user *user) {
    struct viv_error err;

    if (wipe_folders(tree->fd, home, 1, user, WIPE_LIMIT_MS, &err))
        fail_msg("%s", err.message);
    /* Only an empty one can be removed. */
    assert_int_equal(unlinkat(tree->fd, "home", AT_REMOVEDIR), 0);
}

/* A process with these users that does `body` in the home. */
static pid_t start_process(const struct scratch *tree, uid_t real, uid_t effective,
                           void (*body)(void)) {
    int ready[2];
    char byte;

    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        REQUIRE(setresgid(OWNER, OWNER, OWNER) == 0);
        REQUIRE(setresuid(real, effective, real) == 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        REQUIRE(fchdir(tree->fd) == 0 && (effective != OWNER || chdir("home") == 0));
        REQUIRE(write(ready[1], "", 1) == 1);
        body();
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void wait_for_ever(void) {
    for (;;)
        pause();
}

static void leave_hostile_things(void) {
    char name[32];

    REQUIRE(mkdir("locked", 0700) == 0 && mkdir("locked/in", 0700) == 0);
    REQUIRE(mknod("locked/in/file", S_IFREG, 0) == 0);
    REQUIRE(chmod("locked/in", 0) == 0 && chmod("locked", 0) == 0);
    REQUIRE(symlink("/etc/passwd", "link") == 0 && symlink("../..", "up") == 0);
    REQUIRE(mkfifo("fifo", 0) == 0);
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "\xff %d", i);
        REQUIRE(mknod(name, S_IFREG, 0) == 0);
    }
    REQUIRE(chmod(".", 0) == 0);
    for (int i = 0; i < 300; i++)
        if (mkdir("deep", 0700) || chdir("deep"))
            break;
}

static void whatever_its_user_left_goes(void **state) {
    (void)state;
    only_root();
    struct scratch tree = tree_new();
    const struct wipe_user users = slot_user(true);
    int status;
    pid_t child = start_process(&tree, OWNER, OWNER, leave_hostile_things);

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_wiped(&tree, &users);
    assert_true(access("/etc/passwd", R_OK) == 0);
    scratch_remove(&tree);
}

static void assert_killed(pid_t child) {
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void processes_of_its_users_are_killed_and_no_others(void **state) {
    (void)state;
    only_root();
    struct scratch tree = tree_new();
    const struct wipe_user users = slot_user(true);
    const struct wipe_user gentle = slot_user(false);
    pid_t worker = start_process(&tree, OWNER, OWNER, wait_for_ever);
    pid_t supervisor = start_process(&tree, GUARD, OWNER, wait_for_ever);
    pid_t other = start_process(&tree, STRANGER, STRANGER, wait_for_ever);

    assert_int_equal(wipe_folders(tree.fd, home, 1, &gentle, WIPE_LIMIT_MS, NULL), 0);
    assert_int_equal(kill(worker, 0) | kill(supervisor, 0) | kill(other, 0), 0);
    /* From a process of its own, whose children these are not: it reaps its caller's. */
    pid_t parent = fork();
    assert_true(parent >= 0);
    if (parent == 0)
        _exit(wipe_folders(tree.fd, home, 1, &users, WIPE_LIMIT_MS, NULL) ? 1 : 0);
    int status;
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(status, 0);
    assert_killed(worker);
    assert_killed(supervisor);
    assert_int_equal(waitpid(other, &status, WNOHANG), 0);
    assert_int_equal(kill(other, SIGKILL), 0);
    assert_killed(other);
    scratch_remove(&tree);
}

static void kill_everybody(void) {
    for (;;) {
        kill(-1, SIGSTOP);
        kill(-1, SIGKILL);
    }
}

static void its_owner_cannot_end_it(void **state) {
    (void)state;
    only_root();
    struct scratch tree = tree_new();
    const struct wipe_user users = slot_user(true);
    const struct wipe_user gentle = slot_user(false);
    char name[32];
    pid_t killer = start_process(&tree, OWNER, OWNER, kill_everybody);

    for (int i = 0; i < 2000; i++) {
        snprintf(name, sizeof name, "home/%d", i);
        put_file(tree.fd, name, "");
    }
    assert_int_equal(wipe_folders(tree.fd, home, 1, &gentle, WIPE_LIMIT_MS, NULL), 0);
    assert_wiped(&tree, &users);
    kill(killer, SIGKILL);
    waitpid(killer, NULL, 0);
    scratch_remove(&tree);
}

static void what_is_not_its_users_is_passed_over(void **state) {
    static const char *const both[] = {"nowhere", "home"};
    struct viv_error err;

    (void)state;
    only_root();
    struct scratch tree = tree_new();
    const struct wipe_user users = slot_user(true);
    put_file(tree.fd, "home/file", "");
    assert_int_equal(fchownat(tree.fd, "home", STRANGER, STRANGER, 0), 0);
    if (wipe_folders(tree.fd, both, 2, &users, WIPE_LIMIT_MS, &err))
        fail_msg("%s", err.message);
    assert_true(is_there(tree.fd, "home/file"));
    scratch_remove(&tree);
}

static void a_failure_says_why(void **state) {
    struct viv_error err;

    (void)state;
    only_root();
    struct scratch tree = tree_new();
    const struct wipe_user users = slot_user(true);
    put_folder(tree.fd, "home/roots");
    put_file(tree.fd, "home/roots/file", "");
    assert_fails(wipe_folders(tree.fd, home, 1, &users, WIPE_LIMIT_MS, &err), &err,
                 VIV_SYSTEM, ": Permission denied");
    scratch_remove(&tree);
}

static void it_is_ended_at_its_limit(void **state) {
    struct viv_error err;
    char name[32];

    (void)state;
    struct scratch tree = scratch_new();
    put_folder(tree.fd, "home");
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "home/%d", i);
        put_file(tree.fd, name, "");
    }
    assert_fails(wipe_folders(tree.fd, home, 1, NULL, 0, &err), &err, VIV_TIMED_OUT,
                 "took too long");
    assert_int_equal(waitpid(-1, NULL, 0), -1);
    assert_int_equal(errno, ECHILD);
    assert_wiped(&tree, NULL);
    scratch_remove(&tree);
}

static void descriptors_are_returned(void **state) {
    struct scratch tree = scratch_new();
    int before = open_descriptors();

    (void)state;
    put_folder(tree.fd, "home");
    assert_int_equal(wipe_folders(tree.fd, home, 1, NULL, WIPE_LIMIT_MS, NULL), 0);
    assert_int_equal(open_descriptors(), before);
    scratch_remove(&tree);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_its_user_left_goes),
        cmocka_unit_test(processes_of_its_users_are_killed_and_no_others),
        cmocka_unit_test(its_owner_cannot_end_it),
        cmocka_unit_test(what_is_not_its_users_is_passed_over),
        cmocka_unit_test(a_failure_says_why),
        cmocka_unit_test(it_is_ended_at_its_limit),
        cmocka_unit_test(descriptors_are_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
