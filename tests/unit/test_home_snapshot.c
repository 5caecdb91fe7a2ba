/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "common/cleanup.h"
#include "executor/supervisor/home_walk.h"
#include "tests/unit/scratch.h"

/* How many files of the home a snapshot does not have, as they are now. */
static int count_changed(const struct home_entry *entry, void *context) {
    int *changed = ((void **)context)[1];

    *changed += !home_snapshot_has(((void **)context)[0], entry);
    return 0;
}

static int changed_since(struct home_snapshot *before, int home) {
    int changed = 0;
    void *context[2] = {before, &changed};

    assert_int_equal(home_walk(home, count_changed, context), 0);
    return changed;
}

static void home_snapshot_cleanup(struct home_snapshot *snapshot) {
    home_snapshot_clear(snapshot);
}

static struct home_snapshot snapshot_of(int home) {
    struct home_snapshot snapshot;

    assert_int_equal(home_snapshot_take(&snapshot, home, NULL), 0);
    return snapshot;
}

static void a_snapshot_knows_what_did_not_change(void **state) {
    struct scratch home = scratch_new();
    char name[16];

    (void)state;
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "f%d", i);
        put_file(home.fd, name, "x");
    }
    CLEANUP(home_snapshot) struct home_snapshot before = snapshot_of(home.fd);
    assert_int_equal(before.count, 200);
    assert_int_equal(changed_since(&before, home.fd), 0);
    assert_int_equal(unlinkat(home.fd, "f7", 0), 0);
    assert_int_equal(changed_since(&before, home.fd), 0);
    put_file(home.fd, "new", "x");
    assert_int_equal(changed_since(&before, home.fd), 1);
    scratch_remove(&home);
}

static void an_empty_snapshot_has_nothing(void **state) {
    struct scratch home = scratch_new();

    (void)state;
    CLEANUP(home_snapshot) struct home_snapshot before = snapshot_of(home.fd);
    assert_int_equal(before.count, 0);
    put_file(home.fd, "new", "x");
    assert_int_equal(changed_since(&before, home.fd), 1);
    scratch_remove(&home);
}

/* Time stamps have the resolution of a tick, and a test is quicker than that. */
static void a_file_rewritten_in_the_same_tick_has_changed(void **state) {
    struct scratch home = scratch_new();

    (void)state;
    for (int round = 0; round < 500; round++) {
        put_file(home.fd, "file", "aaaa");
        CLEANUP(home_snapshot) struct home_snapshot before = snapshot_of(home.fd);
        assert_int_equal(changed_since(&before, home.fd), 0);
        put_file(home.fd, "file", "bbbb");
        assert_int_equal(changed_since(&before, home.fd), 1);
    }
    scratch_remove(&home);
}

static void set_modified(int home, const char *name, int64_t seconds) {
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = seconds}};

    assert_int_equal(utimensat(home, name, times, 0), 0);
}

/* The code can set the time of a modification as it likes. */
static void a_modification_time_set_by_hand_hides_nothing(void **state) {
    const int64_t moments[] = {0, 1, 1000000000, 4000000000};
    struct scratch home = scratch_new();

    (void)state;
    for (size_t i = 0; i < COUNT_OF(moments); i++) {
        put_file(home.fd, "file", "aaaa");
        set_modified(home.fd, "file", moments[i]);
        usleep(30 * 1000); /* more than a tick, so that the change has another time */
        CLEANUP(home_snapshot) struct home_snapshot before = snapshot_of(home.fd);
        assert_int_equal(changed_since(&before, home.fd), 0);
        usleep(30 * 1000);
        put_file(home.fd, "file", "bbbb");
        set_modified(home.fd, "file", moments[i]);
        assert_int_equal(changed_since(&before, home.fd), 1);
    }
    scratch_remove(&home);
}

static void a_file_put_in_the_place_of_another_has_changed(void **state) {
    struct scratch home = scratch_new();

    (void)state;
    put_file(home.fd, "file", "aaaa");
    put_file(home.fd, "other", "bbbb");
    CLEANUP(home_snapshot) struct home_snapshot before = snapshot_of(home.fd);
    assert_int_equal(renameat(home.fd, "other", home.fd, "file"), 0);
    assert_int_equal(changed_since(&before, home.fd), 1);
    scratch_remove(&home);
}

static void a_moved_file_is_new_where_it_came_to(void **state) {
    struct scratch home = scratch_new();

    (void)state;
    put_file(home.fd, "file", "aaaa");
    CLEANUP(home_snapshot) struct home_snapshot before = snapshot_of(home.fd);
    assert_int_equal(renameat(home.fd, "file", home.fd, "elsewhere"), 0);
    assert_int_equal(changed_since(&before, home.fd), 1);
    scratch_remove(&home);
}

/* Only what the supervisor has to touch is touched: a file that is long there keeps its
 * times. */
static void an_old_file_is_left_as_it_is(void **state) {
    struct scratch home = scratch_new();
    struct stat before, after;

    (void)state;
    put_file(home.fd, "file", "aaaa");
    usleep(50 * 1000);
    assert_int_equal(fstatat(home.fd, "file", &before, 0), 0);
    CLEANUP(home_snapshot) struct home_snapshot snapshot = snapshot_of(home.fd);
    assert_int_equal(snapshot.count, 1);
    assert_int_equal(fstatat(home.fd, "file", &after, 0), 0);
    assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
    assert_memory_equal(&before.st_ctim, &after.st_ctim, sizeof before.st_ctim);
    scratch_remove(&home);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_snapshot_knows_what_did_not_change),
        cmocka_unit_test(an_empty_snapshot_has_nothing),
        cmocka_unit_test(a_file_rewritten_in_the_same_tick_has_changed),
        cmocka_unit_test(a_modification_time_set_by_hand_hides_nothing),
        cmocka_unit_test(a_file_put_in_the_place_of_another_has_changed),
        cmocka_unit_test(a_moved_file_is_new_where_it_came_to),
        cmocka_unit_test(an_old_file_is_left_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
