/* SPDX-License-Identifier: MIT */
/* Users and roots of processes, as the tier `confined` has them. Root alone can show
 * it. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>

#include "executor/confine.h"
#include "tests/unit/child.h"
#include "tests/unit/other_users.h"
#include "tests/unit/scratch.h"

#define SUPERVISOR (other_users + 1)
#define WORKER     (other_users + 2)

static struct scratch scratch; /* of the worker's user */

static int set_up(void **state) {
    (void)state;
    scratch = scratch_new();
    return fchown(scratch.fd, WORKER, WORKER) && geteuid() == 0;
}

static int tear_down(void **state) {
    (void)state;
    scratch_remove(&scratch);
    return 0;
}

static void become(uid_t own, uid_t acting) {
    REQUIRE(setgroups(0, NULL) == 0);
    REQUIRE(confine_become_user(own, acting, NULL) == 0);
    REQUIRE(confine_to_capabilities(0, NULL) == 0);
}

/* Forks a process of the two users that does nothing; returns when it is there. It ends
 * with this one, also where that may not send it the parent-death signal. */
static pid_t start_other(uid_t own, uid_t acting) {
    int there[2], stays[2];
    char byte;

    REQUIRE(pipe2(there, O_CLOEXEC) == 0 && pipe2(stays, O_CLOEXEC) == 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        close(stays[1]); /* what later ones inherit of it ends with them */
        become(own, acting);
        REQUIRE(write(there[1], "", 1) == 1);
        _exit(read(stays[0], &byte, 1) == 0 ? 0 : 1);
    }
    REQUIRE(read(there[0], &byte, 1) == 1);
    close(there[0]);
    close(there[1]);
    close(stays[0]);
    return child;
}

static int worker_signals(void *context) {
    pid_t supervisor = start_other(SUPERVISOR, WORKER);
    pid_t one_of_its_own = start_other(WORKER, WORKER);
    int status;

    (void)context;
    REQUIRE(setsid() > 0); /* for SIGCONT the session is what counts: kill(2) */
    become(WORKER, WORKER);
    for (int number = 0; number < _NSIG; number++)
        REQUIRE(kill(supervisor, number) == -1 && errno == EPERM);
    REQUIRE(kill(one_of_its_own, SIGKILL) == 0);
    REQUIRE(waitpid(one_of_its_own, &status, 0) == one_of_its_own);
    REQUIRE(waitpid(supervisor, &status, WNOHANG) == 0);
    return 0;
}

static int supervisor_signals(void *context) {
    pid_t worker = start_other(WORKER, WORKER);
    pid_t another_slots = start_other(other_users + 4, other_users + 4);
    pid_t supervisor = start_other(other_users + 3, WORKER);
    int status;

    (void)context;
    become(SUPERVISOR, WORKER);
    REQUIRE(kill(another_slots, 0) == -1 && errno == EPERM);
    REQUIRE(kill(supervisor, 0) == -1 && errno == EPERM);
    REQUIRE(kill(getppid(), 0) == -1 && errno == EPERM);
    REQUIRE(kill(worker, SIGINT) == 0 && kill(worker, SIGKILL) == 0);
    REQUIRE(waitpid(worker, &status, 0) == worker && WIFSIGNALED(status));
    return 0;
}

