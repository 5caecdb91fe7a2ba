/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "common/cleanup.h"
#include "executor/launcher/link_tree.h"
#include "tests/unit/child.h"
#include "tests/unit/scratch.h"

struct pair {
    struct scratch from;
    struct scratch to;
};

static struct pair pair_new(void) {
    umask(022);
    return (struct pair){scratch_new(), scratch_new()};
}

static void pair_remove(struct pair *pair) {
    scratch_remove(&pair->from);
    scratch_remove(&pair->to);
}

static void put_mode(int folder, const char *name, mode_t mode) {
    put_file(folder, name, name);
    assert_int_equal(fchmodat(folder, name, mode, 0), 0);
}

static void show(struct link_tree *tree, const struct pair *pair, const char *path) {
    struct viv_error err;

    if (link_tree_show(tree, pair->from.fd, path, pair->to.fd, &err))
        fail_msg("%s", err.message);
}

static void files_get_a_second_name(void **state) {
    struct pair pair = pair_new();
    struct link_tree tree = {.host = true};
    struct stat status, shown;

    (void)state;
    put_folder(pair.from.fd, "usr");
    put_folder(pair.from.fd, "usr/lib");
    put_folder(pair.from.fd, "usr/lib/python");
    put_file(pair.from.fd, "usr/lib/python/os.py", "pass");
    put_file(pair.from.fd, "usr/lib/other", "");
    assert_int_equal(symlinkat("../nowhere", pair.from.fd, "usr/lib/python/link"), 0);
    show(&tree, &pair, "/usr/lib/python");
    assert_int_equal(fstatat(pair.from.fd, "usr/lib/python/os.py", &status, 0), 0);
    assert_int_equal(fstatat(pair.to.fd, "usr/lib/python/os.py", &shown, 0), 0);
    assert_int_equal(status.st_ino, shown.st_ino);
    char content[32] = {0};
    assert_int_equal(readlinkat(pair.to.fd, "usr/lib/python/link", content, 31), 10);
    assert_string_equal(content, "../nowhere");
    assert_int_equal(fstatat(pair.to.fd, "usr", &shown, 0), 0);
    assert_int_equal(shown.st_mode, S_IFDIR | 0755);
    assert_false(is_there(pair.to.fd, "usr/lib/other"));
    assert_false(tree.copied);
    pair_remove(&pair);
}

static void one_file_or_link_is_shown_alone(void **state) {
    struct pair pair = pair_new();
    struct link_tree tree = {.host = true, .libraries = true};

    (void)state;
    put_folder(pair.from.fd, "etc");
    put_file(pair.from.fd, "etc/mime.types", "x");
    put_file(pair.from.fd, "etc/shadow", "");
    assert_int_equal(symlinkat("usr/lib", pair.from.fd, "lib"), 0);
    show(&tree, &pair, "/etc/mime.types");
    show(&tree, &pair, "/lib");
    show(&tree, &pair, "/etc/not-there");
    show(&tree, &pair, "/not-there/at-all");
    assert_content(pair.to.fd, "etc/mime.types", "x");
    assert_true(is_there(pair.to.fd, "lib"));
    assert_false(is_there(pair.to.fd, "etc/shadow"));
    assert_false(is_there(pair.to.fd, "not-there"));
    pair_remove(&pair);
}

static void what_is_dangerous_or_private_is_passed_over(void **state) {
    struct pair pair = pair_new();
    struct link_tree tree = {.host = true};

    (void)state;
    put_folder(pair.from.fd, "d");
    put_mode(pair.from.fd, "d/good", 0644);
    put_mode(pair.from.fd, "d/program", 0755);
    put_mode(pair.from.fd, "d/world-writable", 0646);
    put_mode(pair.from.fd, "d/group-writable", 0664);
    put_mode(pair.from.fd, "d/setuid", 04755);
    put_mode(pair.from.fd, "d/setgid", 02755);
    put_mode(pair.from.fd, "d/private", 0640);
    assert_int_equal(mkfifoat(pair.from.fd, "d/fifo", 0644), 0);
    put_folder(pair.from.fd, "d/locked");
    put_file(pair.from.fd, "d/locked/file", "");
    assert_int_equal(fchmodat(pair.from.fd, "d/locked", 0700, 0), 0);
    put_folder(pair.from.fd, "d/open");
    put_file(pair.from.fd, "d/open/file", "");
    assert_int_equal(fchmodat(pair.from.fd, "d/open", 01777, 0), 0);
    put_folder(pair.from.fd, "d/empty");
    show(&tree, &pair, "/d");
    const char *const absent[] = {"d/world-writable", "d/group-writable", "d/setuid",
                                  "d/setgid",         "d/private",        "d/fifo",
                                  "d/locked",         "d/open",           "d/empty"};
    for (size_t i = 0; i < COUNT_OF(absent); i++)
        if (is_there(pair.to.fd, absent[i]))
            fail_msg("%s is there", absent[i]);
    assert_true(is_there(pair.to.fd, "d/good") && is_there(pair.to.fd, "d/program"));
    pair_remove(&pair);
}

static void what_is_hidden_is_passed_over(void **state) {
    static const char *const hidden[] = {"/d/venv", "/d/e/file"};
    struct pair pair = pair_new();
    struct link_tree tree = {
        .host = true, .hidden = hidden, .hidden_count = COUNT_OF(hidden)};

    (void)state;
    put_folder(pair.from.fd, "d");
    put_folder(pair.from.fd, "d/venv");
    put_file(pair.from.fd, "d/venv/file", "");
    put_folder(pair.from.fd, "d/e");
    put_file(pair.from.fd, "d/e/file", "");
    put_file(pair.from.fd, "d/e/file2", "");
    show(&tree, &pair, "/d");
    assert_false(is_there(pair.to.fd, "d/venv"));
    assert_false(is_there(pair.to.fd, "d/e/file"));
    assert_true(is_there(pair.to.fd, "d/e/file2"));
    pair_remove(&pair);
}

