/* SPDX-License-Identifier: MIT */
#include "tests/unit/session_folders_bench.h"

#include <sys/mount.h>

#include "executor/confine.h"
#include "executor/control.h"
#include "tests/unit/child.h"
#include "tests/unit/other_users.h"

#define MANY     1000000
#define MEGABYTE (UINT64_C(1) << 20)
#define SOME     (UINT64_C(256) << 10) /* for folders, which take blocks, too */

static struct slot slot; /* of the running test */

static int set_up(void **state) {
    (void)state;
    slot = slot_new();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    slot_remove(&slot);
    return 0;
}

static struct session_use used_of(uint64_t most_inodes) {
    int before = open_descriptors();
    struct session_use use =
        session_folders_use(slot.folders, ISOLATION_MINIMAL, most_inodes);

    assert_int_equal(open_descriptors(), before);
    return use;
}

static struct session_use used(void) { return used_of(MANY); }

static void assert_use(uint64_t bytes, uint64_t inodes) {
    struct session_use use = used();

    assert_int_equal(use.inodes, inodes);
    assert_in_range(use.bytes, bytes, bytes + SOME);
}

static void the_home_becomes_the_current_folder(void **state) {
    (void)state;
    put_file(AT_FDCWD, "file", "content");
    assert_content(slot.scratch.fd, "home/file", "content");
    assert_use(0, 1);
}

static void nothing_is_in_empty_folders(void **state) {
    (void)state;
    struct session_use use = used();
    assert_int_equal(use.inodes, 0);
    assert_int_equal(use.bytes, 0);
}

static void all_three_are_counted(void **state) {
    (void)state;
    for (int i = 0; i < SESSION_FOLDER_COUNT; i++)
        fill(slot.folders[i], "file", MEGABYTE);
    assert_use(3 * MEGABYTE, 3);
    /* Again, and again: each look begins at the front. */
    assert_use(3 * MEGABYTE, 3);
    assert_int_equal(unlinkat(slot.folders[SESSION_TMP_FOLDER], "file", 0), 0);
    assert_use(2 * MEGABYTE, 2);
}

static void names_of_every_kind_are_counted(void **state) {
    int home = slot.folders[SESSION_HOME_FOLDER];

    (void)state;
    fill(home, ".hidden", MEGABYTE);
    fill(home, "...", MEGABYTE);
    put_folder(home, ".folder");
    fill(home, ".folder/..file", MEGABYTE);
    assert_int_equal(mkfifoat(home, "fifo", 0600), 0);
    assert_use(3 * MEGABYTE, 5);
}

static void what_a_file_has_on_the_disk_counts(void **state) {
    int home = slot.folders[SESSION_HOME_FOLDER];

    (void)state;
    put_file(home, "sparse", "x");
    assert_int_equal(truncate("sparse", 1 << 30), 0);
    assert_use(0, 1);
}

static void a_file_of_many_names_counts_once(void **state) {
    int home = slot.folders[SESSION_HOME_FOLDER], tmp = slot.folders[SESSION_TMP_FOLDER];

    (void)state;
    fill(home, "one", 4 * MEGABYTE);
    put_folder(home, "folder");
    assert_int_equal(linkat(home, "one", home, "two", 0), 0);
    assert_int_equal(linkat(home, "one", home, "folder/three", 0), 0);
    assert_int_equal(linkat(home, "one", tmp, "four", 0), 0);
    assert_use(4 * MEGABYTE - 4 * 512, 5);
}

/* What is behind them is somebody else's, or counted where it is. */
static void links_are_not_followed(void **state) {
    int home = slot.folders[SESSION_HOME_FOLDER];

    (void)state;
    fill(slot.scratch.fd, "outside", MEGABYTE);
    put_folder(slot.scratch.fd, "other");
    fill(slot.scratch.fd, "other/outside", MEGABYTE);
    assert_int_equal(symlinkat("../outside", home, "file"), 0);
    assert_int_equal(symlinkat("../other", home, "folder"), 0);
    assert_int_equal(symlinkat(".", home, "round"), 0);
    assert_int_equal(symlinkat("nowhere", home, "dangling"), 0);
    assert_use(0, 4);
}

