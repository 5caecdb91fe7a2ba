/* SPDX-License-Identifier: MIT */
/* What is written into which file: plain folders stand for cgroups. What the kernel makes
 * of it is in test_cgroups_kernel.c. */
#include "tests/unit/unit.h"

#include "common/cleanup.h"
#include "executor/launcher/cgroup_files.h"
#include "executor/launcher/cgroups.h"
#include "executor/session_cgroup.h"
#include "tests/unit/scratch.h"

static const struct cgroup_limits limits = {.memory = 640000, .pids = 72, .cpus = 3};

/* The files that the kernel makes for a sandbox with all controllers, all empty. */
static void put_sandbox(int subtree) {
    static const char *const folders[] = {"s-7", "s-7/supervisor", "s-7/worker"};
    static const char *const files[] = {"s-7/cgroup.subtree_control",
                                        "s-7/cgroup.kill",
                                        "s-7/memory.max",
                                        "s-7/memory.high",
                                        "s-7/memory.swap.max",
                                        "s-7/memory.zswap.max",
                                        "s-7/memory.oom.group",
                                        "s-7/pids.max",
                                        "s-7/cpu.max",
                                        "s-7/cpu.weight",
                                        "s-7/supervisor/cgroup.procs",
                                        "s-7/supervisor/memory.oom.group",
                                        "s-7/worker/cgroup.procs",
                                        "s-7/worker/memory.oom.group",
                                        "s-7/worker/memory.events"};

    for (size_t i = 0; i < COUNT_OF(folders); i++)
        put_folder(subtree, folders[i]);
    for (size_t i = 0; i < COUNT_OF(files); i++)
        put_file(subtree, files[i], "");
}

static struct cgroups all_enabled(const struct scratch *subtree) {
    return (struct cgroups){
        .own = -1,
        .subtree = subtree->fd,
        .controllers = {{.enabled = true}, {.enabled = true}, {.enabled = true}}};
}

static void limits_come_from_the_settings(void **state) {
    struct settings settings = {.session_memory = 1000,
                                .checkpoint_memory = 300,
                                .session_disk = 400,
                                .session_threads = 64,
                                .session_cpus = 2};
    struct cgroup_limits found = cgroups_limits(&settings, false);

    (void)state;
    assert_int_equal(found.memory, 1000 + 400 + 100 + (64 << 20));
    assert_int_equal(found.pids, 72);
    assert_int_equal(found.cpus, 2);
    assert_int_equal(cgroups_limits(&settings, true).memory, found.memory + 300);
}

static void a_sandbox_has_every_limit(void **state) {
    struct scratch subtree = scratch_new();
    struct cgroups cgroups = all_enabled(&subtree);

    (void)state;
    put_sandbox(subtree.fd);
    assert_int_equal(cgroups_make(&cgroups, 7, &limits, NULL), 0);
    assert_content(subtree.fd, "s-7/memory.max", "640000");
    assert_content(subtree.fd, "s-7/memory.high", "630000");
    assert_content(subtree.fd, "s-7/memory.swap.max", "0");
    assert_content(subtree.fd, "s-7/memory.zswap.max", "0");
    assert_content(subtree.fd, "s-7/pids.max", "72");
    assert_content(subtree.fd, "s-7/cpu.max", "300000 100000");
    assert_content(subtree.fd, "s-7/cpu.weight", "50");
    assert_content(subtree.fd, "s-7/cgroup.subtree_control", "+memory");
    /* A kill for memory leaves the supervisor and the worker's copy alone. */
    assert_content(subtree.fd, "s-7/worker/memory.oom.group", "");
    assert_content(subtree.fd, "s-7/supervisor/memory.oom.group", "");
    assert_content(subtree.fd, "s-7/memory.oom.group", "");
    scratch_remove(&subtree);
}

