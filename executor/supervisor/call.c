/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/call.h"

#include <string.h>

#define SEND_LIMIT_MS 5000
#define TAKEN_MS      200

int call_begin(struct call *call, int home, const struct frame *frame,
               struct viv_error *err) {
    struct slice text;

    if (call->phase != CALL_NONE || frame->type != SESSION_EXEC)
        return viv_fail(err, VIV_BAD_GATEWAY, "a frame of type %u without a call",
                        frame->type);
    *call = (struct call){.sequence = frame->sequence};
    upload_init(&call->upload, home);
    if (session_exec_get(frame->payload, &call->exec, &text, err) ||
        buffer_append(&call->text, text.data, text.size, text.size, err))
        return -1;
    call->phase = CALL_RECEIVING;
    return 0;
}

int call_receive_file(struct call *call, const struct frame *frame,
                      struct viv_error *err) {
    if (call->phase != CALL_RECEIVING || frame->sequence != call->sequence)
        return viv_fail(err, VIV_BAD_GATEWAY, "a file out of its call");
    if (frame->type == SESSION_FILE) {
        upload_open(&call->upload, frame->payload);
        return 0;
    }
    if (frame->type != SESSION_DATA || (call->upload.file < 0 && !call->upload.failed))
        return viv_fail(err, VIV_BAD_GATEWAY, "content without a file");
    upload_write(&call->upload, frame->payload);
    return 0;
}

struct worker_call call_for_worker(const struct call *call) {
    struct worker_call made = {
        .number = call->exec.number,
        .max_result = call->exec.max_result,
        .code_size = call->exec.code_size,
        .has_stdin = call->exec.has_stdin,
        .stdin_size = call->exec.stdin_size,
    };

    memcpy(made.nonce, call->exec.nonce, sizeof made.nonce);
    return made;
}

static void set_deadline(struct call *call, viv_time deadline) {
    call->deadline = deadline > call->earliest ? deadline : call->earliest;
}

void call_set_time(struct call *call, bool late_interrupt) {
    call->began = viv_now();
    call->earliest = call->began + (late_interrupt ? TAKEN_MS * VIV_MS : 0);
    set_deadline(call,
                 call->unwanted ? call->began : viv_after_ms(call->exec.timeout_ms));
}

void call_interrupt(struct call *call, uint32_t sequence) {
    if (call->phase == CALL_NONE || call->sequence != sequence || call->interrupted)
        return;
    call->unwanted = true;
    if (call->phase == CALL_RUNNING)
        set_deadline(call, viv_now());
}

uint32_t call_runtime_ms(const struct call *call) {
    return (uint32_t)((viv_now() - call->began + VIV_MS / 2) / VIV_MS);
}

void call_fill_done(const struct call *call, struct session_done *done) {
    memcpy(done->nonce, call->exec.nonce, sizeof done->nonce);
    done->checkpoint = call->checkpoint;
    done->skipped = call->skipped;
    done->stdout_truncated = call->output[0].truncated;
    done->stderr_truncated = call->output[1].truncated;
}

bool call_takes_frames(const struct call *call) {
    return call->phase == CALL_NONE || call->phase == CALL_RECEIVING;
}

int64_t call_send_limit_ms(const struct call *call) {
    int64_t all = (int64_t)call->exec.timeout_ms + call->exec.grace_ms;

    return all < SEND_LIMIT_MS ? all : SEND_LIMIT_MS;
}

size_t call_admit_output(struct call *call, int stream, size_t size) {
    struct call_output *output = &call->output[stream];
    uint64_t room = call->exec.max_output - output->sent;

    if (size > room) {
        output->truncated = true;
        size = (size_t)room;
    }
    output->sent += size;
    return size;
}

void call_end(struct call *call) {
    if (call->phase == CALL_NONE)
        return;
    buffer_clear(&call->text);
    upload_clear(&call->upload);
    home_snapshot_clear(&call->before);
    *call = (struct call){0};
}
