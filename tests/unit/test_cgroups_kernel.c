/* SPDX-License-Identifier: MIT */
/* What the kernel makes of the groups. Needs no controller. */
#include "tests/unit/unit.h"

#include <linux/sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/cgroup_fixture.h"

/* ---- there and back ---- */

static int enter_and_leave(void *context) {
    const struct fixture *fixture = context;
    struct cgroups cgroups;

    move_into(fixture);
    enter(&cgroups, fixture);
    REQUIRE(is_in(getpid(), "/viv.main"));
    REQUIRE(!cgroup_has_processes(fixture->group));
    REQUIRE(groups_below(fixture->group) == 1);
    REQUIRE(cgroups_close(&cgroups, NULL) == 0);
    REQUIRE(is_in(getpid(), fixture->name));
    REQUIRE(groups_below(fixture->group) == 0);
    return 0;
}

static void the_keeper_moves_there_and_back(void **state) {
    in_group(*state, enter_and_leave);
}

/* Whether this machine gives controllers or not. */
static int open_and_close(void *context) {
    const struct fixture *fixture = context;
    struct cgroups cgroups;
    struct viv_error err;

    move_into(fixture);
    bool opened = cgroups_open(&cgroups, LAUNCHER, &err) == 0;
    if (!opened) {
        REQUIRE(err.code == VIV_UNAVAILABLE);
        REQUIRE(cgroups.subtree == -1 && cgroups.own == -1);
        REQUIRE(is_in(getpid(), fixture->name));
        REQUIRE(groups_below(fixture->group) == 0);
    }
    for (int kind = 0; kind < CGROUP_KINDS; kind++)
        REQUIRE(cgroups.controllers[kind].enabled ==
                (cgroups.controllers[kind].reason[0] == '\0'));
    REQUIRE(cgroups_close(&cgroups, NULL) == 0);
    REQUIRE(groups_below(fixture->group) == 0);
    REQUIRE(is_in(getpid(), fixture->name));
    return 0;
}

static void leaves_nothing_where_there_are_no_controllers(void **state) {
    in_group(*state, open_and_close);
}

static int others_are_there(void *context) {
    const struct fixture *fixture = context;
    struct cgroups cgroups;
    pid_t other;

    move_into(fixture);
    other = fork();
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            pause();
    }
    enter(&cgroups, fixture);
    REQUIRE(!cgroups_enable(&cgroups));
    for (int kind = 0; kind < CGROUP_KINDS; kind++)
        REQUIRE(strstr(cgroups.controllers[kind].reason, "other processes"));
    REQUIRE(cgroups_close(&cgroups, NULL) == 0);
    REQUIRE(groups_below(fixture->group) == 0);
    REQUIRE(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
    return 0;
}

static void sees_others_in_the_cgroup(void **state) {
    in_group(*state, others_are_there);
}

/* A keeper that is killed cannot clean up; the next one does. */
static int take_over(void *context) {
    const struct fixture *fixture = context;
    struct cgroups cgroups;
    int status;
    pid_t killed = fork();

    if (killed == 0) {
        move_into(fixture);
        enter(&cgroups, fixture);
        REQUIRE(cgroups_make(&cgroups, SLOT, &(struct cgroup_limits){0}, NULL) == 0);
        kill(getpid(), SIGKILL);
    }
    REQUIRE(waitpid(killed, &status, 0) == killed && WIFSIGNALED(status));
    REQUIRE(groups_below(fixture->group) == 1);
    move_into(fixture);
    enter(&cgroups, fixture);
    REQUIRE(groups_below(fixture->group) == 1);
    REQUIRE(cgroups_close(&cgroups, NULL) == 0);
    REQUIRE(groups_below(fixture->group) == 0);
    return 0;
}

static void removes_what_a_killed_keeper_left(void **state) {
    in_group(*state, take_over);
}

