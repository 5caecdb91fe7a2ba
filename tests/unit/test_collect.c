/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "executor/supervisor/collect.h"
#include "tests/unit/scratch.h"

#define BLOCK SESSION_DATA_MAX

/* A home, a snapshot of it, and what a collection sent, a line for each frame. */
struct bench {
    struct scratch home;
    struct home_snapshot before;
    struct collection collection;
    char sent[16384];
    size_t sent_size;
    uint64_t left_out; /* frames that are counted and not written down */
    bool counts_only;
    int fail_after; /* frames; 0: never */
    int frames;
    /* Called before each frame is written down; the test's hand in the home. */
    void (*meddle)(struct bench *bench, uint8_t type);
};

static void write_down(struct bench *bench, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void write_down(struct bench *bench, const char *format, ...) {
    size_t room = sizeof bench->sent - bench->sent_size;
    va_list arguments;

    va_start(arguments, format);
    int size = vsnprintf(bench->sent + bench->sent_size, room, format, arguments);
    va_end(arguments);
    assert_true(size >= 0 && (size_t)size < room);
    bench->sent_size += (size_t)size;
}

static const char *name_of(enum session_left_out reason) {
    static const char *const names[SESSION_LEFT_OUT_COUNT] = {
        "included",   "too-large", "too-many",     "total-too-large",
        "unreadable", "too-deep",  "name-refused", "changed"};

    return names[reason];
}

static void write_down_frame(struct bench *bench, uint8_t type, struct slice first,
                             struct slice second) {
    struct session_file_end end;

    switch (type) {
    case SESSION_FILE:
        write_down(bench, "%.*s:", (int)first.size, first.data);
        break;
    case SESSION_DATA:
        assert_true(first.size > 0 && first.size <= BLOCK);
        write_down(bench, " %zu", first.size);
        break;
    case SESSION_FILE_END:
        assert_int_equal(session_file_end_get(first, &end, NULL, NULL), 0);
        write_down(bench, " %s %" PRIu64 "\n", name_of(end.reason), end.size);
        break;
    case SESSION_LEFT_OUT:
        assert_int_equal(session_file_end_get(first, &end, NULL, NULL), 0);
        write_down(bench, "%.*s: left out, %s %" PRIu64 "\n", (int)second.size,
                   second.data, name_of(end.reason), end.size);
        break;
    default:
        fail_msg("a frame of type %u", type);
    }
}

static int take_frame(void *context, uint8_t type, struct slice first,
                      struct slice second) {
    struct bench *bench = context;

    if (++bench->frames == bench->fail_after)
        return -1;
    if (bench->meddle)
        bench->meddle(bench, type);
    if (bench->counts_only)
        bench->left_out += type == SESSION_LEFT_OUT;
    else
        write_down_frame(bench, type, first, second);
    return 0;
}

static struct bench *bench_new(void) {
    struct bench *bench = viv_xcalloc(1, sizeof *bench);

    bench->home = scratch_new();
    bench->collection = (struct collection){
        .home = bench->home.fd,
        .before = &bench->before,
        .max_files = 100,
        .max_file_size = 10 << 20,
        .max_total = 100 << 20,
        .send = take_frame,
        .context = bench,
    };
    return bench;
}

static void bench_cleanup(struct bench **bench) {
    home_snapshot_clear(&(*bench)->before);
    scratch_remove(&(*bench)->home);
    free(*bench);
}

static void put_size(const struct bench *bench, const char *name, off_t size) {
    put_file(bench->home.fd, name, "");
    int fd = openat(bench->home.fd, name, O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, size), 0);
    close(fd);
}

/* Collects, and compares all that was sent. */
static void assert_collects(struct bench *bench, const char *expected) {
    uint32_t unnamed = 99;

    assert_int_equal(collect_files(&bench->collection, &unnamed, NULL), 0);
    assert_string_equal(bench->sent, expected);
    assert_int_equal(unnamed, 0);
}

static void sends_what_is_new_or_changed(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();
    int home = bench->home.fd;

    (void)state;
    put_file(home, "old", "as it was");
    put_file(home, "rewritten", "before");
    put_file(home, "gone", "x");
    assert_int_equal(home_snapshot_take(&bench->before, home, NULL), 0);
    put_file(home, "rewritten", "behind");
    put_file(home, "new", "1234");
    assert_int_equal(unlinkat(home, "gone", 0), 0);
    assert_collects(bench, "new: 4 included 4\nrewritten: 6 included 6\n");
}

