/* SPDX-License-Identifier: MIT */
/* Sending a request and taking the frames that answer it. */
#include "fcgi-app/sandbox_call.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/cleanup.h"
#include "common/filename.h"
#include "common/io.h"
#include "fcgi-app/base64.h"

bool sandbox_channel_is_clean(int channel) {
    struct pollfd waited = {.fd = channel, .events = POLLIN | POLLRDHUP};

    return poll(&waited, 1, 0) == 0;
}

/* ---- the request ---- */

struct sending {
    const struct sandbox_call *call;
    viv_time deadline;
};

static int send_data(void *context, const char *data, size_t size,
                     struct viv_error *err) {
    const struct sending *sending = context;
    struct iovec payload = {(void *)data, size};

    return frame_send(sending->call->channel, SESSION_DATA, sending->call->sequence,
                      &payload, 1, sending->deadline, err);
}

static int send_file(struct sending *sending, const struct exec_file *file,
                     struct viv_error *err) {
    struct iovec name = {(void *)file->name.data, file->name.size};

    if (frame_send(sending->call->channel, SESSION_FILE, sending->call->sequence, &name,
                   1, sending->deadline, err))
        return -1;
    return base64_decode(file->base64, send_data, sending, err);
}

static uint64_t max_total(const struct settings *settings) {
    return SANDBOX_TOTAL_FILES * settings->max_file_size;
}

static void fill_exec(const struct sandbox_call *call, const struct exec_request *request,
                      struct session_exec *exec) {
    const struct settings *settings = call->settings;

    *exec = (struct session_exec){
        .number = (uint32_t)call->number,
        .timeout_ms = call->timeout_ms,
        .grace_ms = (uint32_t)settings->interrupt_grace,
        .max_output = (uint32_t)settings->max_output,
        .max_result = (uint32_t)settings->max_result,
        .max_output_files = (uint32_t)settings->max_output_files,
        .max_file_size = settings->max_file_size,
        .max_output_total = max_total(settings),
        .code_size = (uint32_t)request->code.size,
        .has_stdin = request->has_input,
        .stdin_size = (uint32_t)request->input.size,
    };
    memcpy(exec->nonce, call->nonce, sizeof exec->nonce);
}

/* Sends EXEC, and RUN with it where nothing comes between: the supervisor then wakes
 * once. */
static int send_exec(const struct sending *sending, const struct exec_request *request,
                     struct viv_error *err) {
    const struct sandbox_call *call = sending->call;
    char exec_header[FRAME_HEADER_SIZE], run_header[FRAME_HEADER_SIZE];
    char fixed[SESSION_EXEC_SIZE];
    struct session_exec exec;
    struct iovec vectors[] = {{exec_header, sizeof exec_header},
                              {fixed, sizeof fixed},
                              {(void *)request->code.data, request->code.size},
                              {(void *)request->input.data, request->input.size},
                              {run_header, sizeof run_header}};
    int count = request->file_count == 0 ? 5 : 4;

    fill_exec(call, request, &exec);
    session_exec_put(fixed, &exec);
    frame_put_header(exec_header, SESSION_EXEC, call->sequence,
                     (uint32_t)(sizeof fixed + request->code.size + request->input.size));
    frame_put_header(run_header, SESSION_RUN, call->sequence, 0);
    return io_write_full(call->channel, vectors, count, sending->deadline, err);
}

int sandbox_call_send(struct sandbox_call *call, const struct exec_request *request,
                      struct viv_error *err) {
    struct sending sending = {call, viv_after_ms(SANDBOX_SEND_MS)};

    if (getrandom(call->nonce, sizeof call->nonce, 0) != (ssize_t)sizeof call->nonce)
        return viv_fail(err, VIV_SYSTEM, "getrandom: %m");
    if (send_exec(&sending, request, err))
        return -1;
    if (request->file_count == 0)
        return 0;
    for (size_t i = 0; i < request->file_count; i++)
        if (send_file(&sending, &request->files[i], err))
            return -1;
    return frame_send(call->channel, SESSION_RUN, call->sequence, NULL, 0,
                      sending.deadline, err);
}

/* ---- the frames that answer it ---- */

/* Where in `OUTPUT* RESULT? (FILE DATA* FILE_END | LEFT_OUT)* OUTPUT* DONE` the next
 * frame is. */
enum phase {
    NOWHERE,
    AT_START,
    IN_OUTPUT,
    AFTER_RESULT,
    AT_FILES,
    IN_FILE,
    AT_END,
    OVER
};