static int as_ordinary_user(void *context) {
    const struct fixture *fixture = context;
    struct cgroups cgroups;

    move_into(fixture);
    if (geteuid() == 0) {
        REQUIRE(fchown(fixture->group, LAUNCHER, LAUNCHER) == 0);
        REQUIRE(fchownat(fixture->group, "cgroup.procs", LAUNCHER, LAUNCHER, 0) == 0);
        REQUIRE(setgroups(0, NULL) == 0);
        REQUIRE(setresgid(LAUNCHER, LAUNCHER, LAUNCHER) == 0);
        REQUIRE(setresuid(LAUNCHER, LAUNCHER, LAUNCHER) == 0);
    }
    enter(&cgroups, fixture);
    REQUIRE(cgroups_delegate(&cgroups, 12345, NULL) == 0);
    REQUIRE(cgroups_make(&cgroups, SLOT, &(struct cgroup_limits){0}, NULL) == 0);
    REQUIRE(cgroups_close(&cgroups, NULL) == 0);
    REQUIRE(groups_below(fixture->group) == 0);
    return 0;
}

static void an_ordinary_user_has_what_was_delegated(void **state) {
    in_group(*state, as_ordinary_user);
}

static int not_delegated(void *context) {
    const struct fixture *fixture = context;
    struct cgroups cgroups;
    struct viv_error err;

    move_into(fixture);
    REQUIRE(setresuid(WORKER, WORKER, WORKER) == 0);
    int own = openat(fixture->group, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(cgroups_enter(&cgroups, own, &err) == -1);
    REQUIRE(strstr(err.message, "not delegated to this user"));
    REQUIRE(cgroups_close(&cgroups, NULL) == 0);
    REQUIRE(groups_below(fixture->group) == 0);
    return 0;
}

static void a_cgroup_of_others_is_a_reason(void **state) {
    if (geteuid() != 0)
        cannot("only root can become another user");
    in_group(*state, not_delegated);
}

/* ---- a sandbox ---- */

static int run_launcher(void *context) {
    struct cgroups *cgroups = context;
    pid_t pids[2];
    int status;

    become_launcher(cgroups);
    for (int round = 0; round < 3; round++) {
        start_sandbox(cgroups, pids);
        /* While processes are in them, the groups stay. */
        REQUIRE(cgroups_remove(cgroups, SLOT, NULL) == -1);
        if (!cgroups_kill(cgroups, SLOT))
            for (int i = 0; i < 2; i++)
                kill(pids[i], SIGKILL);
        for (int i = 0; i < 2; i++)
            REQUIRE(waitpid(pids[i], &status, 0) == pids[i] && WIFSIGNALED(status) &&
                    WTERMSIG(status) == SIGKILL);
        REQUIRE(cgroups_remove(cgroups, SLOT, NULL) == 0);
        REQUIRE(groups_below(cgroups->subtree) == 1);
    }
    return 0;
}

static int clone_into(void *context) {
    const struct fixture *fixture = context;
    struct cgroups cgroups;
    int status;

    move_into(fixture);
    enter(&cgroups, fixture);
    REQUIRE(cgroups_delegate(&cgroups, LAUNCHER, NULL) == 0);
    pid_t launcher = fork();
    if (launcher == 0) {
        become_launcher(&cgroups);
        REQUIRE(cgroups_make(&cgroups, SLOT, &(struct cgroup_limits){0}, NULL) == 0);
        int group = cgroups_open_supervisor(&cgroups, SLOT, NULL);
        REQUIRE(group >= 0);
        struct clone_args arguments = {.flags = CLONE_INTO_CGROUP,
                                       .exit_signal = SIGCHLD,
                                       .cgroup = (uint64_t)group};
        pid_t child = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
        if (child < 0 && errno == ENOSYS)
            _exit(CHILD_CANNOT);
        if (child == 0)
            _exit(is_in(getpid(), "/s-3/supervisor") ? 0 : 1);
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
        _exit(0);
    }
    REQUIRE(waitpid(launcher, &status, 0) == launcher);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_CANNOT)
        return CHILD_CANNOT;
    REQUIRE(status == 0);
    REQUIRE(cgroups_close(&cgroups, NULL) == 0);
    return 0;
}

static void a_supervisor_is_born_in_its_group(void **state) {
    if (geteuid() != 0)
        cannot("only root can become another user");
    in_group(*state, clone_into);
}

/* The keeper as it is when it ends: still root, without capabilities, and where its
 * cgroup was the root of the hierarchy, not even the owner may write the directory. */
