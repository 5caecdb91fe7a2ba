/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "executor/worker_wire.h"

static const struct worker_call example = {
    .nonce = "0123456789abcde",
    .number = 0x01020304,
    .max_result = 0x11121314,
    .code_size = 4,
    .has_stdin = true,
    .stdin_size = 3,
    .late_interrupt = true,
};

static void each_type_has_its_direction_and_cap(void **state) {
    (void)state;
    for (int type = 0; type < 256; type++) {
        assert_int_equal(worker_cap_to_worker((uint8_t)type) >= 0,
                         type == WORKER_CALL || type == WORKER_CHECKPOINT ||
                             type == WORKER_PING || type == WORKER_TRIM);
        assert_int_equal(worker_cap_to_supervisor((uint8_t)type) >= 0,
                         type == WORKER_READY || type == WORKER_RESULT ||
                             type == WORKER_COPIED || type == WORKER_RESTORED ||
                             type == WORKER_PONG);
    }
    assert_int_equal(worker_cap_to_supervisor(WORKER_READY), WORKER_READY_SIZE);
    assert_int_equal(worker_cap_to_supervisor(WORKER_RESULT),
                     SESSION_NONCE_SIZE + SESSION_CLAIMS_MAX);
}

static void the_largest_call_fits(void **state) {
    (void)state;
    assert_true(worker_cap_to_worker(WORKER_CALL) >=
                (int64_t)WORKER_CALL_SIZE + SESSION_CODE_MAX + SESSION_STDIN_MAX);
}

static void a_call_comes_back_as_it_went(void **state) {
    char payload[WORKER_CALL_SIZE + 7];
    struct worker_call got = {0};
    struct slice code, standard_input;

    (void)state;
    worker_call_put(payload, &example);
    memcpy(payload + WORKER_CALL_SIZE, "codein\n", 7);
    assert_int_equal(worker_call_get((struct slice){payload, sizeof payload}, &got, &code,
                                     &standard_input, NULL),
                     0);
    assert_memory_equal(got.nonce, example.nonce, SESSION_NONCE_SIZE);
    assert_int_equal(got.number, example.number);
    assert_int_equal(got.max_result, example.max_result);
    assert_true(got.has_stdin);
    assert_true(got.late_interrupt);
    assert_slice_equal(code, "code");
    assert_slice_equal(standard_input, "in\n");
}

static void no_input_differs_from_an_empty_one(void **state) {
    char payload[WORKER_CALL_SIZE];
    struct worker_call call = {.number = 1};
    struct slice code, standard_input;

    (void)state;
    for (int has = 0; has < 2; has++) {
        struct worker_call got;
        call.has_stdin = has;
        worker_call_put(payload, &call);
        assert_int_equal(worker_call_get((struct slice){payload, sizeof payload}, &got,
                                         &code, &standard_input, NULL),
                         0);
        assert_int_equal(got.has_stdin, has);
        assert_int_equal(standard_input.size, 0);
    }
}

static void a_call_of_another_length_is_malformed(void **state) {
    char payload[WORKER_CALL_SIZE + 8] = {0};
    struct worker_call got;
    struct slice code, standard_input;
    struct viv_error err;

    (void)state;
    worker_call_put(payload, &example);
    for (size_t size = 0; size <= sizeof payload; size++) {
        if (size == WORKER_CALL_SIZE + 7)
            continue;
        assert_fails(worker_call_get((struct slice){payload, size}, &got, &code,
                                     &standard_input, &err),
                     &err, VIV_BAD_GATEWAY, "malformed");
    }
}

/* The sum of both sizes does not wrap round to that of the payload. */
static void huge_sizes_are_malformed(void **state) {
    char payload[WORKER_CALL_SIZE + 7] = {0};
    const struct {
        uint32_t code, input;
    } sizes[] = {{UINT32_MAX, 8},
                 {8, UINT32_MAX},
                 {UINT32_MAX, UINT32_MAX},
                 {0x80000000, 0x80000007},
                 {8, 0}};
    struct worker_call call = example;
    struct slice code, standard_input;
    struct viv_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        call.code_size = sizes[i].code;
        call.stdin_size = sizes[i].input;
        worker_call_put(payload, &call);
        assert_fails(worker_call_get((struct slice){payload, sizeof payload}, &call,
                                     &code, &standard_input, &err),
                     &err, VIV_BAD_GATEWAY, "malformed");
    }
}

