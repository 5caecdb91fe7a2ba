/* SPDX-License-Identifier: MIT */
/* That the limits are kept, where the cgroup that the tests are started in gives its
 * children the controllers. */
#include "tests/unit/unit.h"

#include <sys/mman.h>

#include "executor/oom_score.h"
#include "tests/unit/cgroup_fixture.h"

#define MIB     ((size_t)1 << 20)
#define MEMORY  (48 * MIB)
#define PIDS    6
#define FORKED  3 /* exit status of what was to be ended */
#define TOO_FAR 4

/* Runs `body` in a child where it can. Not by cannot(): a machine on which everything
 * else must work is seldom one that gives controllers to whoever runs the tests. */
static void where_limits_are(void **state, int (*body)(void *context)) {
    struct fixture *fixture = *state;

    if (fixture->group < 0)
        skip();
    int status = child_status(body, fixture);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_CANNOT)
        skip();
    assert_int_equal(status, 0);
}

/* Opens the groups as the keeper does, and makes a sandbox with a supervisor. */
static pid_t start(struct cgroups *cgroups, const struct fixture *fixture,
                   enum cgroup_controller_kind needed, int ready[2]) {
    const struct cgroup_limits limits = {.memory = MEMORY, .pids = PIDS};

    move_into(fixture);
    if (cgroups_open(cgroups, LAUNCHER, NULL) || !cgroups->controllers[needed].enabled) {
        fprintf(stderr, "%s: %s\n", cgroup_controller_name(needed),
                cgroups->controllers[needed].reason);
        cgroups_close(cgroups, NULL);
        _exit(CHILD_CANNOT);
    }
    REQUIRE(pipe2(ready, O_CLOEXEC) == 0);
    REQUIRE(cgroups_make(cgroups, SLOT, &limits, NULL) == 0);
    pid_t supervisor = fork_supervisor(ready[1]);
    REQUIRE(cgroups_enter_supervisor(cgroups, SLOT, supervisor, NULL) == 0);
    wait_for_byte(ready[0]);
    return supervisor;
}

static void end(struct cgroups *cgroups, const struct fixture *fixture,
                pid_t supervisor) {
    REQUIRE(kill(supervisor, SIGKILL) == 0);
    REQUIRE(waitpid(supervisor, NULL, 0) == supervisor);
    REQUIRE(cgroups_close(cgroups, NULL) == 0);
    REQUIRE(groups_below(fixture->group) == 0);
}

static pid_t fork_into_worker(const struct cgroups *cgroups) {
    CLEANUP(close_fd) int procs = cgroups_open_worker_procs(cgroups, SLOT, NULL);

    REQUIRE(procs >= 0);
    pid_t worker = fork();
    if (worker == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        REQUIRE(session_cgroup_enter(procs, NULL) == 0);
    }
    return worker;
}

/* The kernel takes the worker, all of it, and leaves the supervisor. */
static int take_too_much_memory(void *context) {
    const struct fixture *fixture = context;
    struct cgroups cgroups;
    int ready[2], status;
    uint64_t before, after;
    pid_t supervisor = start(&cgroups, fixture, CGROUP_MEMORY, ready);

    int events = cgroups_open_worker_events(&cgroups, SLOT, NULL);
    REQUIRE(session_cgroup_oom_kills(events, &before, NULL) == 0);
    pid_t worker = fork_into_worker(&cgroups);
    if (worker == 0) {
        REQUIRE(oom_score_raise(open("/proc", O_RDONLY | O_CLOEXEC), NULL) == 0);
        if (fork() == 0)
            wait_to_be_killed(ready[1]);
        wait_for_byte(ready[0]);
        char *memory = mmap(NULL, 2 * MEMORY, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        memset(memory, 1, 2 * MEMORY);
        _exit(TOO_FAR);
    }
    REQUIRE(waitpid(worker, &status, 0) == worker);
    REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    REQUIRE(session_cgroup_oom_kills(events, &after, NULL) == 0);
    REQUIRE(after > before);
    REQUIRE(waitpid(supervisor, NULL, WNOHANG) == 0);
    /* Its other process has gone, too, for the group can be removed. */
    CLEANUP(close_fd)
    int group = openat(cgroups.subtree, "s-3", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(cgroup_remove(group, "worker", viv_after_ms(5000)) == 0);
    end(&cgroups, fixture, supervisor);
    return 0;
}

static void a_kill_for_memory_ends_the_worker(void **state) {
    where_limits_are(state, take_too_much_memory);
}

static int fork_too_often(void *context) {
    const struct fixture *fixture = context;
    struct cgroups cgroups;
    int ready[2], status, forked = 0;
    pid_t supervisor = start(&cgroups, fixture, CGROUP_PIDS, ready), child = 0;

    pid_t worker = fork_into_worker(&cgroups);
    if (worker == 0) {
        while (forked <= PIDS && (child = fork()) > 0)
            forked++;
        if (child == 0)
            wait_to_be_killed(ready[1]);
        /* Beside the worker and the supervisor. */
        _exit(child < 0 && errno == EAGAIN && forked == PIDS - 2 ? FORKED : TOO_FAR);
    }
    REQUIRE(waitpid(worker, &status, 0) == worker);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == FORKED);
    if (!cgroups_kill(&cgroups, SLOT))
        return CHILD_CANNOT;
    end(&cgroups, fixture, supervisor);
    return 0;
}

static void processes_are_counted(void **state) {
    where_limits_are(state, fork_too_often);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_kill_for_memory_ends_the_worker),
        TEST(processes_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