static int drop_and_close(struct cgroups *cgroups, const struct fixture *fixture) {
    struct stat status;

    REQUIRE(fchmod(fixture->group, 0555) == 0);
    REQUIRE(confine_to_capabilities(0, NULL) == 0);
    REQUIRE(cgroups_close(cgroups, NULL) == 0);
    REQUIRE(is_in(getpid(), fixture->name));
    REQUIRE(groups_below(fixture->group) == 0);
    REQUIRE(fstat(fixture->group, &status) == 0 && (status.st_mode & 07777) == 0555);
    return 0;
}

static int with_launcher(void *context) {
    const struct fixture *fixture = context;
    struct cgroups cgroups;
    int status;

    move_into(fixture);
    enter(&cgroups, fixture);
    REQUIRE(cgroups_delegate(&cgroups, LAUNCHER, NULL) == 0);
    pid_t launcher = fork();
    if (launcher == 0)
        _exit(run_launcher(&cgroups));
    REQUIRE(waitpid(launcher, &status, 0) == launcher && status == 0);
    REQUIRE(groups_below(cgroups.subtree) == 1);
    return drop_and_close(&cgroups, fixture);
}

static void the_launcher_needs_no_privilege(void **state) {
    if (geteuid() != 0)
        cannot("only root can become another user");
    in_group(*state, with_launcher);
}

/* What a killed launcher has left is removed, when its processes have gone, too. */
static int without_launcher(void *context) {
    const struct fixture *fixture = context;
    struct cgroups cgroups;
    int ready[2];
    pid_t pids[2];

    move_into(fixture);
    enter(&cgroups, fixture);
    REQUIRE(cgroups_delegate(&cgroups, LAUNCHER, NULL) == 0);
    REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
    pid_t launcher = fork();
    if (launcher == 0) {
        become_launcher(&cgroups);
        start_sandbox(&cgroups, pids);
        wait_to_be_killed(ready[1]);
    }
    wait_for_byte(ready[0]);
    REQUIRE(kill(launcher, SIGKILL) == 0);
    REQUIRE(waitpid(launcher, NULL, 0) == launcher);
    return drop_and_close(&cgroups, fixture);
}

static void a_killed_launcher_leaves_nothing(void **state) {
    if (geteuid() != 0)
        cannot("only root can become another user");
    in_group(*state, without_launcher);
}

/* Others of the host can neither look into the subtree nor move a process there. */
static int look_from_outside(void *context) {
    const struct fixture *fixture = context;
    struct cgroups cgroups;
    struct stat status;
    int result;

    move_into(fixture);
    enter(&cgroups, fixture);
    REQUIRE(cgroups_delegate(&cgroups, LAUNCHER, NULL) == 0);
    REQUIRE(cgroups_make(&cgroups, SLOT, &(struct cgroup_limits){0}, NULL) == 0);
    /* The limits of the whole are not the launcher's. */
    REQUIRE(fstatat(cgroups.subtree, "cgroup.subtree_control", &status, 0) == 0);
    REQUIRE(status.st_uid == 0 && status.st_gid == 0);
    pid_t other = fork();
    if (other == 0) {
        REQUIRE(setresgid(WORKER, WORKER, WORKER) == 0);
        REQUIRE(setresuid(WORKER, WORKER, WORKER) == 0);
        REQUIRE(cgroups_open_worker_procs(&cgroups, SLOT, NULL) == -1);
        REQUIRE(!cgroups_kill(&cgroups, SLOT));
        REQUIRE(openat(cgroups.subtree, "s-3", O_RDONLY | O_CLOEXEC) == -1);
        _exit(0);
    }
    REQUIRE(waitpid(other, &result, 0) == other && result == 0);
    return drop_and_close(&cgroups, fixture);
}

static void the_subtree_is_closed_to_others(void **state) {
    if (geteuid() != 0)
        cannot("only root can become another user");
    in_group(*state, look_from_outside);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_keeper_moves_there_and_back),
        TEST(leaves_nothing_where_there_are_no_controllers),
        TEST(sees_others_in_the_cgroup),
        TEST(removes_what_a_killed_keeper_left),
        TEST(an_ordinary_user_has_what_was_delegated),
        TEST(a_cgroup_of_others_is_a_reason),
        TEST(a_supervisor_is_born_in_its_group),
        TEST(the_launcher_needs_no_privilege),
        TEST(a_killed_launcher_leaves_nothing),
        TEST(the_subtree_is_closed_to_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
