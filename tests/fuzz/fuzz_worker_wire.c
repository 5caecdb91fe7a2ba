/* SPDX-License-Identifier: MIT */
/* Payloads on a worker's channel. The first byte of an input says which end it comes to:
 * 0 the supervisor, as a RESULT, of which only the one that was asked for is taken;
 * otherwise the worker, as a CALL. */
#include "tests/fuzz/fuzz.h"

#include "executor/worker_wire.h"

#define NUMBER 7

static void check_result(struct slice payload) {
    static const unsigned char nonce[SESSION_NONCE_SIZE] = "0123456789abcdef";
    const struct frame frame = {WORKER_RESULT, NUMBER, payload};
    struct slice claims, parts[CLAIM_COUNT];

    MUST(worker_result_get(&frame, nonce, NUMBER + 1, &claims, NULL) != 0);
    if (worker_result_get(&frame, nonce, NUMBER, &claims, NULL))
        return;
    MUST(memcmp(payload.data, nonce, sizeof nonce) == 0);
    MUST(claims.data == payload.data + sizeof nonce);
    MUST(claims.size == payload.size - sizeof nonce);
    MUST(session_claims_get(claims, parts, NULL) == 0);
}

static void check_call(struct slice payload) {
    char again[WORKER_CALL_SIZE];
    struct worker_call call;
    struct slice code, input;

    if (worker_call_get(payload, &call, &code, &input, NULL))
        return;
    worker_call_put(again, &call);
    MUST(memcmp(again, payload.data, sizeof again) == 0);
    MUST(code.size == call.code_size);
    MUST(code.size + input.size == payload.size - sizeof again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    struct slice payload = {(const char *)data + 1, size - 1};
    if (data[0] == 0)
        check_result(payload);
    else
        check_call(payload);
    return 0;
}