/* Returns a descriptor of the innermost one. */
static int put_folders(int folder, int depth) {
    int current = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; i < depth; i++) {
        put_folder(current, "d");
        int next = openat(current, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(current);
        current = next;
    }
    return current;
}

static void folders_in_folders_are_counted(void **state) {
    (void)state;
    int inner = put_folders(slot.folders[SESSION_TMP_FOLDER], 127);
    fill(inner, "file", MEGABYTE);
    close(inner);
    struct session_use use = used();
    assert_int_equal(use.inodes, 128);
    assert_true(use.bytes >= MEGABYTE && use.bytes <= MEGABYTE + 128 * 65536);
    /* The way back up was found. */
    fill(slot.folders[SESSION_TMP_FOLDER], "other", MEGABYTE);
    assert_true(used().bytes >= 2 * MEGABYTE);
}

/* Deeper than descriptors reach, with names on the way down that are read on the way
 * up. */
static void far_deeper_ones_are_counted_too(void **state) {
    enum { DEPTH = 1500 };

    (void)state;
    int current = fcntl(slot.folders[SESSION_SHM_FOLDER], F_DUPFD_CLOEXEC, 0);
    for (int i = 0; i < DEPTH; i++) {
        put_folder(current, "d");
        put_file(current, "a", "");
        put_file(current, "z", "");
        int next = openat(current, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(current);
        current = next;
    }
    fill(current, "file", MEGABYTE);
    close(current);
    int before = open_descriptors();
    struct session_use use = used();
    assert_int_equal(use.inodes, 3 * DEPTH + 1);
    assert_true(use.bytes >= MEGABYTE);
    assert_int_equal(used_of(2000).inodes, 2001);
    assert_int_equal(open_descriptors(), before);
}

static void counting_ends_at_the_limit(void **state) {
    char name[16];

    (void)state;
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "%d", i);
        put_file(slot.folders[i % SESSION_FOLDER_COUNT], name, "");
    }
    assert_int_equal(used_of(101).inodes, 100);
    assert_int_equal(used_of(100).inodes, 100);
    assert_int_equal(used_of(99).inodes, 100);
    assert_int_equal(used_of(10).inodes, 11);
    assert_int_equal(used_of(0).inodes, 1);
}

static void a_slot_without_its_folders_is_not_opened(void **state) {
    int folders[SESSION_FOLDER_COUNT];
    struct viv_error err;

    (void)state;
    assert_int_equal(fchdir(slot.scratch.fd), 0);
    assert_int_equal(unlinkat(slot.scratch.fd, "tmp", AT_REMOVEDIR), 0);
    assert_fails(session_folders_open(folders, ISOLATION_MINIMAL, &err), &err, VIV_SYSTEM,
                 "open tmp");
    close(folders[SESSION_HOME_FOLDER]);
    /* Nor one with a link in place of one. */
    assert_int_equal(symlinkat("/", slot.scratch.fd, "tmp"), 0);
    assert_fails(session_folders_open(folders, ISOLATION_MINIMAL, &err), &err, VIV_SYSTEM,
                 "open tmp");
    close(folders[SESSION_HOME_FOLDER]);
}

/* ---- what its owner may not read ---- */

/* As the user of the session: root may read everything. */
static int use_of_hidden(void *context) {
    static const mode_t modes[] = {0, 0011, 0100, 0200, 0300, 0400, 01600};
    struct stat status;

    (void)context;
    if (geteuid() == 0)
        REQUIRE(confine_become_user(other_users, other_users, NULL) == 0 &&
                confine_to_capabilities(0, NULL) == 0);
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        REQUIRE(chmod("hidden", modes[i]) == 0);
        struct session_use use =
            session_folders_use(slot.folders, ISOLATION_CONFINED, MANY);
        REQUIRE(use.inodes == 2 && use.bytes >= MEGABYTE);
        REQUIRE(stat("hidden", &status) == 0);
        REQUIRE((status.st_mode & 07777) == (modes[i] | 0500));
        /* Where a link could take its place, it is left as it is. */
        REQUIRE(chmod("hidden", modes[i]) == 0);
        use = session_folders_use(slot.folders, ISOLATION_MINIMAL, MANY);
        REQUIRE(use.inodes > MANY);
        REQUIRE(stat("hidden", &status) == 0);
        REQUIRE((status.st_mode & 07777) == modes[i]);
    }
    REQUIRE(chmod("hidden", 0500) == 0);
    for (int tier = ISOLATION_MINIMAL; tier <= ISOLATION_CONFINED; tier++)
        for (int i = 0; i < SESSION_FOLDER_COUNT; i++) {
            REQUIRE(fchmod(slot.folders[i], 0) == 0);
            struct session_use use =
                session_folders_use(slot.folders, (enum isolation_tier)tier, MANY);
            REQUIRE(use.inodes == 2 && use.bytes >= MEGABYTE);
        }
    return 0;
}

