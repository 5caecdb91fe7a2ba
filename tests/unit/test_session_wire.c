/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "common/cleanup.h"
#include "common/session_wire.h"

static struct slice whole(const struct buffer *bytes) {
    return (struct slice){bytes->data, bytes->size};
}

static void each_type_has_its_direction_and_cap(void **state) {
    (void)state;
    for (int type = 0; type < 256; type++) {
        bool shared = type == SESSION_FILE || type == SESSION_DATA;
        bool sent = type >= SESSION_EXEC && type <= SESSION_INTERRUPT;
        bool received = shared || (type >= SESSION_REFUSED && type <= SESSION_DONE);
        assert_int_equal(session_cap_to_supervisor((uint8_t)type) >= 0, sent);
        assert_int_equal(session_cap_to_client((uint8_t)type) >= 0, received);
    }
    assert_int_equal(session_cap_to_supervisor(SESSION_RUN), 0);
    assert_int_equal(session_cap_to_supervisor(SESSION_INTERRUPT), 0);
    assert_int_equal(session_cap_to_client(SESSION_DONE), SESSION_DONE_SIZE);
    assert_int_equal(session_cap_to_client(SESSION_OUTPUT), 1 + SESSION_OUTPUT_MAX);
}

static const struct session_exec exec_example = {
    .nonce = "0123456789abcde",
    .number = 0x01020304,
    .timeout_ms = 0x11121314,
    .grace_ms = 0x21222324,
    .max_output = 0x31323334,
    .max_result = 0x41424344,
    .max_output_files = 0x51525354,
    .max_file_size = UINT64_C(0x6162636465666768),
    .max_output_total = UINT64_C(0x7172737475767778),
    .code_size = 3,
    .has_stdin = true,
    .stdin_size = 2,
};

static struct buffer exec_payload(const struct session_exec *exec, const char *rest) {
    struct buffer payload = {0};
    char fixed[SESSION_EXEC_SIZE];

    session_exec_put(fixed, exec);
    buffer_append(&payload, fixed, sizeof fixed, SIZE_MAX, NULL);
    buffer_append(&payload, rest, strlen(rest), SIZE_MAX, NULL);
    return payload;
}

static void exec_comes_back_as_it_went(void **state) {
    CLEANUP(buffer_clear) struct buffer payload = exec_payload(&exec_example, "x=1ab");
    struct session_exec got = {0};
    struct slice rest;

    (void)state;
    assert_int_equal(session_exec_get(whole(&payload), &got, &rest, NULL), 0);
    assert_slice_equal(rest, "x=1ab");
    assert_memory_equal(got.nonce, exec_example.nonce, SESSION_NONCE_SIZE);
    assert_int_equal(got.number, exec_example.number);
    assert_int_equal(got.timeout_ms, exec_example.timeout_ms);
    assert_int_equal(got.grace_ms, exec_example.grace_ms);
    assert_int_equal(got.max_output, exec_example.max_output);
    assert_int_equal(got.max_result, exec_example.max_result);
    assert_int_equal(got.max_output_files, exec_example.max_output_files);
    assert_true(got.max_file_size == exec_example.max_file_size);
    assert_true(got.max_output_total == exec_example.max_output_total);
    assert_int_equal(got.code_size, 3);
    assert_true(got.has_stdin);
    assert_int_equal(got.stdin_size, 2);
}

static void refuses_exec(const struct session_exec *exec, const char *text) {
    CLEANUP(buffer_clear) struct buffer payload = exec_payload(exec, text);
    struct session_exec got;
    struct slice rest;
    struct viv_error err;

    assert_fails(session_exec_get(whole(&payload), &got, &rest, &err), &err,
                 VIV_BAD_GATEWAY, "malformed EXEC");
}

static void exec_sizes_must_add_up(void **state) {
    struct session_exec exec = exec_example;

    (void)state;
    refuses_exec(&exec, "x=1a");
    refuses_exec(&exec, "x=1abc");
    refuses_exec(&exec, "");
    exec.code_size = UINT32_MAX; /* with 6 of input, 5 modulo 2^32 */
    exec.stdin_size = 6;
    refuses_exec(&exec, "x=1ab");
    exec.code_size = SESSION_CODE_MAX + 1;
    refuses_exec(&exec, "x=1ab");
    exec.code_size = 5;
    exec.stdin_size = SESSION_STDIN_MAX + 1;
    refuses_exec(&exec, "x=1ab");
    exec = exec_example;
    exec.has_stdin = false;
    refuses_exec(&exec, "x=1ab");
}

/* Each *_get() must refuse every shorter payload, and a longer one where nothing may
 * follow. */
typedef int get_function(struct slice payload, struct viv_error *err);

static int get_exec(struct slice payload, struct viv_error *err) {
    struct session_exec got;
    struct slice rest;

    return session_exec_get(payload, &got, &rest, err);
}