static int supervisor_files(void *context) {
    struct stat status;
    uid_t uids[3], gids[3];

    (void)context;
    become(SUPERVISOR, WORKER);
    REQUIRE(getresuid(&uids[0], &uids[1], &uids[2]) == 0);
    REQUIRE(uids[0] == SUPERVISOR && uids[1] == WORKER && uids[2] == SUPERVISOR);
    REQUIRE(getresgid(&gids[0], &gids[1], &gids[2]) == 0);
    REQUIRE(gids[0] == WORKER && gids[1] == WORKER && gids[2] == WORKER);
    REQUIRE(getgroups(0, NULL) == 0);
    int fd = openat(scratch.fd, "made", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    REQUIRE(fd >= 0 && fstat(fd, &status) == 0);
    REQUIRE(status.st_uid == WORKER && status.st_gid == WORKER);
    REQUIRE(mkdirat(scratch.fd, "folder", 0700) == 0);
    REQUIRE(fstatat(scratch.fd, "folder", &status, 0) == 0 && status.st_uid == WORKER);
    /* What the worker keeps to itself it may read, and what others do it may not. */
    REQUIRE(openat(scratch.fd, "of the worker", O_RDWR | O_CLOEXEC) >= 0);
    REQUIRE(openat(scratch.fd, "of another", O_RDONLY | O_CLOEXEC) == -1);
    REQUIRE(errno == EACCES);
    return 0;
}

static int without_the_right(void *context) {
    struct viv_error err;

    (void)context;
    become(WORKER, WORKER);
    REQUIRE(confine_become_user(SUPERVISOR, WORKER, &err) == -1);
    REQUIRE(err.code == VIV_SYSTEM && strstr(err.message, "setresuid"));
    REQUIRE(confine_become_user(0, 0, &err) == -1);
    REQUIRE(err.code == VIV_SYSTEM && strstr(err.message, "setresgid"));
    REQUIRE(confine_root(scratch.fd, &err) == -1);
    REQUIRE(err.code == VIV_SYSTEM && strstr(err.message, "change the root"));
    return 0;
}

/* It goes with the user unless the secure bits say otherwise: capabilities(7). */
static int capabilities_stay(void *context) {
    const uint64_t kept = UINT64_C(1) << CAP_KILL;

    (void)context;
    REQUIRE(prctl(PR_SET_KEEPCAPS, 1) == 0);
    REQUIRE(confine_become_user(WORKER, WORKER, NULL) == 0);
    REQUIRE(confine_to_capabilities(kept, NULL) == 0);
    REQUIRE(child_status_field("CapEff", 16) == kept);
    REQUIRE(kill(getppid(), 0) == 0);
    return 0;
}

static int own_root(void *context) {
    struct stat root, here;
    char path[16];

    (void)context;
    int outside = openat(scratch.fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(outside >= 0 && chdir("/") == 0);
    REQUIRE(confine_root(scratch.fd, NULL) == 0);
    REQUIRE(stat("/", &root) == 0 && stat(".", &here) == 0);
    REQUIRE(root.st_ino == here.st_ino && fstat(scratch.fd, &here) == 0);
    REQUIRE(root.st_dev == here.st_dev && root.st_ino == here.st_ino);
    REQUIRE(getcwd(path, sizeof path) && strcmp(path, "/") == 0);
    REQUIRE(access("/of another", F_OK) == 0 && access("../../of another", F_OK) == 0);
    REQUIRE(access("/usr", F_OK) == -1 && errno == ENOENT);
    REQUIRE(confine_root(STDERR_FILENO, NULL) == -1);
    return 0;
}

static void run(int (*body)(void *context)) {
    if (geteuid() != 0) {
        skip();
        return;
    }
    put_file(scratch.fd, "of the worker", "");
    put_file(scratch.fd, "of another", "");
    assert_int_equal(fchownat(scratch.fd, "of the worker", WORKER, WORKER, 0), 0);
    assert_int_equal(fchmodat(scratch.fd, "of the worker", 0600, 0), 0);
    assert_int_equal(fchmodat(scratch.fd, "of another", 0600, 0), 0);
    in_child(body, NULL);
}

static void a_worker_cannot_signal_its_supervisor(void **state) {
    (void)state;
    run(worker_signals);
}

static void a_supervisor_signals_its_worker_and_no_other(void **state) {
    (void)state;
    run(supervisor_signals);
}

static void a_supervisor_has_files_as_its_worker(void **state) {
    (void)state;
    run(supervisor_files);
}

static void without_the_right_it_fails(void **state) {
    (void)state;
    run(without_the_right);
}

static void capabilities_that_are_kept_stay(void **state) {
    (void)state;
    run(capabilities_stay);
}

static void a_folder_becomes_the_root(void **state) {
    (void)state;
    run(own_root);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_worker_cannot_signal_its_supervisor),
        TEST(a_supervisor_signals_its_worker_and_no_other),
        TEST(a_supervisor_has_files_as_its_worker),
        TEST(without_the_right_it_fails),
        TEST(capabilities_that_are_kept_stay),
        TEST(a_folder_becomes_the_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
