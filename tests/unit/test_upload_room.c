/* SPDX-License-Identifier: MIT */
/* An upload into a home that is full. */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <sys/mount.h>

#include "executor/supervisor/upload.h"
#include "tests/unit/child.h"
#include "tests/unit/scratch.h"

struct full {
    const char *options; /* of the tmpfs */
    int (*fill)(struct upload *upload);
    struct scratch place;
};

/* A tmpfs of the child's own in place of a home, in which `fill` finds no room. */
static int in_a_small_home(void *context) {
    const struct full *full = context;
    struct upload upload;

    child_unshare(CLONE_NEWNS, 0);
    REQUIRE(mount("home", full->place.path, "tmpfs", 0, full->options) == 0);
    int home = open(full->place.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(home >= 0);
    upload_init(&upload, home);
    int file = full->fill(&upload);
    REQUIRE(upload_commit(&upload) == -1);
    REQUIRE(upload.refused.reason == SESSION_NO_ROOM);
    REQUIRE(upload.refused.file == (uint32_t)file);
    upload_clear(&upload);
    /* All that was written aside is gone again. */
    REQUIRE(rmdir(full->place.path) == -1 && errno == EBUSY);
    DIR *folder = opendir(full->place.path);
    for (struct dirent *found; (found = readdir(folder));)
        REQUIRE(strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0);
    return 0;
}

static int fill_space(struct upload *upload) {
    char block[4096] = {0};

    upload_open(upload, SLICE("small"));
    upload_write(upload, SLICE("x"));
    upload_open(upload, SLICE("data/large"));
    for (int i = 0; i < 100; i++)
        upload_write(upload, (struct slice){block, sizeof block});
    upload_open(upload, SLICE("after"));
    upload_write(upload, SLICE("x"));
    return 1;
}

/* The root and the staging folder leave two inodes. */
static int fill_with_files(struct upload *upload) {
    upload_open(upload, SLICE("a"));
    upload_open(upload, SLICE("b"));
    upload_open(upload, SLICE("c"));
    return 2;
}

/* The folders of the second file find no inode. */
static int fill_with_folders(struct upload *upload) {
    upload_open(upload, SLICE("a/b/c"));
    return 0;
}

static int fill_before_the_first(struct upload *upload) {
    mkdirat(upload->home, "full", 0700);
    upload_open(upload, SLICE("a"));
    unlinkat(upload->home, "full", AT_REMOVEDIR);
    return 0;
}

static void a_full_home_refuses_all(void **state) {
    struct full cases[] = {
        {.options = "size=64k", .fill = fill_space},
        {.options = "nr_inodes=4", .fill = fill_with_files},
        {.options = "nr_inodes=4", .fill = fill_with_folders},
        {.options = "nr_inodes=2", .fill = fill_before_the_first},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        cases[i].place = scratch_new();
        int status = child_status(in_a_small_home, &cases[i]);
        scratch_remove(&cases[i].place);
        if (status == CHILD_CANNOT << 8)
            cannot("no tmpfs in a user namespace");
        assert_int_equal(status, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_home_refuses_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
