/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <dirent.h>

#include "common/cleanup.h"
#include "executor/launcher/empty_folder.h"
#include "tests/unit/child.h"
#include "tests/unit/other_users.h"
#include "tests/unit/scratch.h"

#define SOMEBODY other_users

static int names_in(int folder) {
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fdopendir(fd);
    int count = -2; /* . and .. */

    assert_non_null(stream);
    while (readdir(stream))
        count++;
    closedir(stream);
    return count;
}

static void assert_emptied(int folder) {
    struct viv_error err = {0};

    if (empty_folder(folder, &err))
        fail_msg("%s", err.message);
    assert_int_equal(names_in(folder), 0);
}

/* Folders in one another; returns the innermost one. */
static int make_deep(int folder, int depth) {
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; i < depth; i++) {
        put_folder(fd, "deep");
        int next = openat(fd, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(next >= 0);
        close(fd);
        fd = next;
    }
    return fd;
}

static void an_empty_folder_stays(void **state) {
    struct scratch scratch = scratch_new();

    (void)state;
    assert_emptied(scratch.fd);
    assert_true(is_there(AT_FDCWD, scratch.path));
    scratch_remove(&scratch);
}

/* Many names, deep and broad; the descriptor may stand anywhere. */
static void everything_goes(void **state) {
    struct scratch scratch = scratch_new();
    char name[64];
    int innermost = make_deep(scratch.fd, 1000);

    (void)state;
    for (int i = 0; i < 8000; i++) {
        snprintf(name, sizeof name, "file %d", i);
        put_file(i % 2 ? scratch.fd : innermost, name, "");
    }
    close(innermost);
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "folder %d", i);
        put_folder(scratch.fd, name);
        snprintf(name, sizeof name, "folder %d/inside", i);
        put_file(scratch.fd, name, "");
    }
    lseek(scratch.fd, 0, SEEK_END);
    assert_emptied(scratch.fd);
    scratch_remove(&scratch);
}

static void names_and_kinds_do_not_matter(void **state) {
    struct scratch scratch = scratch_new();
    char longest[256];

    (void)state;
    memset(longest, '\xff', 255);
    longest[255] = '\0';
    put_file(scratch.fd, longest, "");
    put_file(scratch.fd, "\n", "");
    put_file(scratch.fd, "-rf", "");
    put_file(scratch.fd, "...", "");
    put_folder(scratch.fd, "..\xfe");
    put_folder(scratch.fd, " ");
    assert_int_equal(mkfifoat(scratch.fd, "fifo", 0600), 0);
    assert_int_equal(linkat(scratch.fd, "\n", scratch.fd, "second", 0), 0);
    assert_emptied(scratch.fd);
    scratch_remove(&scratch);
}