static void only_enabled_controllers_are_used(void **state) {
    struct scratch subtree = scratch_new();
    struct cgroups cgroups = {
        .own = -1, .subtree = subtree.fd, .controllers[CGROUP_PIDS].enabled = true};
    struct viv_error err;

    (void)state;
    put_sandbox(subtree.fd);
    assert_int_equal(cgroups_make(&cgroups, 7, &limits, NULL), 0);
    assert_content(subtree.fd, "s-7/pids.max", "72");
    assert_content(subtree.fd, "s-7/memory.max", "");
    assert_content(subtree.fd, "s-7/cpu.max", "");
    assert_content(subtree.fd, "s-7/cpu.weight", "");
    assert_content(subtree.fd, "s-7/cgroup.subtree_control", "");
    assert_content(subtree.fd, "s-7/worker/memory.oom.group", "");
    assert_fails(cgroups_open_worker_events(&cgroups, 7, &err), &err, VIV_UNAVAILABLE,
                 "memory controller");
    scratch_remove(&subtree);
}

static void processor_time_may_have_no_limit(void **state) {
    struct scratch subtree = scratch_new();
    struct cgroups cgroups = all_enabled(&subtree);
    struct cgroup_limits unlimited = limits;

    (void)state;
    put_sandbox(subtree.fd);
    unlimited.cpus = 0;
    assert_int_equal(cgroups_make(&cgroups, 7, &unlimited, NULL), 0);
    assert_content(subtree.fd, "s-7/cpu.max", "");
    assert_content(subtree.fd, "s-7/cpu.weight", "50");
    scratch_remove(&subtree);
}

static void a_kernel_may_have_no_swap(void **state) {
    struct scratch subtree = scratch_new();
    struct cgroups cgroups = all_enabled(&subtree);

    (void)state;
    put_sandbox(subtree.fd);
    assert_int_equal(unlinkat(subtree.fd, "s-7/memory.swap.max", 0), 0);
    assert_int_equal(unlinkat(subtree.fd, "s-7/memory.zswap.max", 0), 0);
    assert_int_equal(cgroups_make(&cgroups, 7, &limits, NULL), 0);
    assert_false(is_there(subtree.fd, "s-7/memory.swap.max"));
    assert_false(is_there(subtree.fd, "s-7/memory.zswap.max"));
    scratch_remove(&subtree);
}

/* A sandbox without a limit that was promised must not run. */
static void a_limit_that_cannot_be_set_is_a_failure(void **state) {
    struct scratch subtree = scratch_new();
    struct cgroups cgroups = all_enabled(&subtree);
    struct viv_error err;

    (void)state;
    assert_fails(cgroups_make(&cgroups, 7, &limits, &err), &err, VIV_SYSTEM,
                 "write memory.max of a cgroup");
    assert_false(is_there(subtree.fd, "s-7"));
    put_sandbox(subtree.fd);
    assert_int_equal(unlinkat(subtree.fd, "s-7/cpu.weight", 0), 0);
    assert_fails(cgroups_make(&cgroups, 7, &limits, &err), &err, VIV_SYSTEM,
                 "cpu.weight");
    scratch_remove(&subtree);
}

static void processes_get_in(void **state) {
    struct scratch subtree = scratch_new();
    struct cgroups cgroups = all_enabled(&subtree);

    (void)state;
    put_sandbox(subtree.fd);
    assert_int_equal(cgroups_enter_supervisor(&cgroups, 7, 4321, NULL), 0);
    assert_content(subtree.fd, "s-7/supervisor/cgroup.procs", "4321");
    CLEANUP(close_fd) int procs = cgroups_open_worker_procs(&cgroups, 7, NULL);
    assert_true(procs >= 0);
    assert_int_equal(session_cgroup_enter(procs, NULL), 0);
    assert_content(subtree.fd, "s-7/worker/cgroup.procs", "0");
    scratch_remove(&subtree);
}

static void a_group_that_is_not_there_is_a_failure(void **state) {
    struct scratch subtree = scratch_new();
    struct cgroups cgroups = all_enabled(&subtree);
    struct viv_error err;

    (void)state;
    assert_fails(cgroups_enter_supervisor(&cgroups, 7, 4321, &err), &err, VIV_SYSTEM,
                 "cgroup.procs");
    assert_fails(cgroups_open_worker_procs(&cgroups, 7, &err), &err, VIV_SYSTEM,
                 "cgroup.procs");
    assert_fails(cgroups_open_worker_events(&cgroups, 7, &err), &err, VIV_SYSTEM,
                 "memory.events");
    assert_fails(session_cgroup_enter(-1, &err), &err, VIV_SYSTEM, "move the worker");
    assert_int_equal(cgroups_remove(&cgroups, 7, NULL), 0);
    scratch_remove(&subtree);
}

