/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <sys/sysmacros.h>

#include "common/cleanup.h"
#include "executor/control.h"
#include "executor/session_root.h"
#include "executor/launcher/slot_tree.h"
#include "tests/unit/child.h"
#include "tests/unit/scratch.h"

/* A folder for slots, where the host's libraries can be linked to and not copied. */
static struct scratch slots_new(void) {
    struct scratch slots = {.path = "/var/tmp/viv-unit-XXXXXX"};
    struct stat status, host;

    if (geteuid() != 0)
        cannot("only root may link to what is not its own");
    assert_non_null(mkdtemp(slots.path));
    slots.fd = open(slots.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(slots.fd >= 0);
    assert_int_equal(fstat(slots.fd, &status) | stat("/usr/lib", &host), 0);
    if (status.st_dev != host.st_dev) {
        scratch_remove(&slots);
        cannot("/var/tmp is on another file system than /usr");
    }
    return slots;
}

static void make(const struct scratch *slots, const char *name) {
    struct viv_error err;

    if (slot_tree_make(slots->fd, name, &err))
        fail_msg("%s", err.message);
}

static void assert_shared(int slots, const char *path) {
    char first[128], second[128];
    struct stat a, b;

    snprintf(first, sizeof first, "0%s", path);
    snprintf(second, sizeof second, "1%s", path);
    assert_int_equal(fstatat(slots, first, &a, 0) | fstatat(slots, second, &b, 0), 0);
    assert_int_equal(a.st_ino, b.st_ino);
}

/* For nftw(3). */
static int assert_safe(const char *path, const struct stat *status, int flag,
                       struct FTW *place) {
    mode_t mode = status->st_mode;
    bool safe = status->st_uid == 0 && !(mode & (S_ISUID | S_ISGID));