static void of_libraries_only_shared_objects(void **state) {
    struct pair pair = pair_new();
    struct link_tree tree = {.host = true, .libraries = true};

    (void)state;
    put_folder(pair.from.fd, "lib");
    put_file(pair.from.fd, "lib/libc.so.6", "");
    put_file(pair.from.fd, "lib/libc.a", "");
    assert_int_equal(symlinkat("libc.so.6", pair.from.fd, "lib/libc.so"), 0);
    assert_int_equal(symlinkat("libc.a", pair.from.fd, "lib/libold.a"), 0);
    put_folder(pair.from.fd, "lib/blas");
    put_file(pair.from.fd, "lib/blas/libblas.so.3", "");
    put_folder(pair.from.fd, "lib/perl");
    put_file(pair.from.fd, "lib/perl/module.pm", "");
    show(&tree, &pair, "/lib");
    assert_true(is_there(pair.to.fd, "lib/libc.so.6"));
    assert_true(is_there(pair.to.fd, "lib/libc.so"));
    assert_true(is_there(pair.to.fd, "lib/blas/libblas.so.3"));
    assert_false(is_there(pair.to.fd, "lib/libc.a"));
    assert_false(is_there(pair.to.fd, "lib/libold.a"));
    assert_false(is_there(pair.to.fd, "lib/perl"));
    pair_remove(&pair);
}

/* A tree of ours, into one that has some of it already. */
static void a_whole_tree_is_added(void **state) {
    struct pair pair = pair_new();
    struct link_tree tree = {0};

    (void)state;
    put_folder(pair.from.fd, "etc");
    put_file(pair.from.fd, "etc/hosts", "new");
    put_file(pair.from.fd, "etc/group", "new");
    put_folder(pair.from.fd, "empty");
    put_mode(pair.from.fd, "private", 0600);
    put_folder(pair.to.fd, "etc");
    put_file(pair.to.fd, "etc/group", "old");
    show(&tree, &pair, "/");
    assert_content(pair.to.fd, "etc/hosts", "new");
    assert_content(pair.to.fd, "etc/group", "old");
    assert_true(is_there(pair.to.fd, "empty"));
    assert_true(is_there(pair.to.fd, "private"));
    pair_remove(&pair);
}

static void another_file_system_gets_copies(void **state) {
    struct pair pair = {scratch_new(), {.path = "/dev/shm/viv-unit-XXXXXX"}};
    struct link_tree tree = {.host = true};
    struct stat from, to;

    (void)state;
    if (!mkdtemp(pair.to.path))
        cannot("/dev/shm cannot be written");
    pair.to.fd = open(pair.to.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(fstat(pair.from.fd, &from) | fstat(pair.to.fd, &to), 0);
    if (from.st_dev == to.st_dev) {
        pair_remove(&pair);
        cannot("/dev/shm is on the file system of /tmp");
    }
    const struct timespec times[2] = {{1000000000, 0}, {1100000000, 123456789}};
    put_folder(pair.from.fd, "d");
    put_mode(pair.from.fd, "d/module.py", 0755);
    assert_int_equal(symlinkat("module.py", pair.from.fd, "d/link.py"), 0);
    assert_int_equal(utimensat(pair.from.fd, "d/module.py", times, 0), 0);
    show(&tree, &pair, "/d");
    assert_true(tree.copied);
    assert_content(pair.to.fd, "d/module.py", "d/module.py");
    char content[32] = {0};
    assert_int_equal(readlinkat(pair.to.fd, "d/link.py", content, 31), 9);
    assert_string_equal(content, "module.py");
    assert_int_equal(fstatat(pair.to.fd, "d/module.py", &to, 0), 0);
    assert_int_equal(to.st_mode, S_IFREG | 0755);
    assert_int_equal(to.st_mtim.tv_sec, 1100000000);
    assert_int_equal(to.st_mtim.tv_nsec, 123456789);
    pair_remove(&pair);
}

static void descriptors_are_returned(void **state) {
    struct pair pair = pair_new();
    struct link_tree tree = {0};
    int before = open_descriptors();

    (void)state;
    put_folder(pair.from.fd, "a");
    put_folder(pair.from.fd, "a/b");
    put_file(pair.from.fd, "a/b/file", "");
    show(&tree, &pair, "/a/b");
    show(&tree, &pair, "/");
    put_file(pair.to.fd, "in-the-way", "");
    put_folder(pair.from.fd, "in-the-way");
    assert_int_equal(link_tree_show(&tree, pair.from.fd, "/", pair.to.fd, NULL), -1);
    assert_int_equal(open_descriptors(), before);
    pair_remove(&pair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_get_a_second_name),
        cmocka_unit_test(one_file_or_link_is_shown_alone),
        cmocka_unit_test(what_is_dangerous_or_private_is_passed_over),
        cmocka_unit_test(what_is_hidden_is_passed_over),
        cmocka_unit_test(of_libraries_only_shared_objects),
        cmocka_unit_test(a_whole_tree_is_added),
        cmocka_unit_test(another_file_system_gets_copies),
        cmocka_unit_test(descriptors_are_returned),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
