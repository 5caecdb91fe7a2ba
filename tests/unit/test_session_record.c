/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <stdio.h>

#include "fcgi-app/session_record.h"

static struct session_record example(void) {
    struct session_record record = {.created_wall_ms = 1705312200000,
                                    .created = 5 * VIV_SECOND,
                                    .used = 9 * VIV_SECOND,
                                    .execution_count = 3,
                                    .lost_all = true};

    snprintf(record.id, sizeof record.id, "%s", "gr\xc3\xbc\xc3\x9f dich");
    snprintf(record.client, sizeof record.client, "%s", "2001:db8::1");
    return record;
}

static void a_record_comes_back_as_it_was(void **state) {
    struct session_record record = example(), read;
    char bytes[SESSION_RECORD_MAX];

    (void)state;
    for (int round = 0; round < 2; round++) {
        size_t size = session_record_put(bytes, &record);
        assert_int_equal(session_record_get((struct slice){bytes, size}, &read, NULL), 0);
        assert_string_equal(read.id, record.id);
        assert_string_equal(read.client, record.client);
        assert_true(read.created_wall_ms == record.created_wall_ms);
        assert_true(read.created == record.created && read.used == record.used);
        assert_true(read.execution_count == record.execution_count);
        assert_true(read.lost_all == record.lost_all);
        record.lost_all = false;
        memset(record.id, 'x', SESSION_ID_MAX); /* the longest */
    }
}

static void anything_else_is_refused(void **state) {
    struct session_record record = example(), read;
    char bytes[SESSION_RECORD_MAX + 1];
    struct viv_error err;
    size_t size = session_record_put(bytes, &record);

    (void)state;
    for (size_t cut = 0; cut < size; cut++)
        assert_fails(session_record_get((struct slice){bytes, cut}, &read, &err), &err,
                     VIV_BAD_GATEWAY, "record");
    bytes[size] = 'x';
    assert_fails(session_record_get((struct slice){bytes, size + 1}, &read, &err), &err,
                 VIV_BAD_GATEWAY, "malformed");
    bytes[0] = 3;
    assert_fails(session_record_get((struct slice){bytes, size}, &read, &err), &err,
                 VIV_BAD_GATEWAY, "another kind");
}

static void nonsense_in_it_is_refused(void **state) {
    struct session_record records[4] = {example(), example(), example(), example()}, read;
    char bytes[SESSION_RECORD_MAX];
    struct viv_error err;

    (void)state;
    records[0].id[0] = '\0';
    records[1].used = records[1].created - 1;
    records[2].created = -1;
    records[3].id[0] = '\xff';
    for (size_t i = 0; i < COUNT_OF(records); i++) {
        size_t size = session_record_put(bytes, &records[i]);
        assert_fails(session_record_get((struct slice){bytes, size}, &read, &err), &err,
                     VIV_BAD_GATEWAY, "malformed");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_comes_back_as_it_was),
        cmocka_unit_test(anything_else_is_refused),
        cmocka_unit_test(nonsense_in_it_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