static void folders_that_their_owner_may_not_read_are_counted(void **state) {
    static const char *const names[] = {"hidden/file", "hidden", ".", "../tmp", "../shm"};

    (void)state;
    put_folder(AT_FDCWD, "hidden");
    fill(AT_FDCWD, "hidden/file", MEGABYTE);
    for (size_t i = 0; geteuid() == 0 && i < COUNT_OF(names); i++)
        assert_int_equal(chown(names[i], other_users, other_users), 0);
    if (geteuid() == 0)
        assert_int_equal(chmod(slot.scratch.path, 0755), 0);
    in_child(use_of_hidden, NULL);
}

/* ---- with namespaces ---- */

static void write_megabyte(int folder, const char *name) {
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    REQUIRE(fd >= 0 && ftruncate(fd, MEGABYTE) == 0);
    REQUIRE(posix_fallocate(fd, 0, MEGABYTE) == 0);
    close(fd);
}

static int use_of_mounts(void *context) {
    int folders[SESSION_FOLDER_COUNT], fd;

    (void)context;
    child_unshare(CLONE_NEWUSER | CLONE_NEWNS, SESSION_UID);
    REQUIRE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    REQUIRE(mount("test", "/home", "tmpfs", 0, NULL) == 0);
    REQUIRE(mkdir(SESSION_HOME, 0700) == 0);
    REQUIRE(session_folders_mount(8 * MEGABYTE, 100, NULL) == 0);
    REQUIRE(session_folders_open(folders, ISOLATION_ISOLATED, NULL) == 0);

    struct session_use empty = session_folders_use(folders, ISOLATION_ISOLATED, 0);
    REQUIRE(empty.bytes == 0 && empty.inodes == SESSION_FOLDER_COUNT);
    write_megabyte(AT_FDCWD, "file");
    write_megabyte(folders[SESSION_TMP_FOLDER], "file");
    REQUIRE(access(SESSION_HOME "/file", F_OK) == 0 && access("/tmp/file", F_OK) == 0);
    /* One without a name takes its room as well. */
    fd = open("nameless", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    REQUIRE(posix_fallocate(fd, 0, MEGABYTE) == 0 && unlink("nameless") == 0);
    struct session_use use = session_folders_use(folders, ISOLATION_ISOLATED, 0);
    REQUIRE(use.bytes == 3 * MEGABYTE && use.inodes == SESSION_FOLDER_COUNT + 3);
    /* The kernel bounds each of them. */
    REQUIRE(posix_fallocate(fd, 0, 8 * MEGABYTE) == ENOSPC);
    fd = openat(folders[SESSION_TMP_FOLDER], "file", O_WRONLY | O_CLOEXEC);
    REQUIRE(posix_fallocate(fd, 0, 3 * MEGABYTE) == ENOSPC);
    return 0;
}

static void of_mounts_the_kernel_is_asked(void **state) {
    (void)state;
    in_child(use_of_mounts, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_home_becomes_the_current_folder),
        TEST(nothing_is_in_empty_folders),
        TEST(all_three_are_counted),
        TEST(names_of_every_kind_are_counted),
        TEST(what_a_file_has_on_the_disk_counts),
        TEST(a_file_of_many_names_counts_once),
        TEST(links_are_not_followed),
        TEST(folders_in_folders_are_counted),
        TEST(far_deeper_ones_are_counted_too),
        TEST(counting_ends_at_the_limit),
        TEST(a_slot_without_its_folders_is_not_opened),
        TEST(folders_that_their_owner_may_not_read_are_counted),
        cmocka_unit_test(of_mounts_the_kernel_is_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
