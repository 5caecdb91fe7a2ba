/* SPDX-License-Identifier: MIT */
/* Taking the frames that answer a request. */
#include "fcgi-app/sandbox_call.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/filename.h"

bool sandbox_channel_is_clean(int channel) {
    struct pollfd waited = {.fd = channel, .events = POLLIN | POLLRDHUP};

    return poll(&waited, 1, 0) == 0;
}

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
    viv_time deadline;
    viv_time ask_at;    /* when it is to be asked what is wanted */
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

static uint64_t max_total(const struct settings *settings) {
    return SANDBOX_TOTAL_FILES * settings->max_file_size;
}

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
    if (result->done.checkpoint >= state->call->number ||
        result->done.restored_to >= state->call->number)
        return breach(err, "a checkpoint of a later execution");
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

/* Interrupts the code, once, and waits no longer than its grace from then on. */
static int interrupt(struct receiving *state, struct viv_error *err) {
    const struct sandbox_call *call = state->call;
    viv_time latest = viv_after_ms(
        call->before_ms + (int64_t)call->settings->interrupt_grace + SANDBOX_COLLECT_MS);

    if (state->result->interrupted)
        return 0;
    state->result->interrupted = true;
    if (latest < state->deadline)
        state->deadline = latest;
    return frame_send(call->channel, SESSION_INTERRUPT, call->sequence, NULL, 0,
                      viv_after_ms(SANDBOX_SEND_MS), err);
}

static int heed_wish(struct receiving *state, struct viv_error *err) {
    const struct sandbox_call *call = state->call;
    uint64_t rings;

    /* Before the question, so that what is wanted after it rings again. */
    if (call->bell >= 0 && read(call->bell, &rings, sizeof rings) < 0 && errno != EAGAIN)
        return viv_fail(err, VIV_SYSTEM, "read the bell: %m");
    state->ask_at = viv_after_ms(SANDBOX_ASK_MS);
    switch (call->wish(call->context)) {
    case SANDBOX_GO_ON:
        return 0;
    case SANDBOX_INTERRUPT:
        return interrupt(state, err);
    default:
        return viv_fail(err, VIV_INTERRUPTED, "the session was ended");
    }
}

static viv_time next_time(const struct receiving *state) {
    return state->ask_at < state->deadline ? state->ask_at : state->deadline;
}

/* Waits until the channel has bytes or is at its end, and does meanwhile what is due. */
static int wait_for_bytes(struct receiving *state, struct viv_error *err) {
    const struct sandbox_call *call = state->call;
    struct pollfd waited[] = {{call->channel, POLLIN, 0},
                              {call->wish ? call->bell : -1, POLLIN, 0}};
    bool there = false;

    while (!there) {
        if (poll(waited, 2, viv_poll_timeout(next_time(state))) < 0) {
            if (errno != EINTR)
                return viv_fail(err, VIV_SYSTEM, "poll: %m");
            continue;
        }
        there = waited[0].revents != 0;
        viv_time now = viv_now();
        if (call->wish && (now >= state->ask_at || waited[1].revents) &&
            heed_wish(state, err))
            return -1;
        if (!there && now >= state->deadline)
            return viv_fail(err, VIV_TIMED_OUT, "there was no verdict in time");
    }
    return 0;
}

static int wait_for_frame(struct receiving *state, struct frame_reader *reader,
                          struct frame *frame, struct viv_error *err) {
    int found;

    while ((found = frame_reader_next(reader, frame, err)) == 0)
        if (wait_for_bytes(state, err) ||
            frame_reader_fill(reader, state->call->channel, err) < 0)
            return -1;
    return found > 0 ? 0 : -1;
}

static int take_frames(struct receiving *state, struct viv_error *err) {
    CLEANUP(frame_reader_clear)
    struct frame_reader reader = {.cap = session_cap_to_client};
    struct frame frame;

    while (state->phase != OVER) {
        if (wait_for_frame(state, &reader, &frame, err) || take_frame(state, &frame, err))
            return -1;
    }
    /* What came with the last frame would be lost with the reader, unseen. */
    return frame_reader_pending(&reader) > 0 ? breach(err, "bytes behind the verdict")
                                             : 0;
}

/* A sandbox that is ended may go before its bell is heard. */
static enum call_end end_of(const struct sandbox_call *call,
                            const struct viv_error *err) {
    if (err->code == VIV_INTERRUPTED ||
        (call->wish && call->wish(call->context) == SANDBOX_GIVE_UP))
        return CALL_ENDED;
    return err->code == VIV_TIMED_OUT ? CALL_OVERDUE : CALL_BROKEN;
}

void sandbox_call_receive(struct sandbox_call *call, struct call_result *result,
                          struct viv_error *err) {
    struct receiving *state = viv_xcalloc(1, sizeof *state);
    viv_time begun = viv_now();
    int64_t limit_ms = call->before_ms + call->timeout_ms +
                       (int64_t)call->settings->interrupt_grace + SANDBOX_COLLECT_MS;

    *state = (struct receiving){
        .call = call,
        .result = result,
        .phase = AT_START,
        .deadline = viv_after_ms(limit_ms),
        .ask_at = call->wish ? viv_after_ms(SANDBOX_ASK_MS) : VIV_TIME_NEVER,
    };
    if (take_frames(state, err)) {
        result->end = end_of(call, err);
        result->runtime_ms = (uint64_t)((viv_now() - begun) / VIV_MS);
    }
    buffer_clear(&state->content);
    free(state);
    call_result_finish(result);
}
