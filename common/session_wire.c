/* SPDX-License-Identifier: MIT */
#include "common/session_wire.h"

#include <string.h>

int64_t session_cap_to_supervisor(uint8_t type) {
    switch (type) {
    case SESSION_EXEC:
        return SESSION_EXEC_SIZE + SESSION_CODE_MAX + SESSION_STDIN_MAX;
    case SESSION_FILE:
        return SESSION_NAME_MAX;
    case SESSION_DATA:
        return SESSION_DATA_MAX;
    case SESSION_RUN:
    case SESSION_INTERRUPT:
        return 0;
    default:
        return -1;
    }
}

int64_t session_cap_to_client(uint8_t type) {
    switch (type) {
    case SESSION_FILE:
        return SESSION_NAME_MAX;
    case SESSION_DATA:
        return SESSION_DATA_MAX;
    case SESSION_REFUSED:
        return SESSION_REFUSED_SIZE;
    case SESSION_OUTPUT:
        return 1 + SESSION_OUTPUT_MAX;
    case SESSION_RESULT:
        return SESSION_CLAIMS_MAX;
    case SESSION_FILE_END:
        return SESSION_FILE_END_SIZE;
    case SESSION_LEFT_OUT:
        return SESSION_FILE_END_SIZE + SESSION_NAME_MAX;
    case SESSION_DONE:
        return SESSION_DONE_SIZE;
    default:
        return -1;
    }
}

static int malformed(struct viv_error *err, const char *what) {
    return viv_fail(err, VIV_BAD_GATEWAY, "malformed %s frame", what);
}

/* Checks the fixed part and tells what follows it. */
static int split(struct slice payload, size_t fixed, struct slice *rest) {
    if (payload.size < fixed || (!rest && payload.size != fixed))
        return -1;
    if (rest)
        *rest = (struct slice){payload.data + fixed, payload.size - fixed};
    return 0;
}

/* Reads a u8 that must be 0 or 1. */
static int get_bool(const char *from, bool *value) {
    if (*from != 0 && *from != 1)
        return -1;
    *value = *from;
    return 0;
}

void session_exec_put(char *to, const struct session_exec *exec) {
    memcpy(to, exec->nonce, SESSION_NONCE_SIZE);
    put_u32(to + 16, exec->number);
    put_u32(to + 20, exec->timeout_ms);
    put_u32(to + 24, exec->grace_ms);
    put_u32(to + 28, exec->max_output);
    put_u32(to + 32, exec->max_result);
    put_u32(to + 36, exec->max_output_files);
    put_u64(to + 40, exec->max_file_size);
    put_u64(to + 48, exec->max_output_total);
    put_u32(to + 56, exec->code_size);
    to[60] = exec->has_stdin;
    put_u32(to + 61, exec->stdin_size);
}

int session_exec_get(struct slice payload, struct session_exec *exec, struct slice *rest,
                     struct viv_error *err) {
    const char *from = payload.data;

    if (split(payload, SESSION_EXEC_SIZE, rest) || get_bool(from + 60, &exec->has_stdin))
        return malformed(err, "EXEC");
    memcpy(exec->nonce, from, SESSION_NONCE_SIZE);
    exec->number = get_u32(from + 16);
    exec->timeout_ms = get_u32(from + 20);
    exec->grace_ms = get_u32(from + 24);
    exec->max_output = get_u32(from + 28);
    exec->max_result = get_u32(from + 32);
    exec->max_output_files = get_u32(from + 36);
    exec->max_file_size = get_u64(from + 40);
    exec->max_output_total = get_u64(from + 48);
    exec->code_size = get_u32(from + 56);
    exec->stdin_size = get_u32(from + 61);
    if (exec->code_size > SESSION_CODE_MAX || exec->stdin_size > SESSION_STDIN_MAX ||
        exec->code_size + exec->stdin_size != payload.size - SESSION_EXEC_SIZE ||
        (exec->stdin_size > 0 && !exec->has_stdin))
        return malformed(err, "EXEC");
    return 0;
}

void session_refused_put(char *to, const struct session_refused *refused) {
    to[0] = (char)refused->reason;
    put_u32(to + 1, refused->file);
}