/* The phase that a frame leads to; NOWHERE is a breach. */
static const unsigned char next_phase[][SESSION_DONE + 1] = {
    [AT_START] = {[SESSION_REFUSED] = OVER,
                  [SESSION_OUTPUT] = IN_OUTPUT,
                  [SESSION_RESULT] = AFTER_RESULT,
                  [SESSION_FILE] = IN_FILE,
                  [SESSION_LEFT_OUT] = AT_FILES,
                  [SESSION_DONE] = OVER},
    [IN_OUTPUT] = {[SESSION_OUTPUT] = IN_OUTPUT,
                   [SESSION_RESULT] = AFTER_RESULT,
                   [SESSION_FILE] = IN_FILE,
                   [SESSION_LEFT_OUT] = AT_FILES,
                   [SESSION_DONE] = OVER},
    [AFTER_RESULT] = {[SESSION_OUTPUT] = AT_END,
                      [SESSION_FILE] = IN_FILE,
                      [SESSION_LEFT_OUT] = AT_FILES,
                      [SESSION_DONE] = OVER},
    [AT_FILES] = {[SESSION_OUTPUT] = AT_END,
                  [SESSION_FILE] = IN_FILE,
                  [SESSION_LEFT_OUT] = AT_FILES,
                  [SESSION_DONE] = OVER},
    [IN_FILE] = {[SESSION_DATA] = IN_FILE, [SESSION_FILE_END] = AT_FILES},
    [AT_END] = {[SESSION_OUTPUT] = AT_END, [SESSION_DONE] = OVER},
};

struct receiving {
    const struct sandbox_call *call;
    struct call_result *result;
    enum phase phase;
    viv_time lasts_at;  /* when the caller is to be told, VIV_TIME_NEVER when it was */
    uint64_t output[2]; /* bytes that came */
    uint32_t files, left_out;
    uint64_t total; /* bytes of all files */
    /* The open file. */
    char name[SESSION_NAME_MAX];
    size_t name_size;
    uint64_t size;
    struct buffer content;
    const char *refusal; /* why it will not be in the answer, or NULL */
};

static int breach(struct viv_error *err, const char *what) {
    return viv_fail(err, VIV_BAD_GATEWAY, "the sandbox broke the protocol: %s", what);
}

static int take_output(struct receiving *state, struct slice payload,
                       struct viv_error *err) {
    uint64_t limit = state->call->settings->max_output;

    if (payload.size < 2 || (payload.data[0] != 1 && payload.data[0] != 2))
        return breach(err, "malformed output");
    int stream = payload.data[0] - 1;
    struct slice data = {payload.data + 1, payload.size - 1};
    state->output[stream] += data.size;
    if (state->output[stream] > limit)
        return breach(err, "too much output");
    call_result_add_output(state->result, stream, data);
    return 0;
}

static void drop_content(struct receiving *state, const char *refusal) {
    budget_give_back(&state->result->share, state->content.size);
    buffer_clear(&state->content);
    state->refusal = refusal;
}

static int open_file(struct receiving *state, struct slice name, struct viv_error *err) {
    if (++state->files > state->call->settings->max_output_files)
        return breach(err, "too many files");
    memcpy(state->name, name.data, name.size);
    state->name_size = name.size;
    state->size = 0;
    state->refusal =
        filename_refusal(name) ? call_left_out_word(SESSION_NAME_REFUSED) : NULL;
    return 0;
}

static int take_data(struct receiving *state, struct slice data, struct viv_error *err) {
    const struct settings *settings = state->call->settings;

    state->size += data.size;
    state->total += data.size;
    if (data.size == 0 || state->size > settings->max_file_size ||
        state->total > max_total(settings))
        return breach(err, "too much of a file");
    if (state->refusal)
        return 0;
    if (!budget_take(&state->result->share, data.size)) {
        drop_content(state, CALL_NO_ROOM);
    } else if (buffer_append(&state->content, data.data, data.size, SIZE_MAX / 2, NULL)) {
        budget_give_back(&state->result->share, data.size);
        drop_content(state, CALL_NO_ROOM);
    }
    return 0;
}

static int end_file(struct receiving *state, struct slice payload,
                    struct viv_error *err) {
    struct slice name = {state->name, state->name_size};
    struct session_file_end end;

    if (session_file_end_get(payload, &end, NULL, err))
        return -1;
    if (end.reason != SESSION_INCLUDED)
        drop_content(state, call_left_out_word(end.reason));
    else if (end.size != state->size)
        return breach(err, "a file of another size");
    if (state->refusal)
        call_result_add_left_out(state->result, name, end.size, state->refusal);
    else
        call_result_add_file(state->result, name, &state->content);
    return 0;
}