    (void)flag;
    (void)place;
    if (S_ISDIR(mode))
        safe = safe && (mode & 07777) == 0755;
    else if (S_ISREG(mode))
        safe = safe && !(mode & 022);
    else if (S_ISCHR(mode))
        safe = safe && strstr(path, "/dev/") && (mode & 07777) == 0666;
    else
        safe = safe && S_ISLNK(mode);
    if (!safe)
        fail_msg("%s has the mode %o and the owner %u", path, mode, status->st_uid);
    return 0;
}

static void a_tree_has_all_and_none_of_it_can_be_written(void **state) {
    struct scratch slots = slots_new();
    char path[256];
    struct stat status, host;

    (void)state;
    umask(077);
    make(&slots, "0");
    assert_int_equal(umask(022), 077);
    snprintf(path, sizeof path, "%s/0", slots.path);
    assert_int_equal(nftw(path, assert_safe, 16, FTW_PHYS), 0);
    for (size_t i = 0; i < SESSION_ROOT_SHOWN; i++) {
        snprintf(path, sizeof path, "0%s", session_root_shown[i].path);
        assert_int_equal(is_there(slots.fd, path),
                         lstat(session_root_shown[i].path, &status) == 0);
    }
    for (size_t i = 0; i < SESSION_ROOT_HIDDEN; i++) {
        snprintf(path, sizeof path, "0%s", session_root_hidden[i]);
        assert_false(is_there(slots.fd, path));
    }
    for (size_t i = 0; i < SLOT_TREE_WRITABLE; i++) {
        snprintf(path, sizeof path, "0/%s", slot_tree_writable[i]);
        assert_true(is_there(slots.fd, path));
    }
    assert_int_equal(fstatat(slots.fd, "0/dev/null", &status, 0), 0);
    assert_int_equal(stat("/dev/null", &host), 0);
    assert_int_equal(status.st_rdev, host.st_rdev);
    assert_content(slots.fd, "0/etc/hosts", "127.0.0.1 localhost\n");
    assert_false(is_there(slots.fd, "0/usr/bin") || is_there(slots.fd, "0.new"));
    scratch_remove(&slots);
}

static void trees_share_their_files(void **state) {
    struct scratch slots = slots_new();

    (void)state;
    make(&slots, "0");
    make(&slots, "1");
    assert_shared(slots.fd, "/etc/hosts");
    assert_shared(slots.fd, "/etc/ld.so.cache");
    assert_int_equal(slot_tree_set_user(slots.fd, "1", 50004, NULL), 0);
    assert_content(slots.fd, "1/etc/passwd",
                   "earth:x:50004:50004::/home/earth:/nonexistent\n");
    assert_content(slots.fd, "1/etc/group", "earth:x:50004:\n");
    assert_content(slots.fd, "0/etc/group", "earth:x:1000:\n");
    assert_int_equal(slot_tree_set_user(slots.fd, "1", 50006, NULL), 0);
    assert_content(slots.fd, "1/etc/group", "earth:x:50006:\n");
    scratch_remove(&slots);
}

static void a_tree_that_is_there_is_taken_as_it_is(void **state) {
    struct scratch slots = slots_new();

    (void)state;
    put_folder(slots.fd, "0");
    put_folder(slots.fd, "0/dev");
    make(&slots, "0");
    assert_false(is_there(slots.fd, "0/usr") || is_there(slots.fd, "base"));
    assert_true(is_there(slots.fd, "0/dev/null"));
    scratch_remove(&slots);
}

static void what_an_interruption_left_is_made_anew(void **state) {
    struct scratch slots = slots_new();

    (void)state;
    put_folder(slots.fd, "base.new");
    put_file(slots.fd, "base.new/rest", "");
    put_folder(slots.fd, "0.new");
    put_file(slots.fd, "0.new/rest", "");
    make(&slots, "0");
    assert_true(is_there(slots.fd, "0/etc/hosts"));
    assert_false(is_there(slots.fd, "0/rest") || is_there(slots.fd, "0.new") ||
                 is_there(slots.fd, "base/rest") || is_there(slots.fd, "base.new"));
    scratch_remove(&slots);
}

static void another_version_of_the_host_is_noticed(void **state) {
    struct scratch slots = scratch_new();

    (void)state;
    assert_false(slot_trees_are_outdated(slots.fd));
    assert_int_equal(slot_trees_note(slots.fd, NULL), 0);
    assert_false(slot_trees_are_outdated(slots.fd));
    put_folder(slots.fd, "more");
    assert_int_equal(renameat(slots.fd, "made-for", slots.fd, "more/made-for"), 0);
    put_file(slots.fd, "made-for", "vivarium 0.0.0\n");
    assert_true(slot_trees_are_outdated(slots.fd));
    assert_int_equal(slot_trees_note(slots.fd, NULL), 0);
    assert_false(slot_trees_are_outdated(slots.fd));
    scratch_remove(&slots);
}

static void a_tree_is_removed(void **state) {
    struct scratch slots = scratch_new();
    struct viv_error err;

    (void)state;
    put_folder(slots.fd, "0");
    put_folder(slots.fd, "0/usr");
    put_file(slots.fd, "0/usr/file", "");
    assert_int_equal(slot_tree_remove(slots.fd, "0", NULL), 0);
    assert_false(is_there(slots.fd, "0"));
    assert_int_equal(slot_tree_remove(slots.fd, "0", NULL), 0);
    assert_int_equal(symlinkat("..", slots.fd, "1"), 0);
    assert_fails(slot_tree_remove(slots.fd, "1", &err), &err, VIV_SYSTEM, "open 1: ");
    scratch_remove(&slots);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_has_all_and_none_of_it_can_be_written),
        cmocka_unit_test(trees_share_their_files),
        cmocka_unit_test(a_tree_that_is_there_is_taken_as_it_is),
        cmocka_unit_test(what_an_interruption_left_is_made_anew),
        cmocka_unit_test(another_version_of_the_host_is_noticed),
        cmocka_unit_test(a_tree_is_removed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
