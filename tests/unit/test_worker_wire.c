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
};

static void each_type_has_its_direction_and_cap(void **state) {
    (void)state;
    for (int type = 0; type < 256; type++) {
        assert_int_equal(worker_cap_to_worker((uint8_t)type) >= 0, type == WORKER_CALL);
        assert_int_equal(worker_cap_to_supervisor((uint8_t)type) >= 0,
                         type == WORKER_READY || type == WORKER_RESULT);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_type_has_its_direction_and_cap),
        cmocka_unit_test(the_largest_call_fits),
        cmocka_unit_test(a_call_comes_back_as_it_went),
        cmocka_unit_test(no_input_differs_from_an_empty_one),
        cmocka_unit_test(a_call_of_another_length_is_malformed),
        cmocka_unit_test(huge_sizes_are_malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
