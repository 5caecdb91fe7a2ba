/* SPDX-License-Identifier: MIT */
/* Payloads of a session's frames: what is taken can be written again as it was. The first
 * byte of an input says which frame it is. */
#include "tests/fuzz/fuzz.h"

#include "common/executor_wire.h"
#include "common/session_wire.h"

static void check_exec(struct slice payload) {
    char again[SESSION_EXEC_SIZE];
    struct session_exec exec;
    struct slice rest;

    if (session_exec_get(payload, &exec, &rest, NULL))
        return;
    session_exec_put(again, &exec);
    MUST(memcmp(again, payload.data, sizeof again) == 0);
    MUST(rest.size == (size_t)exec.code_size + exec.stdin_size);
}

static void check_refused(struct slice payload) {
    char again[SESSION_REFUSED_SIZE];
    struct session_refused refused;

    if (session_refused_get(payload, &refused, NULL))
        return;
    session_refused_put(again, &refused);
    MUST(payload.size == sizeof again && memcmp(again, payload.data, sizeof again) == 0);
}

static void check_file_end(struct slice payload) {
    char again[SESSION_FILE_END_SIZE];
    struct session_file_end end;
    struct slice rest;

    if (session_file_end_get(payload, &end, &rest, NULL))
        return;
    session_file_end_put(again, &end);
    MUST(memcmp(again, payload.data, sizeof again) == 0);
    MUST(rest.size == payload.size - sizeof again);
}

static void check_done(struct slice payload) {
    char again[SESSION_DONE_SIZE];
    struct session_done done;

    if (session_done_get(payload, &done, NULL))
        return;
    session_done_put(again, &done);
    MUST(payload.size == sizeof again && memcmp(again, payload.data, sizeof again) == 0);
}

static void check_claims(struct slice payload) {
    struct slice claims[CLAIM_COUNT];
    size_t total = 0;

    if (session_claims_get(payload, claims, NULL))
        return;
    for (int tag = 0; tag < CLAIM_COUNT; tag++) {
        if (!claims[tag].data)
            continue;
        MUST(claims[tag].data >= payload.data + 5);
        MUST(claims[tag].data + claims[tag].size <= payload.data + payload.size);
        total += 5 + claims[tag].size;
    }
    MUST(total == payload.size);
}

static void check_executor(struct slice bytes) {
    char again[EXECUTOR_MESSAGE_MAX];
    struct executor_message message;

    if (executor_message_get(bytes, &message, NULL))
        return;
    MUST(executor_message_put(again, &message) == bytes.size);
    MUST(memcmp(again, bytes.data, bytes.size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static void (*const checks[])(struct slice) = {
        check_exec, check_refused, check_file_end,
        check_done, check_claims,  check_executor,
    };

    if (size > 0)
        checks[data[0] % (sizeof checks / sizeof *checks)](
            (struct slice){(const char *)data + 1, size - 1});
    return 0;
}