static void kills_where_the_kernel_can(void **state) {
    struct scratch subtree = scratch_new();
    struct cgroups cgroups = all_enabled(&subtree);

    (void)state;
    put_sandbox(subtree.fd);
    assert_true(cgroups_kill(&cgroups, 7));
    assert_content(subtree.fd, "s-7/cgroup.kill", "1");
    assert_int_equal(unlinkat(subtree.fd, "s-7/cgroup.kill", 0), 0);
    assert_false(cgroups_kill(&cgroups, 7));
    assert_false(is_there(subtree.fd, "s-7/cgroup.kill"));
    scratch_remove(&subtree);
}

static void counts_kills_for_memory(void **state) {
    struct scratch subtree = scratch_new();
    struct cgroups cgroups = all_enabled(&subtree);
    struct viv_error err;
    uint64_t kills = 77;

    (void)state;
    put_sandbox(subtree.fd);
    CLEANUP(close_fd) int events = cgroups_open_worker_events(&cgroups, 7, NULL);
    assert_true(events >= 0);
    assert_fails(session_cgroup_oom_kills(events, &kills, &err), &err, VIV_SYSTEM,
                 "no oom_kill");
    put_file(subtree.fd, "s-7/worker/memory.events",
             "low 0\nhigh 12\nmax 34\noom 3\noom_kill 2\noom_group_kill 1\n");
    assert_int_equal(session_cgroup_oom_kills(events, &kills, NULL), 0);
    assert_int_equal(kills, 2);
    put_file(subtree.fd, "s-7/worker/memory.events",
             "oom 9\noom_group_kill 5\nxoom_kill 6\n\noom_kill 18446744073709551615\n");
    assert_int_equal(session_cgroup_oom_kills(events, &kills, NULL), 0);
    assert_true(kills == UINT64_MAX);
    assert_fails(session_cgroup_oom_kills(-1, &kills, &err), &err, VIV_SYSTEM,
                 "read memory.events");
    scratch_remove(&subtree);
}

/* ---- the keeper's part ---- */

/* A cgroup as the keeper finds it, and what the kernel would make in it. */
static struct scratch own_cgroup(const char *controllers) {
    struct scratch own = scratch_new();
    char name[64];

    put_file(own.fd, "cgroup.controllers", controllers);
    put_file(own.fd, "cgroup.subtree_control", "");
    put_file(own.fd, "cgroup.procs", "");
    put_file(own.fd, "cgroup.type", "domain\n");
    snprintf(name, sizeof name, "viv.%d", (int)getpid());
    put_folder(own.fd, name);
    snprintf(name, sizeof name, "viv.%d/viv.main", (int)getpid());
    put_folder(own.fd, name);
    snprintf(name, sizeof name, "viv.%d/viv.main/cgroup.procs", (int)getpid());
    put_file(own.fd, name, "");
    snprintf(name, sizeof name, "viv.%d/cgroup.subtree_control", (int)getpid());
    put_file(own.fd, name, "");
    return own;
}

