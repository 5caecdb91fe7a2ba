/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "executor/supervisor/upload.h"
#include "tests/unit/child.h"
#include "tests/unit/scratch.h"

struct bench {
    struct scratch home;
    struct upload upload;
};

static struct bench bench_new(void) {
    struct bench bench = {.home = scratch_new()};

    upload_init(&bench.upload, bench.home.fd);
    return bench;
}

static void bench_cleanup(struct bench *bench) {
    upload_clear(&bench->upload);
    scratch_remove(&bench->home);
}

static void add(struct bench *bench, const char *name, const char *content) {
    upload_open(&bench->upload, slice_of(name));
    upload_write(&bench->upload, slice_of(content));
}

/* The names in the home, hidden ones too, sorted and divided by spaces. */
static const char *listing(const struct bench *bench) {
    static char text[1024];
    struct dirent **names;
    int count = scandir(bench->home.path, &names, NULL, alphasort);

    assert_true(count >= 2);
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i]->d_name, ".") != 0 && strcmp(names[i]->d_name, "..") != 0) {
            strcat(text, names[i]->d_name);
            strcat(text, " ");
        }
        free(names[i]);
    }
    free(names);
    return text;
}

static void assert_commits(struct bench *bench) {
    assert_int_equal(upload_commit(&bench->upload), 0);
    upload_clear(&bench->upload);
}

static void assert_refuses(struct bench *bench, enum session_refusal reason,
                           uint32_t file) {
    assert_int_equal(upload_commit(&bench->upload), -1);
    assert_true(bench->upload.failed);
    assert_int_equal(bench->upload.refused.reason, reason);
    assert_int_equal(bench->upload.refused.file, file);
    upload_clear(&bench->upload);
}

static void an_empty_upload_touches_nothing(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    assert_commits(&bench);
    assert_string_equal(listing(&bench), "");
}

static void puts_files_in_place(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();
    struct stat status;

    (void)state;
    add(&bench, "a.txt", "first");
    add(&bench, "data/in/b.txt", "second");
    add(&bench, "data/c.txt", "");
    assert_commits(&bench);
    assert_string_equal(listing(&bench), "a.txt data ");
    assert_content(bench.home.fd, "a.txt", "first");
    assert_content(bench.home.fd, "data/in/b.txt", "second");
    assert_content(bench.home.fd, "data/c.txt", "");
    assert_int_equal(fstatat(bench.home.fd, "a.txt", &status, 0), 0);
    assert_int_equal(status.st_nlink, 1);
}

static void nothing_is_in_place_before_the_commit(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    add(&bench, "data/a.txt", "x");
    assert_false(is_there(bench.home.fd, "data"));
    assert_memory_equal(listing(&bench), ".upload-", 8);
    upload_clear(&bench.upload);
    assert_string_equal(listing(&bench), "");
}

static void content_comes_in_pieces(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    add(&bench, "a", "one ");
    upload_write(&bench.upload, SLICE(""));
    upload_write(&bench.upload, SLICE("two "));
    upload_write(&bench.upload, SLICE("three"));
    assert_commits(&bench);
    assert_content(bench.home.fd, "a", "one two three");
}

static void replaces_what_was_there(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    put_file(bench.home.fd, "a", "a longer text");
    assert_int_equal(linkat(bench.home.fd, "a", bench.home.fd, "other", 0), 0);
    add(&bench, "a", "new");
    assert_commits(&bench);
    assert_content(bench.home.fd, "a", "new");
    assert_content(bench.home.fd, "other", "a longer text");
}

static void of_the_same_name_twice_the_last_wins(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    add(&bench, "d/a", "first");
    add(&bench, "d/b", "between");
    add(&bench, "d/a", "last");
    assert_commits(&bench);
    assert_content(bench.home.fd, "d/a", "last");
    assert_content(bench.home.fd, "d/b", "between");
}