static int get_refused(struct slice payload, struct viv_error *err) {
    struct session_refused got;

    return session_refused_get(payload, &got, err);
}

static int get_file_end(struct slice payload, struct viv_error *err) {
    struct session_file_end got;

    return session_file_end_get(payload, &got, NULL, err);
}

static int get_done(struct slice payload, struct viv_error *err) {
    struct session_done got;

    return session_done_get(payload, &got, err);
}

static void check_sizes(get_function *get, const char *payload, size_t size) {
    struct viv_error err;

    for (size_t length = 0; length <= size + 1; length++) {
        CLEANUP(free_ptr) char *copy = viv_xcalloc(1, length + 1);
        memcpy(copy, payload, length < size ? length : size);
        if (length == size)
            assert_int_equal(get((struct slice){copy, length}, &err), 0);
        else
            assert_fails(get((struct slice){copy, length}, &err), &err, VIV_BAD_GATEWAY,
                         "malformed");
    }
}

static void every_other_size_is_refused(void **state) {
    const struct session_exec exec = {.number = 1};
    const struct session_refused refused = {SESSION_NO_ROOM, 1};
    const struct session_file_end end = {SESSION_TOO_LARGE, 1};
    const struct session_done done = {.outcome = SESSION_RAN};
    char payload[SESSION_EXEC_SIZE];

    (void)state;
    session_exec_put(payload, &exec);
    check_sizes(get_exec, payload, SESSION_EXEC_SIZE);
    session_refused_put(payload, &refused);
    check_sizes(get_refused, payload, SESSION_REFUSED_SIZE);
    session_file_end_put(payload, &end);
    check_sizes(get_file_end, payload, SESSION_FILE_END_SIZE);
    session_done_put(payload, &done);
    check_sizes(get_done, payload, SESSION_DONE_SIZE);
}

/* Puts every value into one byte of a payload: exactly those from `least` to
 * `most` pass. */
static void check_byte(get_function *get, char *payload, size_t size, size_t at,
                       int least, int most) {
    char saved = payload[at];
    struct viv_error err;

    for (int value = 0; value < 256; value++) {
        payload[at] = (char)value;
        int expected = value >= least && value <= most ? 0 : -1;
        assert_int_equal(get((struct slice){payload, size}, &err), expected);
    }
    payload[at] = saved;
}

static void every_wrong_byte_is_refused(void **state) {
    const struct session_exec exec = {.number = 1};
    const struct session_refused refused = {SESSION_NO_ROOM, 1};
    const struct session_file_end end = {SESSION_TOO_LARGE, 1};
    const struct session_done done = {.outcome = SESSION_RAN};
    char payload[SESSION_EXEC_SIZE];

    (void)state;
    session_exec_put(payload, &exec);
    check_byte(get_exec, payload, SESSION_EXEC_SIZE, 60, 0, 1);
    session_refused_put(payload, &refused);
    check_byte(get_refused, payload, SESSION_REFUSED_SIZE, 0, SESSION_NO_ROOM,
               SESSION_NOT_WRITTEN);
    session_file_end_put(payload, &end);
    check_byte(get_file_end, payload, SESSION_FILE_END_SIZE, 0, SESSION_INCLUDED,
               SESSION_LEFT_OUT_COUNT - 1);
    session_done_put(payload, &done);
    check_byte(get_done, payload, SESSION_DONE_SIZE, 16, SESSION_RAN,
               SESSION_OUTCOME_COUNT - 1);
    for (size_t at = 17; at < 20; at++)
        check_byte(get_done, payload, SESSION_DONE_SIZE, at, 0, 1);
    check_byte(get_done, payload, SESSION_DONE_SIZE, 38, SESSION_NOT_SKIPPED,
               SESSION_SKIPPED_COUNT - 1);
}

static void refused_comes_back_as_it_went(void **state) {
    const struct session_refused sent = {SESSION_IN_THE_WAY, UINT32_C(0xfedcba98)};
    char payload[SESSION_REFUSED_SIZE];
    struct session_refused got;

    (void)state;
    session_refused_put(payload, &sent);
    assert_int_equal(
        session_refused_get((struct slice){payload, sizeof payload}, &got, NULL), 0);
    assert_int_equal(got.reason, sent.reason);
    assert_int_equal(got.file, sent.file);
}

static void file_end_comes_back_with_its_rest(void **state) {
    const struct session_file_end sent = {SESSION_CHANGED, UINT64_C(0xfedcba9876543210)};
    char payload[SESSION_FILE_END_SIZE + 4] = "";
    struct session_file_end got;
    struct slice rest;

    (void)state;
    session_file_end_put(payload, &sent);
    memcpy(payload + SESSION_FILE_END_SIZE, "name", 4);
    assert_int_equal(
        session_file_end_get((struct slice){payload, sizeof payload}, &got, &rest, NULL),
        0);
    assert_int_equal(got.reason, sent.reason);
    assert_true(got.size == sent.size);
    assert_slice_equal(rest, "name");
}

