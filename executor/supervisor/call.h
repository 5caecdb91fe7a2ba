/* SPDX-License-Identifier: MIT */
/*
 * One call of a session as its supervisor runs it, from the EXEC frame to DONE. Holds
 * what belongs to the call alone; who sends and receives is supervisor.c.
 *
 *     NONE --EXEC--> RECEIVING --RUN--> WAITING (for a worker) --> RUNNING --> NONE
 */
#ifndef VIV_CALL_H
#define VIV_CALL_H

#include <stdbool.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/session_wire.h"
#include "executor/supervisor/home_walk.h"
#include "executor/supervisor/upload.h"
#include "executor/worker_wire.h"

enum call_phase { CALL_NONE, CALL_RECEIVING, CALL_WAITING, CALL_RUNNING };

/* One output stream of the running code. */
struct call_output {
    uint64_t sent; /* bytes */
    bool truncated;
};

struct call {
    enum call_phase phase;
    uint32_t sequence;
    struct session_exec exec;
    struct buffer text; /* the code, then the standard input */
    struct upload upload;
    struct home_snapshot before;
    viv_time began;
    viv_time earliest;   /* that it may be interrupted */
    viv_time deadline;   /* of the code, then of its grace */
    bool interrupted;    /* the deadline has passed, SIGINT was sent */
    bool unwanted;       /* that was no time-out: its client wanted it to end */
    bool client_gone;    /* its client has left: nothing is sent any more */
    uint32_t checkpoint; /* what a loss in this call goes back to, session_wire.h */
    enum session_skipped skipped;
    struct call_output output[2];
};

/* Takes an EXEC frame. */
int call_begin(struct call *call, int home, const struct frame *frame,
               struct viv_error *err);

/* Takes a FILE or DATA frame of a RECEIVING call. */
int call_receive_file(struct call *call, const struct frame *frame,
                      struct viv_error *err);

/* What the worker is told of it. */
struct worker_call call_for_worker(const struct call *call);

/* Sets the time when it begins, and when it is to be interrupted. Where the call before
 * was interrupted, that is not before the worker has surely taken this one: it passes
 * over an interrupt that is there by then. */
void call_set_time(struct call *call, bool late_interrupt);

/* Brings the deadline forward, unless it has passed or INTERRUPT is for another call. */
void call_interrupt(struct call *call, uint32_t sequence);

/* Milliseconds since the code began. */
uint32_t call_runtime_ms(const struct call *call);

/* Fills in the nonce, and which output was cut. */
void call_fill_done(const struct call *call, struct session_done *done);

/* Whether the client has something to say: before its call runs, or when there is
 * none. */
bool call_takes_frames(const struct call *call);

/* How long the worker may take to read the call, which it does at once unless code of the
 * session has stopped it. */
int64_t call_send_limit_ms(const struct call *call);

/* Bytes of stream 0 or 1 that may still be sent, of `size` that came; marks the stream as
 * truncated when that is less. */
size_t call_admit_output(struct call *call, int stream, size_t size);

/* Frees what the call holds; NONE afterwards. */
void call_end(struct call *call);

#endif
