/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "common/cleanup.h"
#include "common/filename.h"

static void common_names_are_allowed(void **state) {
    const char *const names[] = {
        "a",
        "data.csv",
        "data/in.csv",
        "a/b/c/d/e/f/g/h",
        ".hidden",
        "..a",
        "a..",
        "...",
        "-rf",
        "a b",
        " ",
        "a:b",
        "a*?\"<>|'",
        "~",
        "CON",
        "a.b/.c",
        "\xc3\xbc\x62\x65r \xe3\x83\x87\xe3\x83\xbc\xe3\x82\xbf (1).csv",
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *refusal = filename_refusal(slice_of(names[i]));
        if (refusal)
            fail_msg("%s: %s", names[i], refusal);
    }
}

static void each_fault_has_its_words(void **state) {
    const struct {
        struct slice name;
        const char *words;
    } faults[] = {
        {SLICE(""), "empty"},
        {SLICE("/"), "not relative"},
        {SLICE("/etc/x"), "not relative"},
        {SLICE("//x"), "not relative"},
        {SLICE("."), "\".\""},
        {SLICE(".."), "\"..\""},
        {SLICE("../x"), "\"..\""},
        {SLICE("a/.."), "\"..\""},
        {SLICE("a/../x"), "\"..\""},
        {SLICE("./x"), "\".\""},
        {SLICE("a/./x"), "\".\""},
        {SLICE("a/"), "component is empty"},
        {SLICE("a//b"), "component is empty"},
        {SLICE("a\\b"), "backslash"},
        {SLICE("..\\x"), "backslash"},
        {SLICE("a\0b"), "control"},
        {SLICE("a\nb"), "control"},
        {SLICE("\x1b[2J"), "control"},
        {SLICE("a\x7f"), "control"},
        {SLICE("a\xc2\x9b"), "control"},
        {SLICE("a\xff"), "UTF-8"},
        {SLICE("a\xc3"), "UTF-8"},
        {SLICE("a\xed\xa0\x80"), "UTF-8"},
        {SLICE("a/b/c/d/e/f/g/h/i"), "8 components"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        const char *refusal = filename_refusal(faults[i].name);
        if (!refusal || !strstr(refusal, faults[i].words))
            fail_msg("%zu: %s", i, refusal);
    }
}

static void components_have_up_to_255_bytes(void **state) {
    char name[600];

    (void)state;
    memset(name, 'x', sizeof name);
    assert_null(filename_refusal((struct slice){name, 255}));
    assert_non_null(filename_refusal((struct slice){name, 256}));
    name[255] = '/';
    assert_null(filename_refusal((struct slice){name, 256 + 255}));
    assert_non_null(filename_refusal((struct slice){name, 256 + 256}));
    name[1] = '/';
    assert_null(filename_refusal((struct slice){name, 255}));
}

static void very_long_names_are_refused(void **state) {
    const size_t size = (size_t)10 << 20;
    CLEANUP(free_ptr) char *name = viv_xmalloc(size);

    (void)state;
    for (size_t i = 0; i < size; i++)
        name[i] = i % 2 ? '/' : 'a';
    assert_non_null(filename_refusal((struct slice){name, size - 1}));
}

static void folders_are_told_from_beginnings(void **state) {
    (void)state;
    assert_true(filename_is_folder_of(SLICE("a"), SLICE("a/b")));
    assert_true(filename_is_folder_of(SLICE("a"), SLICE("a/b/c")));
    assert_true(filename_is_folder_of(SLICE("a/b"), SLICE("a/b/c")));
    assert_false(filename_is_folder_of(SLICE("a"), SLICE("a")));
    assert_false(filename_is_folder_of(SLICE("a"), SLICE("ab/c")));
    assert_false(filename_is_folder_of(SLICE("a/b"), SLICE("a")));
    assert_false(filename_is_folder_of(SLICE("a/b"), SLICE("a/bc")));
    assert_false(filename_is_folder_of(SLICE("b"), SLICE("a/b")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(common_names_are_allowed),
        cmocka_unit_test(each_fault_has_its_words),
        cmocka_unit_test(components_have_up_to_255_bytes),
        cmocka_unit_test(very_long_names_are_refused),
        cmocka_unit_test(folders_are_told_from_beginnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