/* A link at the name itself is replaced; what it points to stays as it is. */
static void replaces_a_link_and_not_its_target(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    put_file(bench.home.fd, "target", "kept");
    assert_int_equal(symlinkat("target", bench.home.fd, "a"), 0);
    assert_int_equal(symlinkat("/etc", bench.home.fd, "b"), 0);
    assert_int_equal(mkfifoat(bench.home.fd, "c", 0666), 0);
    add(&bench, "a", "new");
    add(&bench, "b", "new");
    add(&bench, "c", "new");
    assert_commits(&bench);
    assert_content(bench.home.fd, "target", "kept");
    assert_content(bench.home.fd, "a", "new");
    assert_content(bench.home.fd, "b", "new");
    assert_content(bench.home.fd, "c", "new");
}

/* ---- all or none ---- */

static void a_folder_in_the_way_stops_all(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    put_file(bench.home.fd, "a", "as it was");
    put_folder(bench.home.fd, "folder");
    put_file(bench.home.fd, "folder/kept", "x");
    add(&bench, "a", "new");
    add(&bench, "made/for/b", "new");
    add(&bench, "folder", "new");
    assert_refuses(&bench, SESSION_IN_THE_WAY, 2);
    assert_string_equal(listing(&bench), "a folder ");
    assert_content(bench.home.fd, "a", "as it was");
    assert_content(bench.home.fd, "folder/kept", "x");
}

static void a_file_in_the_way_stops_all(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    put_file(bench.home.fd, "data", "as it was");
    add(&bench, "new", "x");
    add(&bench, "data/b", "x");
    assert_refuses(&bench, SESSION_IN_THE_WAY, 1);
    assert_string_equal(listing(&bench), "data ");
    assert_content(bench.home.fd, "data", "as it was");
}

/* At each component of a path, to a folder inside and to one outside of the home. */
static void a_link_on_the_way_stops_all(void **state) {
    static const char *const links[] = {"d", "d/d", "d/d/d"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(links); i++)
        for (int outside = 0; outside < 2; outside++) {
            CLEANUP(bench) struct bench bench = bench_new();
            struct scratch elsewhere = scratch_new();
            put_folder(bench.home.fd, "real");
            for (size_t above = 0; above < i; above++)
                put_folder(bench.home.fd, links[above]);
            const char *target = outside ? elsewhere.path : "real";
            assert_int_equal(symlinkat(target, bench.home.fd, links[i]), 0);
            add(&bench, "d/d/d/file", "x");
            assert_refuses(&bench, SESSION_IN_THE_WAY, 0);
            assert_int_equal(rmdir(elsewhere.path), 0); /* nothing was put there */
            close(elsewhere.fd);
            assert_int_equal(unlinkat(bench.home.fd, "real", AT_REMOVEDIR), 0);
        }
}

static void a_file_that_is_a_folder_of_another_stops_all(void **state) {
    static const char *const names[2][2] = {{"a", "a/b"}, {"a/b", "a"}};

    (void)state;
    for (int i = 0; i < 2; i++) {
        CLEANUP(bench) struct bench bench = bench_new();
        add(&bench, names[i][0], "x");
        add(&bench, names[i][1], "x");
        assert_int_equal(upload_commit(&bench.upload), -1);
        assert_int_equal(bench.upload.refused.reason, SESSION_IN_THE_WAY);
        upload_clear(&bench.upload);
        assert_string_equal(listing(&bench), "");
    }
}

/* Folders that were there already are not taken away. */
static void only_folders_that_it_made_are_taken_away(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    put_folder(bench.home.fd, "there");
    put_folder(bench.home.fd, "zz");
    add(&bench, "there/made/a", "x");
    add(&bench, "zz", "x");
    assert_refuses(&bench, SESSION_IN_THE_WAY, 1);
    assert_true(is_there(bench.home.fd, "there"));
    assert_false(is_there(bench.home.fd, "there/made"));
}