static void no_link_is_followed(void **state) {
    struct scratch scratch = scratch_new(), other = scratch_new();
    struct stat status;

    (void)state;
    put_file(other.fd, "precious", "kept");
    assert_int_equal(fchmod(other.fd, 0750), 0);
    assert_int_equal(symlinkat(other.path, scratch.fd, "folder"), 0);
    assert_int_equal(symlinkat("folder/precious", scratch.fd, "file"), 0);
    assert_int_equal(symlinkat("nowhere", scratch.fd, "broken"), 0);
    assert_int_equal(symlinkat(".", scratch.fd, "self"), 0);
    assert_emptied(scratch.fd);
    assert_content(other.fd, "precious", "kept");
    assert_int_equal(fstat(other.fd, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0750);
    scratch_remove(&scratch);
    scratch_remove(&other);
}

/* Root is asked for no permission: as somebody who is. */
static int empties_what_has_no_permissions(void *context) {
    const struct scratch *scratch = context;
    struct viv_error err;

    if (geteuid() == 0) {
        REQUIRE(fchown(scratch->fd, SOMEBODY, SOMEBODY) == 0);
        REQUIRE(setresgid(SOMEBODY, SOMEBODY, SOMEBODY) == 0);
        REQUIRE(setresuid(SOMEBODY, SOMEBODY, SOMEBODY) == 0);
    }
    REQUIRE(mkdirat(scratch->fd, "a", 0700) == 0);
    REQUIRE(mkdirat(scratch->fd, "a/b", 0700) == 0);
    REQUIRE(mknodat(scratch->fd, "a/b/file", S_IFREG, 0) == 0);
    REQUIRE(mkdirat(scratch->fd, "a/c", 0) == 0);
    REQUIRE(fchmodat(scratch->fd, "a/b", 0500, 0) == 0);
    REQUIRE(fchmodat(scratch->fd, "a", 0, 0) == 0);
    REQUIRE(fchmod(scratch->fd, 0) == 0);
    if (empty_folder(scratch->fd, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return CHILD_FAILED;
    }
    return 0;
}

static void missing_permissions_are_no_obstacle(void **state) {
    struct scratch scratch = scratch_new();

    (void)state;
    in_child(empties_what_has_no_permissions, &scratch);
    assert_int_equal(names_in(scratch.fd), 0);
    scratch_remove(&scratch);
}

static int fails_on_what_is_not_its_own(void *context) {
    const struct scratch *scratch = context;
    struct viv_error err;

    REQUIRE(fchown(scratch->fd, SOMEBODY, SOMEBODY) == 0);
    REQUIRE(mkdirat(scratch->fd, "secret-name", 0700) == 0);
    REQUIRE(mknodat(scratch->fd, "secret-name/file", S_IFREG, 0) == 0);
    REQUIRE(setresuid(SOMEBODY, SOMEBODY, SOMEBODY) == 0);
    REQUIRE(empty_folder(scratch->fd, &err) == -1 && err.code == VIV_SYSTEM);
    REQUIRE(!strstr(err.message, "secret"));
    return 0;
}

static void what_cannot_be_removed_is_a_failure(void **state) {
    (void)state;
    if (geteuid() != 0)
        cannot("only root may become somebody else");
    struct scratch scratch = scratch_new();
    in_child(fails_on_what_is_not_its_own, &scratch);
    assert_true(is_there(scratch.fd, "secret-name/file"));
    scratch_remove(&scratch);
}

/* A process that runs `body` again and again until it is ended. */
static pid_t start_racer(void (*body)(const int folders[2]), const int folders[2]) {
    pid_t racer = fork();

    assert_true(racer >= 0);
    if (racer == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            body(folders);
    }
    return racer;
}

static void end_racer(pid_t racer) {
    assert_int_equal(kill(racer, SIGKILL), 0);
    assert_int_equal(waitpid(racer, NULL, 0), racer);
}

static void keep_making_files(const int folders[2]) {
    int fd = openat(folders[0], "new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
}

static void it_ends_while_files_keep_appearing(void **state) {
    struct scratch scratch = scratch_new();
    const int folders[2] = {scratch.fd, -1};
    pid_t racer = start_racer(keep_making_files, folders);

    (void)state;
    for (int i = 0; i < 200; i++)
        empty_folder(scratch.fd, NULL);
    end_racer(racer);
    assert_emptied(scratch.fd);
    scratch_remove(&scratch);
}

static void keep_moving_a_folder(const int folders[2]) {
    renameat(folders[0], "deep", folders[1], "deep");
    renameat(folders[1], "deep", folders[0], "deep");
}

/* The way up from a folder that was moved leads to where it must not go. */
static void it_stays_inside_while_a_folder_is_moved(void **state) {
    struct scratch source = scratch_new(), scratch = scratch_new(), other = scratch_new();
    const int folders[2] = {scratch.fd, other.fd};
    pid_t racer = start_racer(keep_moving_a_folder, folders);

    (void)state;
    put_file(other.fd, "precious", "kept");
    for (int i = 0; i < 100; i++) {
        close(make_deep(source.fd, 50));
        renameat(source.fd, "deep", scratch.fd, "deep");
        empty_folder(source.fd, NULL); /* where the name was taken */
        empty_folder(scratch.fd, NULL);
    }
    end_racer(racer);
    assert_content(other.fd, "precious", "kept");
    assert_emptied(scratch.fd);
    scratch_remove(&scratch);
    assert_emptied(other.fd);
    scratch_remove(&other);
    scratch_remove(&source);
}

static void descriptors_are_returned(void **state) {
    struct scratch scratch = scratch_new();
    int before = open_descriptors();

    (void)state;
    close(make_deep(scratch.fd, 100));
    assert_emptied(scratch.fd);
    assert_int_equal(open_descriptors(), before);
    scratch_remove(&scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_folder_stays),
        cmocka_unit_test(everything_goes),
        cmocka_unit_test(names_and_kinds_do_not_matter),
        cmocka_unit_test(no_link_is_followed),
        cmocka_unit_test(missing_permissions_are_no_obstacle),
        cmocka_unit_test(what_cannot_be_removed_is_a_failure),
        cmocka_unit_test(it_ends_while_files_keep_appearing),
        cmocka_unit_test(it_stays_inside_while_a_folder_is_moved),
        cmocka_unit_test(descriptors_are_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
