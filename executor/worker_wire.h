/* SPDX-License-Identifier: MIT */
/*
 * The channel of a worker: frames between a supervisor and the worker of its sandbox.
 *
 *     worker      LISTENER                  where checkpoints are made
 *     worker      READY                     once, before any code of a user
 *     supervisor  PING                      when there is a call
 *     worker      PONG                      for each PING: it is alive
 *     supervisor  CALL                      for each PONG
 *     worker      RESULT                    for each CALL
 *     supervisor  TRIM                      no answer: give back memory that is free
 *     supervisor  CHECKPOINT                executor/checkpoint.h
 *     worker      COPIED                    for each CHECKPOINT
 *     copy        RESTORED                  when it has been woken, on its own channel
 *
 * LISTENER comes with one descriptor. READY holds the worker's process id in its PID
 * namespace. PING and PONG have the number of the execution: a worker that is dying gets
 * no CALL, so that it is certain that its code never began. CALL is a fixed part, the
 * code, the standard input. RESULT is the nonce of the CALL, then the claims of
 * executor/runner.py (session_wire.h names the tags). COPIED and RESTORED have the
 * sequence number of the CHECKPOINT; COPIED says in a u8 whether the kernel let the copy
 * be made. After READY the worker may be native attack code: a frame that is not the one
 * expected, or another nonce, ends it.
 */
#ifndef VIV_WORKER_WIRE_H
#define VIV_WORKER_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/frame.h"
#include "common/session_wire.h"

enum worker_frame {
    WORKER_READY = 1,
    WORKER_CALL = 2,
    WORKER_RESULT = 3,
    WORKER_LISTENER = 4,
    WORKER_CHECKPOINT = 5,
    WORKER_COPIED = 6,
    WORKER_RESTORED = 7,
    WORKER_PING = 8,
    WORKER_PONG = 9,
    WORKER_TRIM = 10,
};

#define WORKER_CHANNEL     3 /* the worker's descriptor */
#define WORKER_READY_SIZE  4
#define WORKER_COPIED_SIZE 1

struct worker_call {
    unsigned char nonce[SESSION_NONCE_SIZE];
    uint32_t number; /* of the execution in its session */
    uint32_t max_result;
    uint32_t code_size;
    bool has_stdin;
    uint32_t stdin_size;
    /* The call before this one was interrupted, and its signal may strike late. Without
     * it an interrupt is always for this call, however early it comes. */
    bool late_interrupt;
};

#define WORKER_CALL_SIZE 34

frame_cap worker_cap_to_worker, worker_cap_to_supervisor;

/* Writes the fixed part, WORKER_CALL_SIZE bytes, into `to`; the code and the standard
 * input follow it in the frame. worker_call_get() splits such a payload, whose slices
 * borrow from it; *standard_input means nothing without has_stdin. Fails with
 * VIV_BAD_GATEWAY. */
void worker_call_put(char *to, const struct worker_call *call);
int worker_call_get(struct slice payload, struct worker_call *call, struct slice *code,
                    struct slice *standard_input, struct viv_error *err);

/* Takes the RESULT of the call with that nonce (SESSION_NONCE_SIZE bytes) and number,
 * and no other; *claims borrows from it and has the form that session_wire.h demands,
 * for what the client would refuse is the worker's fault, not the supervisor's. Fails
 * with VIV_BAD_GATEWAY. */
int worker_result_get(const struct frame *frame, const unsigned char *nonce,
                      uint32_t number, struct slice *claims, struct viv_error *err);

#endif
