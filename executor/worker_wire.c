/* SPDX-License-Identifier: MIT */
#include "executor/worker_wire.h"

#include <string.h>

int64_t worker_cap_to_worker(uint8_t type) {
    switch (type) {
    case WORKER_CALL:
        return WORKER_CALL_SIZE + SESSION_CODE_MAX + SESSION_STDIN_MAX;
    case WORKER_CHECKPOINT:
    case WORKER_PING:
    case WORKER_TRIM:
        return 0;
    default:
        return -1;
    }
}

int64_t worker_cap_to_supervisor(uint8_t type) {
    switch (type) {
    case WORKER_READY:
        return WORKER_READY_SIZE;
    case WORKER_RESULT:
        return SESSION_NONCE_SIZE + SESSION_CLAIMS_MAX;
    case WORKER_COPIED:
        return WORKER_COPIED_SIZE;
    case WORKER_RESTORED:
    case WORKER_PONG:
        return 0;
    default:
        return -1;
    }
}

void worker_call_put(char *to, const struct worker_call *call) {
    memcpy(to, call->nonce, SESSION_NONCE_SIZE);
    put_u32(to + 16, call->number);
    put_u32(to + 20, call->max_result);
    put_u32(to + 24, call->code_size);
    to[28] = call->has_stdin;
    put_u32(to + 29, call->stdin_size);
    to[33] = call->late_interrupt;
}

int worker_call_get(struct slice payload, struct worker_call *call, struct slice *code,
                    struct slice *standard_input, struct viv_error *err) {
    const char *from = payload.data;

    if (payload.size < WORKER_CALL_SIZE)
        return viv_fail(err, VIV_BAD_GATEWAY, "malformed CALL frame");
    memcpy(call->nonce, from, SESSION_NONCE_SIZE);
    call->number = get_u32(from + 16);
    call->max_result = get_u32(from + 20);
    call->code_size = get_u32(from + 24);
    call->has_stdin = from[28] != 0;
    call->stdin_size = get_u32(from + 29);
    call->late_interrupt = from[33] != 0;
    if (from[28] & ~1 || from[33] & ~1 ||
        (uint64_t)call->code_size + call->stdin_size != payload.size - WORKER_CALL_SIZE)
        return viv_fail(err, VIV_BAD_GATEWAY, "malformed CALL frame");
    *code = (struct slice){from + WORKER_CALL_SIZE, call->code_size};
    *standard_input = (struct slice){code->data + code->size, call->stdin_size};
    return 0;
}

int worker_result_get(const struct frame *frame, const unsigned char *nonce,
                      uint32_t number, struct slice *claims, struct viv_error *err) {
    struct slice payload = frame->payload, split[CLAIM_COUNT];

    if (frame->type != WORKER_RESULT || frame->sequence != number ||
        payload.size < SESSION_NONCE_SIZE ||
        memcmp(payload.data, nonce, SESSION_NONCE_SIZE) != 0)
        return viv_fail(err, VIV_BAD_GATEWAY, "not the result of this call");
    *claims = (struct slice){payload.data + SESSION_NONCE_SIZE,
                             payload.size - SESSION_NONCE_SIZE};
    if (session_claims_get(*claims, split, err))
        return -1;
    return session_claims_check(split, err);
}