static void sends_nothing_where_nothing_changed(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    put_file(bench->home.fd, "old", "x");
    assert_int_equal(home_snapshot_take(&bench->before, bench->home.fd, NULL), 0);
    assert_collects(bench, "");
}

/* By the bytes of the whole path: "a.txt" stands between "a-b" and "a/b". */
static void sends_in_the_order_of_names(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();
    int home = bench->home.fd;

    (void)state;
    put_folder(home, "a");
    put_file(home, "a/b", "x");
    put_file(home, "a.txt", "x");
    put_file(home, "a-b", "x");
    put_file(home, "Z", "x");
    put_file(home, "\xc3\xa4", "x");
    put_file(home, "\xff", "x");
    assert_collects(bench, "Z: 1 included 1\na-b: 1 included 1\na.txt: 1 included 1\n"
                           "a/b: 1 included 1\n\xc3\xa4: 1 included 1\n"
                           "\xff: 1 included 1\n");
}

static void sends_content_in_blocks(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    put_size(bench, "a-empty", 0);
    put_size(bench, "b-block", BLOCK);
    put_size(bench, "c-more", 2 * BLOCK + 1);
    assert_collects(bench, "a-empty: included 0\n"
                           "b-block: 262144 included 262144\n"
                           "c-more: 262144 262144 1 included 524289\n");
}

static void leaves_out_what_is_too_large(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    bench->collection.max_file_size = 100;
    put_size(bench, "a-fits", 100);
    put_size(bench, "b-large", 101);
    put_size(bench, "c-sparse", (off_t)1 << 40);
    put_size(bench, "d-fits", 1);
    assert_collects(bench, "a-fits: 100 included 100\n"
                           "b-large: left out, too-large 101\n"
                           "c-sparse: left out, too-large 1099511627776\n"
                           "d-fits: 1 included 1\n");
}

static void leaves_out_what_is_too_many(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    bench->collection.max_files = 2;
    bench->collection.max_file_size = 10;
    put_size(bench, "a", 1);
    put_size(bench, "b", 11);
    put_size(bench, "c", 2);
    put_size(bench, "d", 3);
    put_size(bench, "e", 12);
    assert_collects(bench, "a: 1 included 1\nb: left out, too-large 11\n"
                           "c: 2 included 2\nd: left out, too-many 3\n"
                           "e: left out, too-large 12\n");
}

/* One that does not fit leaves room for a smaller one behind it. */
static void leaves_out_what_is_too_much_in_all(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    bench->collection.max_total = 10;
    put_size(bench, "a", 6);
    put_size(bench, "b", 5);
    put_size(bench, "c", 4);
    put_size(bench, "d", 1);
    put_size(bench, "e", 0);
    assert_collects(bench, "a: 6 included 6\nb: left out, total-too-large 5\n"
                           "c: 4 included 4\nd: left out, total-too-large 1\n"
                           "e: included 0\n");
}

static void names_a_folder_that_is_too_deep(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();
    char path[4 * HOME_DEPTH_MAX] = "d", expected[512];

    (void)state;
    for (int depth = 0; depth <= HOME_DEPTH_MAX; depth++) {
        put_folder(bench->home.fd, path);
        if (depth < HOME_DEPTH_MAX)
            strcat(path, "/d");
    }
    snprintf(expected, sizeof expected, "%s: left out, too-deep 0\n", path);
    assert_collects(bench, expected);
}

/* A thousand are named, the others are counted. */
static void counts_what_it_does_not_name(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();
    uint32_t unnamed;
    char name[16];

    (void)state;
    bench->counts_only = true;
    bench->collection.max_files = 0;
    for (int i = 0; i < 1007; i++) {
        snprintf(name, sizeof name, "f%d", i);
        put_file(bench->home.fd, name, "");
    }
    assert_int_equal(collect_files(&bench->collection, &unnamed, NULL), 0);
    assert_int_equal(bench->left_out, 1000);
    assert_int_equal(unnamed, 7);
}

/* ---- a session that meddles while its files are read ---- */

static void replace_others(struct bench *bench, uint8_t type) {
    int home = bench->home.fd;

    if (type != SESSION_FILE || bench->frames != 1)
        return;
    for (const char *name = "bcdef"; *name; name++)
        assert_int_equal(unlinkat(home, (char[]){*name, '\0'}, 0), 0);
    assert_int_equal(symlinkat("/etc/hostname", home, "b"), 0);
    assert_int_equal(mkfifoat(home, "c", 0666), 0);
    put_folder(home, "d");
    assert_int_equal(symlinkat("a", home, "e"), 0);
}