static int take_left_out(struct receiving *state, struct slice payload,
                         struct viv_error *err) {
    struct session_file_end end;
    struct slice name;

    if (session_file_end_get(payload, &end, &name, err))
        return -1;
    if (end.reason == SESSION_INCLUDED || name.size == 0 ||
        ++state->left_out > SESSION_LEFT_OUT_MAX)
        return breach(err, "a file left out");
    call_result_add_left_out(state->result, name, end.size,
                             call_left_out_word(end.reason));
    return 0;
}

static int take_done(struct receiving *state, struct slice payload,
                     struct viv_error *err) {
    struct call_result *result = state->result;

    if (session_done_get(payload, &result->done, err))
        return -1;
    if (memcmp(result->done.nonce, state->call->nonce, SESSION_NONCE_SIZE) != 0)
        return breach(err, "the verdict of another call");
    if (result->done.outcome == SESSION_RAN && !result->has_claims)
        return breach(err, "a verdict without a result");
    result->streams[0].truncated |= result->done.stdout_truncated;
    result->streams[1].truncated |= result->done.stderr_truncated;
    result->left_out_unnamed += result->done.files_left_out;
    result->runtime_ms = result->done.runtime_ms;
    result->end = CALL_DONE;
    return 0;
}

static int take_frame(struct receiving *state, const struct frame *frame,
                      struct viv_error *err) {
    /* The reader lets no type through that is above SESSION_DONE. */
    enum phase next = next_phase[state->phase][frame->type];

    if (next == NOWHERE || frame->sequence != state->call->sequence)
        return breach(err, "a frame out of order");
    state->phase = next;
    switch (frame->type) {
    case SESSION_OUTPUT:
        return take_output(state, frame->payload, err);
    case SESSION_RESULT:
        return call_result_add_claims(state->result, frame->payload, err);
    case SESSION_FILE:
        return open_file(state, frame->payload, err);
    case SESSION_DATA:
        return take_data(state, frame->payload, err);
    case SESSION_FILE_END:
        return end_file(state, frame->payload, err);
    case SESSION_LEFT_OUT:
        return take_left_out(state, frame->payload, err);
    case SESSION_DONE:
        return take_done(state, frame->payload, err);
    default:
        state->result->end = CALL_REFUSED;
        return session_refused_get(frame->payload, &state->result->refused, err);
    }
}

static int wait_for_frame(struct receiving *state, struct frame_reader *reader,
                          struct frame *frame, viv_time deadline, struct viv_error *err) {
    const struct sandbox_call *call = state->call;

    if (state->lasts_at < deadline) {
        if (viv_now() < state->lasts_at &&
            frame_reader_wait(reader, call->channel, frame, state->lasts_at, err) == 0)
            return 0;
        if (viv_now() < state->lasts_at)
            return -1;
        state->lasts_at = VIV_TIME_NEVER;
        call->lasts(call->context);
    }
    return frame_reader_wait(reader, call->channel, frame, deadline, err);
}

static int take_frames(struct receiving *state, viv_time deadline,
                       struct viv_error *err) {
    CLEANUP(frame_reader_clear)
    struct frame_reader reader = {.cap = session_cap_to_client};
    struct frame frame;

    while (state->phase != OVER) {
        if (wait_for_frame(state, &reader, &frame, deadline, err) ||
            take_frame(state, &frame, err))
            return -1;
    }
    /* What came with the last frame would be lost with the reader, unseen. */
    return frame_reader_pending(&reader) > 0 ? breach(err, "bytes behind the verdict")
                                             : 0;
}

void sandbox_call_receive(struct sandbox_call *call, struct call_result *result,
                          struct viv_error *err) {
    struct receiving *state = viv_xcalloc(1, sizeof *state);
    viv_time begun = viv_now();
    int64_t limit_ms =
        call->timeout_ms + (int64_t)call->settings->interrupt_grace + SANDBOX_COLLECT_MS;

    *state = (struct receiving){
        .call = call,
        .result = result,
        .phase = AT_START,
        .lasts_at = call->lasts ? viv_after_ms(SANDBOX_LASTS_MS) : VIV_TIME_NEVER,
    };
    if (take_frames(state, viv_after_ms(limit_ms), err)) {
        result->end = err->code == VIV_TIMED_OUT ? CALL_OVERDUE : CALL_BROKEN;
        result->runtime_ms = (uint64_t)((viv_now() - begun) / VIV_MS);
    }
    buffer_clear(&state->content);
    free(state);
    call_result_finish(result);
}