static void the_keeper_moves_and_enables(void **state) {
    struct scratch own = own_cgroup("cpuset cpu io pids misc\n");
    struct cgroups cgroups;

    (void)state;
    put_file(own.fd, "cgroup.subtree_control", "cpu\n");
    assert_int_equal(cgroups_enter(&cgroups, dup(own.fd), NULL), 0);
    assert_content(cgroups.subtree, "viv.main/cgroup.procs", "0");
    assert_true(cgroups_enable(&cgroups));
    assert_false(cgroups.controllers[CGROUP_MEMORY].enabled);
    assert_non_null(
        strstr(cgroups.controllers[CGROUP_MEMORY].reason, "not given this controller"));
    assert_true(cgroups.controllers[CGROUP_PIDS].enabled);
    assert_true(cgroups.controllers[CGROUP_PIDS].added);
    assert_string_equal(cgroups.controllers[CGROUP_PIDS].reason, "");
    assert_true(cgroups.controllers[CGROUP_CPU].enabled);
    assert_content(cgroups.subtree, "cgroup.subtree_control", "+cpu");
    /* The kernel keeps a list; a plain file has what was written last. */
    assert_content(own.fd, "cgroup.subtree_control", "+cpu");
    cgroups_close(&cgroups, NULL);
    assert_int_equal(cgroups.subtree, -1);
    assert_int_equal(cgroups.own, -1);
    assert_content(own.fd, "cgroup.procs", "0");
    assert_content(own.fd, "cgroup.subtree_control", "-cpu");
    scratch_remove(&own);
}

/* What was on before stays on. */
static void leaves_what_was_enabled_before(void **state) {
    struct scratch own = own_cgroup("memory pids\n");
    struct cgroups cgroups;

    (void)state;
    put_file(own.fd, "cgroup.subtree_control", "memory pids\n");
    assert_int_equal(cgroups_enter(&cgroups, dup(own.fd), NULL), 0);
    assert_true(cgroups_enable(&cgroups));
    assert_true(cgroups.controllers[CGROUP_MEMORY].enabled);
    assert_false(cgroups.controllers[CGROUP_MEMORY].added);
    assert_content(cgroups.subtree, "cgroup.subtree_control", "+pids");
    cgroups_close(&cgroups, NULL);
    assert_content(own.fd, "cgroup.subtree_control", "memory pids\n");
    scratch_remove(&own);
}

static void others_in_the_cgroup_are_a_reason(void **state) {
    struct scratch own = own_cgroup("cpu memory pids\n");
    struct cgroups cgroups;

    (void)state;
    put_file(own.fd, "cgroup.procs", "4242\n");
    assert_int_equal(cgroups_enter(&cgroups, dup(own.fd), NULL), 0);
    assert_false(cgroups_enable(&cgroups));
    for (int kind = 0; kind < CGROUP_KINDS; kind++)
        assert_non_null(strstr(cgroups.controllers[kind].reason,
                               "other processes are in the cgroup"));
    assert_content(own.fd, "cgroup.subtree_control", "");
    cgroups_close(&cgroups, NULL);
    scratch_remove(&own);
}

static void finds_words_in_lists(void **state) {
    (void)state;
    assert_true(cgroup_list_has("cpuset cpu io\n", "cpu"));
    assert_true(cgroup_list_has("cpu\n", "cpu"));
    assert_true(cgroup_list_has("memory pids", "pids"));
    assert_false(cgroup_list_has("cpuset io\n", "cpu"));
    assert_false(cgroup_list_has("cpu\n", "cpuset"));
    assert_false(cgroup_list_has("\n", "cpu"));
    assert_false(cgroup_list_has("", "cpu"));
}

static void writing_makes_no_file(void **state) {
    struct scratch group = scratch_new();

    (void)state;
    assert_int_equal(cgroup_write(group.fd, "pids.max", "1"), -1);
    assert_false(is_there(group.fd, "pids.max"));
    scratch_remove(&group);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_come_from_the_settings),
        cmocka_unit_test(a_sandbox_has_every_limit),
        cmocka_unit_test(only_enabled_controllers_are_used),
        cmocka_unit_test(processor_time_may_have_no_limit),
        cmocka_unit_test(a_kernel_may_have_no_swap),
        cmocka_unit_test(a_limit_that_cannot_be_set_is_a_failure),
        cmocka_unit_test(processes_get_in),
        cmocka_unit_test(a_group_that_is_not_there_is_a_failure),
        cmocka_unit_test(kills_where_the_kernel_can),
        cmocka_unit_test(counts_kills_for_memory),
        cmocka_unit_test(the_keeper_moves_and_enables),
        cmocka_unit_test(leaves_what_was_enabled_before),
        cmocka_unit_test(others_in_the_cgroup_are_a_reason),
        cmocka_unit_test(finds_words_in_lists),
        cmocka_unit_test(writing_makes_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
