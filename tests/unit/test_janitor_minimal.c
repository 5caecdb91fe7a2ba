/* SPDX-License-Identifier: MIT */
/* The janitor of the tier that any user can have. */
#include "tests/unit/unit.h"

#include "tests/unit/janitor_client.h"

static const char *const minimal[] = {"home", "tmp", "shm"};

static void it_waits_for_the_end_of_an_earlier_one(void **state) {
    struct scratch scratch = scratch_new();
    struct janitor first, second;

    (void)state;
    start(&first, ISOLATION_MINIMAL, scratch.path);
    close(prepared(&first, 0));
    start(&second, ISOLATION_MINIMAL, scratch.path);
    ask(&second, 0);
    assert_int_equal(io_wait(second.socket, false, viv_after_ms(100), NULL), -1);
    assert_int_equal(stop(&first), 0);
    struct janitor_reply reply;
    int folder = answered(&second, 0, &reply);
    assert_true(folder >= 0);
    close(folder);
    assert_int_equal(stop(&second), 0);
    scratch_remove(&scratch);
}

/* The name in the folder that begins with `start`; fails unless there is exactly one. */
static void find_name(const struct scratch *slots, const char *begin, char name[256]) {
    DIR *stream = opendir(slots->path);
    int found = 0;

    assert_non_null(stream);
    for (const struct dirent *entry; (entry = readdir(stream));)
        if (strncmp(entry->d_name, begin, strlen(begin)) == 0) {
            snprintf(name, 256, "%s", entry->d_name);
            found++;
        }
    closedir(stream);
    assert_int_equal(found, 1);
}

static void each_session_has_a_new_folder(void **state) {
    struct scratch slots = scratch_new();
    struct janitor janitor;
    char first[256], second[256], other[256];

    (void)state;
    start(&janitor, ISOLATION_MINIMAL, slots.path);
    int folder = prepared(&janitor, 3), stays = prepared(&janitor, 1);
    assert_fresh(folder, minimal, geteuid());
    assert_fresh(stays, minimal, geteuid());
    find_name(&slots, "3-", first);
    find_name(&slots, "1-", other);
    assert_int_equal(strlen(first), 34);
    assert_int_equal(strspn(first + 2, "0123456789abcdef"), 32);
    put_file(folder, "home/file", "");
    put_folder(folder, "tmp/locked");
    put_file(folder, "tmp/locked/file", "");
    assert_int_equal(fchmodat(folder, "tmp/locked", 0, 0), 0);
    put_file(stays, "home/file", "kept");
    close(folder);
    folder = prepared(&janitor, 3);
    assert_fresh(folder, minimal, geteuid());
    find_name(&slots, "3-", second);
    assert_string_not_equal(first, second);
    assert_content(stays, "home/file", "kept");
    close(prepared(&janitor, JANITOR_ZYGOTE));
    find_name(&slots, "zygote-", first);
    close(folder);
    close(stays);
    assert_int_equal(stop(&janitor), 0);
    scratch_remove(&slots);
}

static void folders_of_an_earlier_executor_go(void **state) {
    static const char *const go[] = {"3-0123456789abcdef0123456789abcdef",
                                     "70-0123456789abcdef0123456789abcdef",
                                     "zygote-0123456789abcdef0123456789abcdef"};
    static const char *const stay[] = {"3-0123456789abcdef0123456789abcde",
                                       "3-0123456789abcdef0123456789abcdef0",
                                       "3-0123456789ABCDEF0123456789abcdef",
                                       "x-0123456789abcdef0123456789abcdef",
                                       "-0123456789abcdef0123456789abcdef",
                                       "3",
                                       "mine"};
    struct scratch slots = scratch_new();
    struct janitor janitor;
    char path[128];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(stay); i++)
        put_folder(slots.fd, stay[i]);
    for (size_t i = 0; i < COUNT_OF(go); i++) {
        put_folder(slots.fd, go[i]);
        snprintf(path, sizeof path, "%s/home", go[i]);
        put_folder(slots.fd, path);
        assert_int_equal(fchmodat(slots.fd, go[i], 0, 0), 0);
    }
    start(&janitor, ISOLATION_MINIMAL, slots.path);
    close(prepared(&janitor, 0));
    for (size_t i = 0; i < COUNT_OF(go); i++)
        assert_false(is_there(slots.fd, go[i]));
    for (size_t i = 0; i < COUNT_OF(stay); i++)
        assert_true(is_there(slots.fd, stay[i]));
    assert_int_equal(stop(&janitor), 0);
    scratch_remove(&slots);
}

static void the_folder_of_slots_is_made(void **state) {
    struct scratch scratch = scratch_new();
    struct janitor janitor;
    struct stat status;
    char path[128];

    (void)state;
    snprintf(path, sizeof path, "%s/slots", scratch.path);
    start(&janitor, ISOLATION_MINIMAL, path);
    close(prepared(&janitor, 0));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode, S_IFDIR | 0700);
    assert_int_equal(stop(&janitor), 0);
    scratch_remove(&scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_session_has_a_new_folder),
        cmocka_unit_test(folders_of_an_earlier_executor_go),
        cmocka_unit_test(the_folder_of_slots_is_made),
        cmocka_unit_test(it_waits_for_the_end_of_an_earlier_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