/* A RESULT of call 5 with the given claims, which are text here. */
static int get_result(uint8_t type, uint32_t sequence, const char *nonce,
                      struct slice claims, struct viv_error *err) {
    char payload[SESSION_NONCE_SIZE + 64];
    struct frame frame = {type, sequence, {payload, SESSION_NONCE_SIZE + claims.size}};
    struct slice got;

    memcpy(payload, nonce, SESSION_NONCE_SIZE);
    memcpy(payload + SESSION_NONCE_SIZE, claims.data, claims.size);
    if (worker_result_get(&frame, example.nonce, 5, &got, err))
        return -1;
    assert_int_equal(got.size, claims.size);
    assert_ptr_equal(got.data, payload + SESSION_NONCE_SIZE);
    return 0;
}

#define NONCE  "0123456789abcde"
#define STATUS "\1\1\0\0\0"

static void takes_the_result_of_its_call(void **state) {
    static const struct slice claims[] = {
        SLICE(STATUS "\0"),
        SLICE(STATUS "\0"
                     "\2\1\0\0\0"
                     "7\3\3\0\0\0int\4\1\0\0\0\1"),
        SLICE(STATUS "\1"
                     "\5\1\0\0\0"
                     "E\6\0\0\0\0\7\4\0\0\0\1\0\0\0"),
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(claims); i++)
        assert_int_equal(get_result(WORKER_RESULT, 5, NONCE, claims[i], NULL), 0);
}

static void takes_no_other_result(void **state) {
    const struct slice claims = SLICE(STATUS "\0");
    const struct frame cut = {WORKER_RESULT, 5, {NONCE, SESSION_NONCE_SIZE - 1}};
    struct slice got;
    struct viv_error err;

    (void)state;
    assert_fails(get_result(WORKER_READY, 5, NONCE, claims, &err), &err, VIV_BAD_GATEWAY,
                 "not the result");
    assert_fails(get_result(WORKER_CALL, 5, NONCE, claims, &err), &err, VIV_BAD_GATEWAY,
                 "not the result");
    assert_fails(get_result(WORKER_RESULT, 4, NONCE, claims, &err), &err, VIV_BAD_GATEWAY,
                 "not the result");
    assert_fails(get_result(WORKER_RESULT, 5, "0123456789abcdE", claims, &err), &err,
                 VIV_BAD_GATEWAY, "not the result");
    assert_fails(worker_result_get(&cut, example.nonce, 5, &got, &err), &err,
                 VIV_BAD_GATEWAY, "not the result");
}

/* The client would take the sandbox for broken, where only the worker is. */
static void claims_of_another_form_are_refused(void **state) {
    static const struct slice claims[] = {
        SLICE(""),
        SLICE("garbage"),
        SLICE("\2\1\0\0\0"
              "7"),                                /* no status */
        SLICE(STATUS "\2"),                        /* a status that is none */
        SLICE("\1\0\0\0\0"),                       /* of no size */
        SLICE("\1\2\0\0\0\0\0"),                   /* of another size */
        SLICE(STATUS "\0" STATUS "\0"),            /* twice */
        SLICE(STATUS "\0\4\2\0\0\0\0\0"),          /* a flag of two bytes */
        SLICE(STATUS "\1\5\1\0\0\0E\7\1\0\0\0\1"), /* a line of one byte */
        SLICE(STATUS "\1"),                        /* an exception without a type */
        SLICE(STATUS "\1\5\0\0\0\0"),              /* with an empty one */
        SLICE(STATUS "\0\2\377\377\377\377"),      /* longer than the frame */
        SLICE(STATUS "\0\10\0\0\0\0"),             /* an unknown tag */
    };
    struct viv_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(claims); i++)
        assert_fails(get_result(WORKER_RESULT, 5, NONCE, claims[i], &err), &err,
                     VIV_BAD_GATEWAY, "malformed RESULT");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_has_its_direction_and_cap),
        cmocka_unit_test(the_largest_call_fits),
        cmocka_unit_test(a_call_comes_back_as_it_went),
        cmocka_unit_test(no_input_differs_from_an_empty_one),
        cmocka_unit_test(a_call_of_another_length_is_malformed),
        cmocka_unit_test(huge_sizes_are_malformed),
        cmocka_unit_test(takes_the_result_of_its_call),
        cmocka_unit_test(takes_no_other_result),
        cmocka_unit_test(claims_of_another_form_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