int session_refused_get(struct slice payload, struct session_refused *refused,
                        struct viv_error *err) {
    if (split(payload, SESSION_REFUSED_SIZE, NULL))
        return malformed(err, "REFUSED");
    uint8_t reason = (uint8_t)payload.data[0];
    if (reason < SESSION_NO_ROOM || reason > SESSION_NOT_WRITTEN)
        return malformed(err, "REFUSED");
    refused->reason = (enum session_refusal)reason;
    refused->file = get_u32(payload.data + 1);
    return 0;
}

void session_file_end_put(char *to, const struct session_file_end *end) {
    to[0] = (char)end->reason;
    put_u64(to + 1, end->size);
}

int session_file_end_get(struct slice payload, struct session_file_end *end,
                         struct slice *rest, struct viv_error *err) {
    if (split(payload, SESSION_FILE_END_SIZE, rest))
        return malformed(err, "file");
    uint8_t reason = (uint8_t)payload.data[0];
    if (reason >= SESSION_LEFT_OUT_COUNT)
        return malformed(err, "file");
    end->reason = (enum session_left_out)reason;
    end->size = get_u64(payload.data + 1);
    return 0;
}

void session_done_put(char *to, const struct session_done *done) {
    memcpy(to, done->nonce, SESSION_NONCE_SIZE);
    to[16] = (char)done->outcome;
    to[17] = done->variables_lost;
    to[18] = done->stdout_truncated;
    to[19] = done->stderr_truncated;
    to[20] = (char)done->signal;
    to[21] = (char)done->status;
    put_u32(to + 22, done->runtime_ms);
    put_u32(to + 26, done->files_left_out);
    put_u32(to + 30, done->checkpoint);
    put_u32(to + 34, done->restored_to);
    to[38] = (char)done->skipped;
}

int session_done_get(struct slice payload, struct session_done *done,
                     struct viv_error *err) {
    const char *from = payload.data;

    if (split(payload, SESSION_DONE_SIZE, NULL))
        return malformed(err, "DONE");
    uint8_t outcome = (uint8_t)from[16], skipped = (uint8_t)from[38];
    if (outcome < SESSION_RAN || outcome >= SESSION_OUTCOME_COUNT ||
        skipped >= SESSION_SKIPPED_COUNT || get_bool(from + 17, &done->variables_lost) ||
        get_bool(from + 18, &done->stdout_truncated) ||
        get_bool(from + 19, &done->stderr_truncated))
        return malformed(err, "DONE");
    memcpy(done->nonce, from, SESSION_NONCE_SIZE);
    done->outcome = (enum session_outcome)outcome;
    done->signal = (uint8_t)from[20];
    done->status = (uint8_t)from[21];
    done->runtime_ms = get_u32(from + 22);
    done->files_left_out = get_u32(from + 26);
    done->checkpoint = get_u32(from + 30);
    done->restored_to = get_u32(from + 34);
    done->skipped = (enum session_skipped)skipped;
    return 0;
}

int session_claims_get(struct slice payload, struct slice claims[CLAIM_COUNT],
                       struct viv_error *err) {
    const char *next = payload.data;
    size_t rest = payload.size;

    memset(claims, 0, CLAIM_COUNT * sizeof *claims);
    while (rest > 0) {
        if (rest < 5)
            return malformed(err, "RESULT");
        uint8_t tag = (uint8_t)next[0];
        uint32_t size = get_u32(next + 1);
        if (tag < CLAIM_STATUS || tag >= CLAIM_COUNT || claims[tag].data ||
            size > rest - 5)
            return malformed(err, "RESULT");
        claims[tag] = (struct slice){next + 5, size};
        next += 5 + (size_t)size;
        rest -= 5 + (size_t)size;
    }
    return 0;
}

/* Absent, or of that many bytes. */
static bool is_of_size(struct slice claim, size_t size) {
    return !claim.data || claim.size == size;
}

int session_claims_check(const struct slice claims[CLAIM_COUNT], struct viv_error *err) {
    struct slice status = claims[CLAIM_STATUS];

    if (!status.data || status.size != 1 || (unsigned char)status.data[0] > 1 ||
        !is_of_size(claims[CLAIM_VALUE_CUT], 1) ||
        !is_of_size(claims[CLAIM_ERROR_LINE], 4) ||
        (status.data[0] == 1 && claims[CLAIM_ERROR_TYPE].size == 0))
        return malformed(err, "RESULT");
    return 0;
}