static void done_comes_back_as_it_went(void **state) {
    const struct session_done sent = {
        .nonce = "fedcba987654321",
        .outcome = SESSION_CRASHED,
        .variables_lost = true,
        .stdout_truncated = false,
        .stderr_truncated = true,
        .signal = 11,
        .status = 200,
        .runtime_ms = UINT32_C(0xfedcba98),
        .files_left_out = UINT32_C(0x89abcdef),
        .checkpoint = UINT32_C(0x12345678),
        .restored_to = UINT32_C(0xabcdef01),
        .skipped = SESSION_HAS_OPEN_FILES,
    };
    char payload[SESSION_DONE_SIZE];
    struct session_done got;

    (void)state;
    session_done_put(payload, &sent);
    assert_int_equal(
        session_done_get((struct slice){payload, sizeof payload}, &got, NULL), 0);
    assert_memory_equal(got.nonce, sent.nonce, SESSION_NONCE_SIZE);
    assert_int_equal(got.outcome, sent.outcome);
    assert_true(got.variables_lost && !got.stdout_truncated && got.stderr_truncated);
    assert_int_equal(got.signal, 11);
    assert_int_equal(got.status, 200);
    assert_int_equal(got.runtime_ms, sent.runtime_ms);
    assert_int_equal(got.files_left_out, sent.files_left_out);
    assert_int_equal(got.checkpoint, sent.checkpoint);
    assert_int_equal(got.restored_to, sent.restored_to);
    assert_int_equal(got.skipped, sent.skipped);
}

static void claims_are_split_by_tag(void **state) {
    struct slice payload = SLICE("\x02\x05\0\0\0[1,2]"
                                 "\x01\x01\0\0\0\0"
                                 "\x03\0\0\0\0");
    struct slice claims[CLAIM_COUNT];

    (void)state;
    assert_int_equal(session_claims_get(payload, claims, NULL), 0);
    assert_slice_equal(claims[CLAIM_VALUE], "[1,2]");
    assert_int_equal(claims[CLAIM_STATUS].size, 1);
    assert_int_equal(claims[CLAIM_STATUS].data[0], 0);
    assert_non_null(claims[CLAIM_VALUE_TYPE].data);
    assert_int_equal(claims[CLAIM_VALUE_TYPE].size, 0);
    assert_null(claims[CLAIM_ERROR_TYPE].data);
    assert_null(claims[CLAIM_ERROR_LINE].data);
}

static void no_claims_are_no_failure(void **state) {
    struct slice claims[CLAIM_COUNT];

    (void)state;
    memset(claims, 0xff, sizeof claims);
    assert_int_equal(session_claims_get((struct slice){NULL, 0}, claims, NULL), 0);
    for (int tag = 0; tag < CLAIM_COUNT; tag++)
        assert_null(claims[tag].data);
}

static void malformed_claims_are_refused(void **state) {
    const struct slice payloads[] = {
        SLICE("\x01"),                              /* no length */
        SLICE("\x01\0\0\0"),                        /* part of a length */
        SLICE("\0\0\0\0\0"),                        /* tag 0 */
        SLICE("\x08\0\0\0\0"),                      /* an unknown tag */
        SLICE("\xff\0\0\0\0"),                      /* another */
        SLICE("\x01\x01\0\0\0"),                    /* a byte is missing */
        SLICE("\x01\xff\xff\xff\xff\0"),            /* very many are */
        SLICE("\x02\x01\0\0\0a\x02\x01\0\0\0b"),    /* a tag twice */
        SLICE("\x03\0\0\0\0\x03\0\0\0\0"),          /* also when it is empty */
        SLICE("\x01\x01\0\0\0\0\x02\x05\0\0\0abc"), /* the second is cut */
    };
    struct slice claims[CLAIM_COUNT];
    struct viv_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(payloads); i++) {
        CLEANUP(free_ptr) char *copy = viv_xmalloc(payloads[i].size);
        memcpy(copy, payloads[i].data, payloads[i].size);
        assert_fails(
            session_claims_get((struct slice){copy, payloads[i].size}, claims, &err),
            &err, VIV_BAD_GATEWAY, "malformed RESULT");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_has_its_direction_and_cap),
        cmocka_unit_test(exec_comes_back_as_it_went),
        cmocka_unit_test(exec_sizes_must_add_up),
        cmocka_unit_test(every_other_size_is_refused),
        cmocka_unit_test(every_wrong_byte_is_refused),
        cmocka_unit_test(refused_comes_back_as_it_went),
        cmocka_unit_test(file_end_comes_back_with_its_rest),
        cmocka_unit_test(done_comes_back_as_it_went),
        cmocka_unit_test(claims_are_split_by_tag),
        cmocka_unit_test(no_claims_are_no_failure),
        cmocka_unit_test(malformed_claims_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
