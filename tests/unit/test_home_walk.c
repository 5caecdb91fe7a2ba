/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "executor/supervisor/home_walk.h"
#include "tests/unit/scratch.h"

#define SEEN_MAX 256

/* What a walk found, sorted by path. */
struct seen {
    char *paths[SEEN_MAX];
    bool too_deep[SEEN_MAX];
    size_t count;
    size_t stop_after; /* 0: never */
};

static int see(const struct home_entry *entry, void *context) {
    struct seen *seen = context;
    struct stat status;

    assert_true(seen->count < SEEN_MAX);
    assert_int_equal(fstatat(entry->folder, entry->name, &status, AT_SYMLINK_NOFOLLOW),
                     0);
    assert_int_equal(status.st_ino, entry->status->st_ino);
    seen->too_deep[seen->count] = entry->too_deep;
    seen->paths[seen->count++] = viv_xstrdup(entry->path);
    return seen->count == seen->stop_after ? 7 : 0;
}

static int by_path(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static struct seen walk(int home) {
    struct seen seen = {0};

    assert_int_equal(home_walk(home, see, &seen), 0);
    qsort(seen.paths, seen.count, sizeof *seen.paths, by_path);
    return seen;
}

static void seen_cleanup(struct seen *seen) {
    for (size_t i = 0; i < seen->count; i++)
        free(seen->paths[i]);
}

static void finds_files_in_folders(void **state) {
    struct scratch home = scratch_new();

    (void)state;
    put_folder(home.fd, "data");
    put_folder(home.fd, "data/deep");
    put_folder(home.fd, "empty");
    put_file(home.fd, "b.txt", "b");
    put_file(home.fd, "data/a.txt", "a");
    put_file(home.fd, "data/deep/c.txt", "");
    CLEANUP(seen) struct seen seen = walk(home.fd);
    assert_int_equal(seen.count, 3);
    assert_string_equal(seen.paths[0], "b.txt");
    assert_string_equal(seen.paths[1], "data/a.txt");
    assert_string_equal(seen.paths[2], "data/deep/c.txt");
    scratch_remove(&home);
}

static void finds_nothing_in_an_empty_home(void **state) {
    struct scratch home = scratch_new();

    (void)state;
    CLEANUP(seen) struct seen seen = walk(home.fd);
    assert_int_equal(seen.count, 0);
    scratch_remove(&home);
}

static void make_socket(const struct scratch *home, const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", home->path, name);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
}

static void passes_over_what_is_no_file(void **state) {
    struct scratch home = scratch_new();

    (void)state;
    put_folder(home.fd, "real");
    put_file(home.fd, "real/file", "x");
    assert_int_equal(symlinkat("real/file", home.fd, "link"), 0);
    assert_int_equal(symlinkat("real", home.fd, "link-to-folder"), 0);
    assert_int_equal(symlinkat("/etc", home.fd, "link-out"), 0);
    assert_int_equal(symlinkat(".", home.fd, "link-to-itself"), 0);
    assert_int_equal(symlinkat("nowhere", home.fd, "broken"), 0);
    assert_int_equal(mkfifoat(home.fd, "fifo", 0666), 0);
    make_socket(&home, "socket");
    CLEANUP(seen) struct seen seen = walk(home.fd);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.paths[0], "real/file");
    scratch_remove(&home);
}

static void passes_over_hidden_names(void **state) {
    struct scratch home = scratch_new();

    (void)state;
    put_file(home.fd, ".hidden", "x");
    put_file(home.fd, "..also", "x");
    put_folder(home.fd, ".config");
    put_file(home.fd, ".config/file", "x");
    put_folder(home.fd, "__pycache__");
    put_file(home.fd, "__pycache__/m.pyc", "x");
    put_folder(home.fd, "p");
    put_folder(home.fd, "p/__pycache__");
    put_file(home.fd, "p/__pycache__/m.pyc", "x");
    put_file(home.fd, "__pycache", "x");
    put_file(home.fd, "a.b", "x");
    CLEANUP(seen) struct seen seen = walk(home.fd);
    assert_int_equal(seen.count, 2);
    assert_string_equal(seen.paths[0], "__pycache");
    assert_string_equal(seen.paths[1], "a.b");
    scratch_remove(&home);
}

