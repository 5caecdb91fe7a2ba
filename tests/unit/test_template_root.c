/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <seccomp.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "executor/control.h"
#include "executor/session_root.h"
#include "executor/launcher/template_root.h"
#include "tests/unit/child.h"

static bool refused(int result, int expected) { return result < 0 && errno == expected; }

/* What the default filter of containers does. */
static void refuse_pivot_root(void) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

    REQUIRE(filter);
    REQUIRE(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(pivot_root), 0) ==
            0);
    REQUIRE(seccomp_load(filter) == 0);
    seccomp_release(filter);
}

/* Which of the paths that are shown are there. */
static unsigned shown_paths(void) {
    struct stat status;
    unsigned found = 0;

    for (size_t i = 0; i < SESSION_ROOT_SHOWN; i++)
        found |= (unsigned)(lstat(session_root_shown[i].path, &status) == 0) << i;
    return found;
}

/* How many folders that are hidden have something in them. */
static int hidden_folders_with_content(void) {
    int count = 0;

    for (size_t i = 0; i < SESSION_ROOT_HIDDEN; i++) {
        DIR *stream = opendir(session_root_hidden[i]);
        int names = 0;
        while (stream && readdir(stream))
            names++;
        count += names > 2; /* . and .. */
        if (stream)
            closedir(stream);
    }
    return count;
}

static int lives_in_the_root(void *context) {
    const bool *without_pivot_root = context;
    struct viv_error err;
    struct stat root, above;
    struct statvfs mounted;
    char host_file[64];
    unsigned shown = shown_paths();

    REQUIRE(hidden_folders_with_content() > 0);
    snprintf(host_file, sizeof host_file, "/tmp/viv-unit-%d", (int)getpid());
    int host = open(host_file, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    REQUIRE(host >= 0);
    unlink(host_file);
    child_unshare(CLONE_NEWNS, 0);
    if (*without_pivot_root)
        refuse_pivot_root();
    if (template_root_enter(&err)) {
        fprintf(stderr, "%s\n", err.message);
        return CHILD_FAILED;
    }
    REQUIRE(shown_paths() == shown);
    REQUIRE(hidden_folders_with_content() == 0);
    REQUIRE(access("/lib64/.", X_OK) == 0);
    REQUIRE(access(SESSION_HOME, F_OK) == 0 && access("/dev/null", W_OK) == 0);
    REQUIRE(refused(access("/usr/bin", F_OK), ENOENT));
    REQUIRE(refused(access("/.empty", F_OK), ENOENT));
    REQUIRE(refused(mkdir("/new", 0755), EROFS));
    REQUIRE(statvfs("/etc/ld.so.cache", &mounted) == 0 && mounted.f_flag & ST_RDONLY);
    REQUIRE(stat("/", &root) == 0 && stat("/../..", &above) == 0);
    REQUIRE(root.st_dev == above.st_dev && root.st_ino == above.st_ino);
    /* Open descriptors stay usable, and sessions get namespaces of their own. */
    REQUIRE(write(host, "x", 1) == 1);
    REQUIRE(unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0);
    return 0;
}

static void the_root_shows_python_and_nothing_of_the_host(void **state) {
    bool without_pivot_root = false;

    (void)state;
    in_child(lives_in_the_root, &without_pivot_root);
}

static void without_pivot_root_it_is_the_same(void **state) {
    bool without_pivot_root = true;

    (void)state;
    in_child(lives_in_the_root, &without_pivot_root);
}

static void each_folder_is_after_its_parent(void **state) {
    (void)state;
    for (size_t i = 0; i < SESSION_ROOT_DIRECTORIES; i++) {
        const char *path = session_root_directories[i];
        size_t parent = (size_t)(strrchr(path, '/') - path);
        bool found = parent == 0;
        for (size_t k = 0; k < i; k++)
            found = found || (strlen(session_root_directories[k]) == parent &&
                              strncmp(session_root_directories[k], path, parent) == 0);
        assert_true(found);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_root_shows_python_and_nothing_of_the_host),
        cmocka_unit_test(without_pivot_root_it_is_the_same),
        cmocka_unit_test(each_folder_is_after_its_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