/* The client checks names; one that slips through still stays beneath the home. */
static void names_that_lead_out_are_refused(void **state) {
    static const char *const names[] = {"../out",   "/out",  "d/../../out", "",   "..",
                                        "d/../out", "./out", "d//out",      "d/", "."};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        CLEANUP(bench) struct bench bench = bench_new();
        put_folder(bench.home.fd, "d");
        put_folder(bench.home.fd, "d/inner");
        bench.upload.home = openat(bench.home.fd, "d/inner", O_RDONLY | O_DIRECTORY);
        put_folder(bench.upload.home, "d");
        add(&bench, names[i], "x");
        assert_int_equal(upload_commit(&bench.upload), -1);
        upload_clear(&bench.upload);
        assert_false(is_there(bench.home.fd, "d/out"));
        assert_false(is_there(bench.home.fd, "out"));
        assert_false(is_there(bench.upload.home, "out"));
        assert_false(is_there(bench.upload.home, "d/out"));
        close(bench.upload.home);
        bench.upload.home = bench.home.fd;
    }
}

static void what_follows_a_failure_is_not_written(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    bench.upload.failed = true;
    bench.upload.refused = (struct session_refused){SESSION_NO_ROOM, 3};
    add(&bench, "a", "x");
    assert_int_equal(bench.upload.file, -1);
    assert_string_equal(listing(&bench), "");
    assert_refuses(&bench, SESSION_NO_ROOM, 3);
}

static void leaves_no_descriptor_open(void **state) {
    int before = open_descriptors();

    (void)state;
    for (int refused = 0; refused < 2; refused++) {
        CLEANUP(bench) struct bench bench = bench_new();
        if (refused)
            put_folder(bench.home.fd, "c");
        add(&bench, "a/b", "x");
        add(&bench, "c", "x");
        assert_int_equal(upload_commit(&bench.upload), refused ? -1 : 0);
        upload_clear(&bench.upload);
    }
    assert_int_equal(open_descriptors(), before);
}

/* ---- a session that meddles ---- */

static void a_staged_file_that_was_taken_away_is_not_written(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    add(&bench, "d/a", "x");
    assert_int_equal(unlinkat(bench.upload.staging, "0", 0), 0);
    assert_refuses(&bench, SESSION_NOT_WRITTEN, 0);
    assert_string_equal(listing(&bench), "");
}

static void a_link_in_place_of_a_staged_file_is_only_moved(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    put_file(bench.home.fd, "target", "kept");
    upload_open(&bench.upload, SLICE("a"));
    assert_int_equal(unlinkat(bench.upload.staging, "0", 0), 0);
    assert_int_equal(symlinkat("../target", bench.upload.staging, "0"), 0);
    upload_write(&bench.upload, SLICE("x"));
    assert_commits(&bench);
    assert_content(bench.home.fd, "target", "kept");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_upload_touches_nothing),
        cmocka_unit_test(puts_files_in_place),
        cmocka_unit_test(nothing_is_in_place_before_the_commit),
        cmocka_unit_test(content_comes_in_pieces),
        cmocka_unit_test(replaces_what_was_there),
        cmocka_unit_test(of_the_same_name_twice_the_last_wins),
        cmocka_unit_test(replaces_a_link_and_not_its_target),
        cmocka_unit_test(a_folder_in_the_way_stops_all),
        cmocka_unit_test(a_file_in_the_way_stops_all),
        cmocka_unit_test(a_link_on_the_way_stops_all),
        cmocka_unit_test(a_file_that_is_a_folder_of_another_stops_all),
        cmocka_unit_test(only_folders_that_it_made_are_taken_away),
        cmocka_unit_test(names_that_lead_out_are_refused),
        cmocka_unit_test(what_follows_a_failure_is_not_written),
        cmocka_unit_test(leaves_no_descriptor_open),
        cmocka_unit_test(a_staged_file_that_was_taken_away_is_not_written),
        cmocka_unit_test(a_link_in_place_of_a_staged_file_is_only_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
