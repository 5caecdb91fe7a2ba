/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "common/cleanup.h"
#include "common/executor_wire.h"

static void messages_come_back_as_they_went(void **state) {
    const size_t sizes[] = {0, 1, 100, EXECUTOR_BYTES_MAX};
    char text[EXECUTOR_BYTES_MAX], room[EXECUTOR_MESSAGE_MAX];

    (void)state;
    memset(text, 'r', sizeof text);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct executor_message sent = {
            EXECUTOR_RECORD, UINT64_MAX - i, {text, sizes[i]}};
        struct executor_message got;
        size_t size = executor_message_put(room, &sent);
        assert_int_equal(size, EXECUTOR_HEADER_SIZE + sizes[i]);
        assert_int_equal(executor_message_get((struct slice){room, size}, &got, NULL), 0);
        assert_int_equal(got.what, EXECUTOR_RECORD);
        assert_true(got.sandbox == UINT64_MAX - i);
        assert_int_equal(got.bytes.size, sizes[i]);
        assert_memory_equal(got.bytes.data, text, sizes[i]);
    }
}

static void headers_have_their_form(void **state) {
    struct executor_message message = {0x0102, 3, SLICE("x")};
    char room[EXECUTOR_MESSAGE_MAX];

    (void)state;
    assert_int_equal(executor_message_put(room, &message), EXECUTOR_HEADER_SIZE + 1);
    assert_memory_equal(room, "VIVX\x02\x00\x02\x01\x03\0\0\0\0\0\0\0x", 17);
}

static void longer_bytes_are_cut(void **state) {
    char text[EXECUTOR_BYTES_MAX + 1], room[EXECUTOR_MESSAGE_MAX];
    struct executor_message message = {1, 1, {text, sizeof text}};

    (void)state;
    memset(text, 'r', sizeof text);
    assert_int_equal(executor_message_put(room, &message), EXECUTOR_MESSAGE_MAX);
}

static void other_sizes_and_magic_are_refused(void **state) {
    struct executor_message message = {1, 1, {NULL, 0}};
    char room[EXECUTOR_MESSAGE_MAX + 1] = {0};
    struct viv_error err;

    (void)state;
    executor_message_put(room, &message);
    for (size_t size = 0; size < EXECUTOR_HEADER_SIZE; size++) {
        /* On the heap, so that a sanitizer sees a read behind the end. */
        CLEANUP(free_ptr) char *copy = viv_xmalloc(size);
        memcpy(copy, room, size);
        assert_fails(executor_message_get((struct slice){copy, size}, &message, &err),
                     &err, VIV_BAD_GATEWAY, "not a message");
    }
    assert_fails(executor_message_get((struct slice){room, sizeof room}, &message, &err),
                 &err, VIV_BAD_GATEWAY, "not a message");
    for (size_t at = 0; at < 4; at++) {
        room[at] ^= 1;
        assert_fails(executor_message_get((struct slice){room, EXECUTOR_HEADER_SIZE},
                                          &message, &err),
                     &err, VIV_BAD_GATEWAY, "not a message");
        room[at] ^= 1;
    }
}

static void another_version_is_said_plainly(void **state) {
    struct executor_message message = {1, 1, {NULL, 0}};
    char room[EXECUTOR_MESSAGE_MAX];
    struct viv_error err;

    (void)state;
    size_t size = executor_message_put(room, &message);
    put_u16(room + 4, EXECUTOR_WIRE_VERSION + 1);
    assert_fails(executor_message_get((struct slice){room, size}, &message, &err), &err,
                 VIV_BAD_GATEWAY, "different versions");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_back_as_they_went),
        cmocka_unit_test(headers_have_their_form),
        cmocka_unit_test(longer_bytes_are_cut),
        cmocka_unit_test(other_sizes_and_magic_are_refused),
        cmocka_unit_test(another_version_is_said_plainly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
