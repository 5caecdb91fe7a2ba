/* SPDX-License-Identifier: MIT */
/* A cgroup of each test's own, below the one that the program was started in, and a
 * sandbox in it with processes as they are in the service. */
#ifndef VIV_TESTS_CGROUP_FIXTURE_H
#define VIV_TESTS_CGROUP_FIXTURE_H

#include "tests/unit/unit.h"

#include <grp.h>
#include <linux/capability.h>

#include "common/cleanup.h"
#include "executor/confine.h"
#include "executor/launcher/cgroup_files.h"
#include "executor/launcher/cgroup_find.h"
#include "executor/launcher/cgroups.h"
#include "executor/session_cgroup.h"
#include "tests/unit/child.h"

#define LAUNCHER 300000U /* user and group */
#define WORKER   300001U
#define SLOT     3U

#define WAIT_LIMIT_S 60 /* of a process whose killing fails */

struct fixture {
    int own;   /* the cgroup of this test program */
    int group; /* made for the test; or -1 */
    char name[32];
};

static inline int set_up(void **state) {
    static struct fixture fixture;
    CLEANUP(free_ptr) char *path = NULL;

    fixture.own = cgroup_open_own(&path, NULL);
    snprintf(fixture.name, sizeof fixture.name, "viv-unit-%d", (int)getpid());
    fixture.group = fixture.own < 0 ? -1 : cgroup_make(fixture.own, fixture.name, 0755);
    *state = &fixture;
    return 0;
}

static inline int tear_down(void **state) {
    struct fixture *fixture = *state;
    int result = 0;

    /* What a failed test has left. */
    if (fixture->group >= 0)
        cgroup_write(fixture->group, "cgroup.kill", "1");
    if (fixture->group >= 0)
        result = cgroup_remove(fixture->own, fixture->name, viv_after_ms(5000));
    close_and_clear(&fixture->group);
    close_and_clear(&fixture->own);
    return result;
}

/* The child starts in the group of the test; so does everything that it forks. */
static inline void in_group(struct fixture *fixture, int (*body)(void *context)) {
    if (fixture->group < 0)
        cannot("no cgroup of version 2 can be made");
    in_child(body, fixture);
}

static inline void move_into(const struct fixture *fixture) {
    if (cgroup_write(fixture->group, "cgroup.procs", "0")) {
        perror("move into a cgroup");
        _exit(CHILD_CANNOT);
    }
}

static inline int count_one(int group, const char *name, void *context) {
    (void)group;
    (void)name;
    ++*(int *)context;
    return 0;
}

static inline int groups_below(int group) {
    int count = 0;

    REQUIRE(cgroup_each_child(group, count_one, &count) == 0);
    return count;
}

/* Whether the cgroup of a process ends so. */
static inline bool is_in(pid_t pid, const char *end) {
    char path[64], line[512] = "";

    snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
    FILE *file = fopen(path, "re");
    REQUIRE(file);
    while (fgets(line, sizeof line, file) && strncmp(line, "0::", 3) != 0)
        ;
    fclose(file);
    size_t length = strcspn(line, "\n"), wanted = strlen(end);
    return length >= wanted && memcmp(line + length - wanted, end, wanted) == 0;
}

static inline void wait_for_byte(int fd) {
    char byte;

    REQUIRE(read(fd, &byte, 1) == 1);
}

static inline void enter(struct cgroups *cgroups, const struct fixture *fixture) {
    struct viv_error err;
    int own = openat(fixture->group, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    REQUIRE(own >= 0);
    if (cgroups_enter(cgroups, own, &err)) {
        fprintf(stderr, "%s\n", err.message);
        REQUIRE(!"the subtree is made");
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* ---- a sandbox, with the processes as they are in the service ---- */

/* Waits in its group until it is killed. */
__attribute__((noreturn)) static inline void wait_to_be_killed(int ready) {
    alarm(WAIT_LIMIT_S);
    REQUIRE(write(ready, "x", 1) == 1);
    for (;;)
        pause();
}

/* The worker is another user, and its way in is the descriptor. */
static inline pid_t fork_worker(int procs, int ready) {
    pid_t worker = fork();

    if (worker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        REQUIRE(setresgid(WORKER, WORKER, WORKER) == 0);
        REQUIRE(setresuid(WORKER, WORKER, WORKER) == 0);
        REQUIRE(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
        REQUIRE(session_cgroup_enter(procs, NULL) == 0);
        wait_to_be_killed(ready);
    }
    return worker;
}

static inline pid_t fork_supervisor(int ready) {
    pid_t supervisor = fork();

    if (supervisor == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        wait_to_be_killed(ready);
    }
    return supervisor;
}

/* Makes a sandbox with two processes in it. */
static inline void start_sandbox(struct cgroups *cgroups, pid_t pids[2]) {
    int ready[2];

    REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
    REQUIRE(cgroups_make(cgroups, SLOT, &(struct cgroup_limits){0}, NULL) == 0);
    pids[0] = fork_supervisor(ready[1]);
    REQUIRE(cgroups_enter_supervisor(cgroups, SLOT, pids[0], NULL) == 0);
    int procs = cgroups_open_worker_procs(cgroups, SLOT, NULL);
    REQUIRE(procs >= 0);
    pids[1] = fork_worker(procs, ready[1]);
    close(procs);
    wait_for_byte(ready[0]);
    wait_for_byte(ready[0]);
    close(ready[0]);
    close(ready[1]);
    REQUIRE(is_in(pids[0], "/s-3/supervisor"));
    REQUIRE(is_in(pids[1], "/s-3/worker"));
}

/* A user and a group of its own, and the rights to become the worker's and to end it: the
 * parent-death signal is sent with those of the parent. */
static inline void become_launcher(struct cgroups *cgroups) {
    const uint64_t kept =
        UINT64_C(1) << CAP_SETGID | UINT64_C(1) << CAP_SETUID | UINT64_C(1) << CAP_KILL;

    cgroups_become_launcher(cgroups);
    REQUIRE(setgroups(0, NULL) == 0);
    REQUIRE(setresgid(LAUNCHER, LAUNCHER, LAUNCHER) == 0);
    REQUIRE(prctl(PR_SET_KEEPCAPS, 1) == 0);
    REQUIRE(setresuid(LAUNCHER, LAUNCHER, LAUNCHER) == 0);
    REQUIRE(confine_to_capabilities(kept, NULL) == 0);
}

#endif
