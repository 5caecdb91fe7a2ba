/* SPDX-License-Identifier: MIT */
#include "tests/unit/session_folders_bench.h"

#include "common/clock.h"
#include "executor/supervisor/disk_watch.h"

#define MEGABYTE (UINT64_C(1) << 20)

/* A session that may have 8 MB and 40 files in its home: 10 and 50 with its /tmp. */
struct bench {
    struct settings settings;
    struct slot slot;
    struct supervisor_descriptors own;
    struct disk_watch watch;
    int home, tmp;
};

static struct bench *bench; /* of the running test */

static int set_up(void **state) {
    (void)state;
    bench = viv_xcalloc(1, sizeof *bench);
    settings_init(&bench->settings);
    bench->settings.session_disk = 8 * MEGABYTE;
    bench->settings.session_inodes = 40;
    bench->slot = slot_new();
    bench->own.tier = ISOLATION_MINIMAL;
    memcpy(bench->own.folders, bench->slot.folders, sizeof bench->own.folders);
    bench->home = bench->own.folders[SESSION_HOME_FOLDER];
    bench->tmp = bench->own.folders[SESSION_TMP_FOLDER];
    disk_watch_init(&bench->watch, &bench->own, &bench->settings);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    slot_remove(&bench->slot);
    settings_clear(&bench->settings);
    free(bench);
    return 0;
}

static enum disk_verdict look(void) { return disk_watch_look(&bench->watch, true); }

static void put_files(int first, int last) {
    char name[16];

    for (int i = first; i < last; i++) {
        snprintf(name, sizeof name, "f%d", i);
        put_file(i % 2 ? bench->home : bench->tmp, name, "");
    }
}

static void there_is_room_up_to_the_limit(void **state) {
    (void)state;
    assert_int_equal(look(), DISK_HAS_ROOM);
    fill(bench->home, "large", 7 * MEGABYTE);
    fill(bench->tmp, "large", 2 * MEGABYTE);
    assert_int_equal(look(), DISK_HAS_ROOM);
    assert_in_range(disk_watch_bytes(&bench->watch), 9 * MEGABYTE, 10 * MEGABYTE);
    fill(bench->tmp, "larger", 2 * MEGABYTE);
    assert_int_equal(look(), DISK_FULL);
}

static void so_many_names_may_be_there(void **state) {
    (void)state;
    put_files(0, 50);
    assert_int_equal(look(), DISK_HAS_ROOM);
    put_files(50, 51);
    assert_int_equal(look(), DISK_FULL);
}

/* Or a session that is full could not be worked in any more, not even to remove files. */
static void what_was_there_at_the_last_stop_is_accepted(void **state) {
    (void)state;
    fill(bench->home, "large", 11 * MEGABYTE);
    assert_int_equal(look(), DISK_FULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(look(), DISK_HAS_ROOM);
    fill(bench->home, "large", MEGABYTE);
    assert_int_equal(look(), DISK_FULL);
    assert_int_equal(look(), DISK_HAS_ROOM);
    put_files(0, 1);
    assert_int_equal(look(), DISK_FULL);
    assert_int_equal(look(), DISK_HAS_ROOM);
}

/* What was accepted is of no use once there was room again. */
static void room_that_was_made_counts(void **state) {
    (void)state;
    fill(bench->home, "large", 15 * MEGABYTE);
    assert_int_equal(look(), DISK_FULL);
    assert_int_equal(look(), DISK_HAS_ROOM);
    assert_int_equal(unlinkat(bench->home, "large", 0), 0);
    assert_int_equal(look(), DISK_HAS_ROOM);
    fill(bench->home, "large", 11 * MEGABYTE);
    assert_int_equal(look(), DISK_FULL);
}

static void twice_the_limit_is_the_end(void **state) {
    (void)state;
    fill(bench->home, "large", 19 * MEGABYTE);
    assert_int_equal(look(), DISK_FULL);
    assert_int_equal(look(), DISK_HAS_ROOM);
    fill(bench->tmp, "large", 2 * MEGABYTE);
    assert_int_equal(look(), DISK_FAR_TOO_FULL);
    assert_int_equal(look(), DISK_FAR_TOO_FULL);
}

static void twice_as_many_names_are_the_end(void **state) {
    (void)state;
    put_files(0, 100);
    assert_int_equal(look(), DISK_FULL);
    put_files(100, 101);
    assert_int_equal(look(), DISK_FAR_TOO_FULL);
}

static void assert_next_look(bool running, int64_t least_ms, int64_t most_ms) {
    viv_time before = viv_now();

    disk_watch_look(&bench->watch, running);
    assert_true(bench->watch.look_at >= before + least_ms * VIV_MS);
    assert_true(bench->watch.look_at <= viv_now() + most_ms * VIV_MS);
}

static void it_looks_often_while_code_runs(void **state) {
    (void)state;
    assert_true(bench->watch.look_at <= viv_now());
    assert_next_look(true, 100, 1900);
    assert_next_look(false, 1000, 10000);
}

static void where_the_kernel_bounds_the_use_it_need_not_look(void **state) {
    (void)state;
    bench->own.tier = ISOLATION_ISOLATED;
    disk_watch_init(&bench->watch, &bench->own, &bench->settings);
    assert_true(bench->watch.look_at == VIV_TIME_NEVER);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(there_is_room_up_to_the_limit),
        TEST(so_many_names_may_be_there),
        TEST(what_was_there_at_the_last_stop_is_accepted),
        TEST(room_that_was_made_counts),
        TEST(twice_the_limit_is_the_end),
        TEST(twice_as_many_names_are_the_end),
        TEST(it_looks_often_while_code_runs),
        TEST(where_the_kernel_bounds_the_use_it_need_not_look),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
