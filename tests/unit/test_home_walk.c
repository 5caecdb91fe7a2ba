/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "executor/supervisor/home_walk.h"
#include "tests/unit/child.h"
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

/* Takes it down again, with a "file" on each level: nftw(3) would need a path that is too
 * long. */
static void remove_tower(int home, const char *name, int height) {
    for (; height > 0; height--) {
        int folder = fcntl(home, F_DUPFD_CLOEXEC, 0);
        for (int i = 1; i < height; i++) {
            int next = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            close(folder);
            folder = next;
        }
        unlinkat(folder, "file", 0);
        assert_int_equal(unlinkat(folder, name, AT_REMOVEDIR), 0);
        close(folder);
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
    remove_tower(home.fd, "d", height);
    scratch_remove(&home);
}

/* Where paths get too long for one call, before the depth is reached. */
static void tells_of_a_folder_whose_path_is_too_long(void **state) {
    struct scratch home = scratch_new();
    char name[NAME_MAX + 1], below[PATH_MAX];

    (void)state;
    memset(name, 'n', NAME_MAX);
    name[NAME_MAX] = '\0';
    int folder = fcntl(home.fd, F_DUPFD_CLOEXEC, 0);
    for (int i = 0; i < 20; i++) {
        put_folder(folder, name);
        put_file(folder, "file", "x");
        int next = openat(folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        close(folder);
        folder = next;
    }
    close(folder);
    CLEANUP(seen) struct seen seen = walk(home.fd);
    int deep = 0;
    for (size_t i = 0; i < seen.count; i++) {
        deep += seen.too_deep[i];
        assert_true(strlen(seen.paths[i]) < PATH_MAX);
        snprintf(below, sizeof below, "%s", seen.paths[i]);
        assert_true(is_there(home.fd, below));
    }
    assert_int_equal(deep, 1);
    assert_int_equal(seen.count, 16 + 1); /* files above it, and itself */
    remove_tower(home.fd, name, 20);
    scratch_remove(&home);
}

#define FOLDERS 40

struct moving {
    int home;
    int count;           /* of files seen */
    char order[820][16]; /* folders in which they were seen */
    bool moves;          /* each file on to the folder that is walked next */
};

static int see_moving(const struct home_entry *entry, void *context) {
    struct moving *moving = context;
    char to[64];

    snprintf(moving->order[moving->count++], sizeof *moving->order, "%.*s",
             (int)strcspn(entry->path, "/"), entry->path);
    for (int i = 0; moving->moves && i + 1 < FOLDERS; i++) {
        if (strncmp(entry->path, moving[1].order[i], strcspn(entry->path, "/")) != 0)
            continue;
        snprintf(to, sizeof to, "%s/%s", moving[1].order[i + 1], entry->name);
        REQUIRE(renameat(moving->home, entry->path, moving->home, to) == 0);
        break;
    }
    return 0;
}

/* A file in each of the folders, moved ahead whenever it is seen, is seen in all that
 * come: 820 times in all, were there no bound. */
static int walk_what_moves(void *context) {
    static struct moving moving[2]; /* the walk in which they move, and one before */
    char name[16];

    child_unshare(CLONE_NEWNS, 0);
    REQUIRE(mount("home", context, "tmpfs", 0, "nr_inodes=100") == 0);
    int home = open(context, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < FOLDERS; i++) {
        snprintf(name, sizeof name, "d%02d", i);
        REQUIRE(mkdirat(home, name, 0755) == 0);
        snprintf(name, sizeof name, "d%02d/f%02d", i, i);
        int file = openat(home, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
        REQUIRE(file >= 0 && close(file) == 0);
    }
    REQUIRE(home_walk(home, see_moving, &moving[1]) == 0);
    REQUIRE(moving[1].count == FOLDERS);
    moving[0].home = home;
    moving[0].moves = true;
    REQUIRE(home_walk(home, see_moving, &moving[0]) == 0);
    REQUIRE(moving[0].count > FOLDERS && moving[0].count < 404);
    return 0;
}

static void ends_although_folders_are_moved(void **state) {
    struct scratch place = scratch_new();

    (void)state;
    in_child(walk_what_moves, place.path);
    scratch_remove(&place);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_files_in_folders),
        cmocka_unit_test(finds_nothing_in_an_empty_home),
        cmocka_unit_test(passes_over_what_is_no_file),
        cmocka_unit_test(passes_over_hidden_names),
        cmocka_unit_test(takes_names_of_any_bytes),
        cmocka_unit_test(enters_folders_up_to_the_depth),
        cmocka_unit_test(tells_of_a_folder_that_is_too_deep),
        cmocka_unit_test(tells_of_a_folder_whose_path_is_too_long),
        cmocka_unit_test(ends_although_folders_are_moved),
        cmocka_unit_test(leaves_no_descriptor_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