/* Every byte that a name may have, each in a name of its own. */
static void takes_names_of_any_bytes(void **state) {
    struct scratch home = scratch_new();
    char name[3] = "x";
    bool found[256] = {false};

    (void)state;
    for (int byte = 1; byte < 256; byte++) {
        name[1] = (char)byte;
        if (byte != '/')
            put_file(home.fd, name, "x");
    }
    CLEANUP(seen) struct seen seen = walk(home.fd);
    assert_int_equal(seen.count, 254);
    for (size_t i = 0; i < seen.count; i++) {
        assert_int_equal(strlen(seen.paths[i]), 2);
        found[(unsigned char)seen.paths[i][1]] = true;
    }
    for (int byte = 1; byte < 256; byte++)
        assert_int_equal(found[byte], byte != '/');
    scratch_remove(&home);
}

/* Makes folders "d" inside each other and returns the innermost. A path of them would be
 * too long for one call. */
static int make_tower(int home, int height) {
    int folder = fcntl(home, F_DUPFD_CLOEXEC, 0);

    for (int i = 0; i < height; i++) {
        put_folder(folder, "d");
        int next = openat(folder, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(folder);
        folder = next;
    }
    return folder;
}

/* Takes it down again: nftw(3) would need a path that is too long. */
static void remove_tower(int home, int height) {
    while (height > 0) {
        int folder = fcntl(home, F_DUPFD_CLOEXEC, 0);
        for (int i = 1; i < height; i++) {
            int next = openat(folder, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            close(folder);
            folder = next;
        }
        assert_int_equal(unlinkat(folder, "d", AT_REMOVEDIR), 0);
        close(folder);
        height--;
    }
}

static void enters_folders_up_to_the_depth(void **state) {
    struct scratch home = scratch_new();

    (void)state;
    int inner = make_tower(home.fd, HOME_DEPTH_MAX);
    put_file(inner, "file", "x");
    close(inner);
    CLEANUP(seen) struct seen seen = walk(home.fd);
    assert_int_equal(seen.count, 1);
    assert_false(seen.too_deep[0]);
    assert_int_equal(strlen(seen.paths[0]), 2 * HOME_DEPTH_MAX + strlen("file"));
    scratch_remove(&home);
}

static void tells_of_a_folder_that_is_too_deep(void **state) {
    struct scratch home = scratch_new();
    const int height = 1000;

    (void)state;
    int inner = make_tower(home.fd, height);
    put_file(inner, "file", "x");
    CLEANUP(seen) struct seen seen = walk(home.fd);
    assert_int_equal(seen.count, 1);
    assert_true(seen.too_deep[0]);
    assert_int_equal(strlen(seen.paths[0]), 2 * HOME_DEPTH_MAX + strlen("d"));
    assert_int_equal(unlinkat(inner, "file", 0), 0);
    close(inner);
    remove_tower(home.fd, height);
    scratch_remove(&home);
}

static void leaves_no_descriptor_open(void **state) {
    struct scratch home = scratch_new();
    struct seen seen = {.stop_after = 1};

    (void)state;
    int inner = make_tower(home.fd, 30);
    put_file(inner, "file", "x");
    close(inner);
    int before = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(before);
    assert_int_equal(home_walk(home.fd, see, &seen), 7);
    seen_cleanup(&seen);
    seen = walk(home.fd);
    seen_cleanup(&seen);
    int after = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(after);
    assert_int_equal(before, after);
    scratch_remove(&home);
}

/* ---- snapshots ---- */

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
    assert_int_equal(fstatat(home.fd, "file", &after, 0), 0);
    assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof before.st_mtim);
    assert_memory_equal(&before.st_ctim, &after.st_ctim, sizeof before.st_ctim);
    scratch_remove(&home);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_files_in_folders),
        cmocka_unit_test(finds_nothing_in_an_empty_home),
        cmocka_unit_test(passes_over_what_is_no_file),
        cmocka_unit_test(passes_over_hidden_names),
        cmocka_unit_test(takes_names_of_any_bytes),
        cmocka_unit_test(enters_folders_up_to_the_depth),
        cmocka_unit_test(tells_of_a_folder_that_is_too_deep),
        cmocka_unit_test(leaves_no_descriptor_open),
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