static void does_not_follow_what_took_the_place_of_a_file(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    for (const char *name = "abcdef"; *name; name++)
        put_file(bench->home.fd, (char[]){*name, '\0'}, "12345");
    bench->meddle = replace_others;
    assert_collects(bench, "a: 5 included 5\n"
                           "b: left out, unreadable 5\nc: left out, unreadable 5\n"
                           "d: left out, unreadable 5\ne: left out, unreadable 5\n"
                           "f: left out, unreadable 5\n");
}

static void replace_folder(struct bench *bench, uint8_t type) {
    if (type != SESSION_FILE || bench->frames != 1)
        return;
    assert_int_equal(renameat(bench->home.fd, "sub", bench->home.fd, "moved"), 0);
    assert_int_equal(symlinkat("/etc", bench->home.fd, "sub"), 0);
}

static void does_not_follow_what_took_the_place_of_a_folder(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    put_file(bench->home.fd, "a", "x");
    put_folder(bench->home.fd, "sub");
    put_file(bench->home.fd, "sub/hostname", "12");
    bench->meddle = replace_folder;
    assert_collects(bench, "a: 1 included 1\nsub/hostname: left out, unreadable 2\n");
}

static void resize(struct bench *bench, off_t size) {
    int fd = openat(bench->home.fd, "a", O_WRONLY | O_CLOEXEC);

    assert_int_equal(ftruncate(fd, size), 0);
    close(fd);
}

static void grow(struct bench *bench, uint8_t type) {
    if (type == SESSION_DATA)
        resize(bench, (off_t)1 << 40);
}

/* The size that was told when the file was opened is the most that is sent. */
static void a_file_that_grows_meanwhile_has_changed(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    put_size(bench, "a", BLOCK + 10);
    put_size(bench, "b", 1);
    bench->meddle = grow;
    assert_collects(bench, "a: 262144 changed 262154\nb: 1 included 1\n");
}

static void shrink(struct bench *bench, uint8_t type) {
    if (type == SESSION_DATA)
        resize(bench, 5);
}

static void a_file_that_shrinks_meanwhile_has_changed(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    put_size(bench, "a", 3 * BLOCK);
    put_size(bench, "b", 1);
    bench->meddle = shrink;
    assert_collects(bench, "a: 262144 changed 786432\nb: 1 included 1\n");
}

/* It went over the channel, and the client counts what comes there. */
static void a_changed_file_counts(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    bench->collection.max_files = 1;
    put_size(bench, "a", 3 * BLOCK);
    put_size(bench, "b", 1);
    bench->meddle = shrink;
    assert_collects(bench, "a: 262144 changed 786432\nb: left out, too-many 1\n");
}

static void ends_when_the_client_is_gone(void **state) {
    for (int frames = 1; frames <= 5; frames++) {
        CLEANUP(bench) struct bench *bench = bench_new();
        struct viv_error err;
        uint32_t unnamed;

        (void)state;
        put_file(bench->home.fd, "a", "x");
        put_file(bench->home.fd, "b", "");
        bench->fail_after = frames;
        assert_fails(collect_files(&bench->collection, &unnamed, &err), &err,
                     VIV_BAD_GATEWAY, "the client");
        assert_int_equal(bench->frames, frames);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_what_is_new_or_changed),
        cmocka_unit_test(sends_nothing_where_nothing_changed),
        cmocka_unit_test(sends_in_the_order_of_names),
        cmocka_unit_test(sends_content_in_blocks),
        cmocka_unit_test(leaves_out_what_is_too_large),
        cmocka_unit_test(leaves_out_what_is_too_many),
        cmocka_unit_test(leaves_out_what_is_too_much_in_all),
        cmocka_unit_test(names_a_folder_that_is_too_deep),
        cmocka_unit_test(counts_what_it_does_not_name),
        cmocka_unit_test(does_not_follow_what_took_the_place_of_a_file),
        cmocka_unit_test(does_not_follow_what_took_the_place_of_a_folder),
        cmocka_unit_test(a_file_that_grows_meanwhile_has_changed),
        cmocka_unit_test(a_file_that_shrinks_meanwhile_has_changed),
        cmocka_unit_test(a_changed_file_counts),
        cmocka_unit_test(ends_when_the_client_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
