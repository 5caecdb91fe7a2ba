/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "fcgi-app/session_id.h"

#define REQUIRED "sessionId query parameter is required"

static int parse(const char *query, char id[SESSION_ID_MAX + 1],
                 struct validation_details *details, struct viv_error *err) {
    *details = (struct validation_details){0};
    return session_id_from_query(slice_of(query), id, details, err);
}

static void ids_are_found_and_decoded(void **state) {
    static const struct {
        const char *query;
        const char *id;
    } cases[] = {
        {"sessionId=default", "default"},
        {"a=1&sessionId=x", "x"},
        {"sessionId=x&a=%00&sessionid=y&b", "x"},
        {"&&sessionId=x&&", "x"},
        {"sessionId=a=b", "a=b"},
        {"sessionId=a+b", "a b"},
        {"sessionId=a%2Bb", "a+b"},
        {"sessionId=%41%c3%a9%C3%A9", "A\xc3\xa9\xc3\xa9"},
        {"sessionId=..%2F..%2Fetc", "../../etc"},
        {"sessionId=\xe2\x98\x95", "\xe2\x98\x95"},
        {"sessionId=+", " "},
        {"sessionId=%26", "&"},
        {"session%49d=x", "x"},
        {"sessionId=100%", "100%"},
        {"sessionId=%4", "%4"},
        {"sessionId=%zz%4", "%zz%4"},
        {"sessionId=%%41", "%A"},
        {"sessionId=a;b?c/d", "a;b?c/d"},
    };
    struct validation_details details;
    char id[SESSION_ID_MAX + 1];
    struct viv_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (parse(cases[i].query, id, &details, &err) || strcmp(id, cases[i].id) != 0)
            fail_msg("%s", cases[i].query);
        assert_int_equal(details.count, 0);
    }
}

static void missing_and_empty_ids_are_said_alike(void **state) {
    static const char *const queries[] = {
        "",
        "&",
        "sessionId",
        "sessionId=",
        "sessionId=&a=1",
        "sessionid=x",
        "session=x",
        "xsessionId=a",
        "sessionId%20=x",
        "sessionIdx=a",
        "a=sessionId=b",
    };
    struct validation_details details;
    char id[SESSION_ID_MAX + 1];
    struct viv_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(queries); i++) {
        assert_fails(parse(queries[i], id, &details, &err), &err, VIV_VALIDATION,
                     REQUIRED);
        assert_string_equal(err.message, REQUIRED);
        assert_int_equal(details.count, 1);
        assert_string_equal(details.items[0].on, "query");
        assert_string_equal(details.items[0].path, "/sessionId");
        assert_string_equal(details.items[0].expected, "string");
        assert_string_equal(details.items[0].message, REQUIRED);
    }
    details.count = 0;
    assert_fails(session_id_from_query((struct slice){NULL, 0}, id, &details, &err), &err,
                 VIV_VALIDATION, REQUIRED);
}

static void refused_ids_have_their_words(void **state) {
    static const struct {
        const char *query;
        const char *words;
    } cases[] = {
        {"sessionId=a&sessionId=a", "more than once"},
        {"sessionId=&sessionId=a", "more than once"},
        {"sessionId=a&session%49d", "more than once"},
        {"sessionId=a%00b", "control"},
        {"sessionId=%0A", "control"},
        {"sessionId=%7f", "control"},
        {"sessionId=%c2%85", "control"},
        {"sessionId=\x01", "control"},
        {"sessionId=%FF", "UTF-8"},
        {"sessionId=a%C3", "UTF-8"},
        {"sessionId=%C0%AF", "UTF-8"},
        {"sessionId=%ED%A0%80", "UTF-8"},
    };
    struct validation_details details;
    char id[SESSION_ID_MAX + 1];
    struct viv_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_fails(parse(cases[i].query, id, &details, &err), &err, VIV_VALIDATION,
                     cases[i].words);
        assert_int_equal(details.count, 1);
    }
}

static void the_length_is_that_of_decoded_bytes(void **state) {
    char query[10 + 3 * SESSION_ID_MAX + 2] = "sessionId=", id[SESSION_ID_MAX + 1];
    struct validation_details details;
    struct viv_error err;

    (void)state;
    for (size_t i = 0; i < SESSION_ID_MAX; i++)
        memcpy(query + 10 + 3 * i, "%78", 3);
    assert_int_equal(parse(query, id, &details, &err), 0);
    assert_int_equal(strlen(id), SESSION_ID_MAX);
    query[10 + 3 * SESSION_ID_MAX] = 'x';
    assert_fails(parse(query, id, &details, &err), &err, VIV_VALIDATION,
                 "longer than 128");
}

static void every_byte_is_decoded_to_itself(void **state) {
    struct validation_details details;
    char id[SESSION_ID_MAX + 1], query[32];
    struct viv_error err;

    (void)state;
    for (int c = 0x20; c < 0x7f; c++) {
        const char expected[] = {(char)c, '\0'};
        snprintf(query, sizeof query, "sessionId=%%%02x", (unsigned)c);
        assert_int_equal(parse(query, id, &details, &err), 0);
        assert_string_equal(id, expected);
    }
}

static void a_component_of_a_path_is_decoded_as_one(void **state) {
    static const struct {
        const char *component, *id;
    } cases[] = {{"default", "default"},
                 {"a+b", "a+b"},
                 {"a%20b", "a b"},
                 {"..%2F..%2Fetc%3Fx", "../../etc?x"},
                 {"%25%2525", "%%25"},
                 {"100%", "100%"},
                 {"sessionId=x&a", "sessionId=x&a"},
                 {"\xe2\x98\x95", "\xe2\x98\x95"}};
    struct validation_details details = {0};
    char id[SESSION_ID_MAX + 1];
    struct viv_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(
            session_id_from_path(slice_of(cases[i].component), id, &details, &err), 0);
        assert_string_equal(id, cases[i].id);
    }
    assert_int_equal(details.count, 0);
    assert_fails(session_id_from_path(slice_of("a%00"), id, &details, &err), &err,
                 VIV_VALIDATION, "control character");
    assert_int_equal(details.count, 1);
    assert_string_equal(details.items[0].on, "path");
    assert_string_equal(details.items[0].path, "/sessionId");
}

static void messages_never_hold_the_id(void **state) {
    struct validation_details details;
    char id[SESSION_ID_MAX + 1];
    struct viv_error err;

    (void)state;
    assert_int_equal(parse("sessionId=SECRET%00", id, &details, &err), -1);
    assert_null(strstr(err.message, "SECRET"));
    assert_null(strstr(details.items[0].message, "SECRET"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_found_and_decoded),
        cmocka_unit_test(missing_and_empty_ids_are_said_alike),
        cmocka_unit_test(refused_ids_have_their_words),
        cmocka_unit_test(the_length_is_that_of_decoded_bytes),
        cmocka_unit_test(every_byte_is_decoded_to_itself),
        cmocka_unit_test(a_component_of_a_path_is_decoded_as_one),
        cmocka_unit_test(messages_never_hold_the_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
