/* SPDX-License-Identifier: MIT */
/* What supervisor.c and the other files of its name share. */
#ifndef VIV_SUPERVISOR_STATE_H
#define VIV_SUPERVISOR_STATE_H

#include "executor/supervisor/call.h"
#include "executor/supervisor/checkpoints.h"
#include "executor/supervisor/client_channel.h"
#include "executor/supervisor/disk_watch.h"
#include "executor/supervisor/supervisor.h"
#include "executor/supervisor/worker_process.h"

struct supervisor {
    struct supervisor_descriptors own;
    struct client_channel client;
    struct worker_process worker;
    viv_time retry_at;    /* of asking for a worker that could not be made */
    int stillborn;        /* workers in a row that ended before they were ready */
    uint64_t oom_kills;   /* in the worker's cgroup, as far as they are told */
    bool variables_lost;  /* and not yet told */
    uint32_t restored_to; /* the same, of a checkpoint; 0: none */
    struct checkpoints checkpoints;
    bool announced; /* the launcher knows that the sandbox is ready */
    struct call call;
    struct disk_watch disk;
};

/* Ends the process, and with it the session. */
__attribute__((noreturn)) void supervisor_give_up(const struct viv_error *err);

void supervisor_tell_launcher(const struct supervisor *self, enum control_what what,
                              uint64_t bytes);

/* ---- supervisor_calls.c ---- */

void supervisor_drop_client(struct supervisor *self);

/* Takes what has come from the client. */
void supervisor_read_client(struct supervisor *self);

/* Begins the call that has waited for a worker: asks that one whether it is alive. */
void supervisor_start_call(struct supervisor *self);

/* Takes its answer, and runs the call. */
void supervisor_worker_is_alive(struct supervisor *self, const struct frame *frame);

/* The worker that was asked is lost, or not to be used: the call waits for another one,
 * unless its time is up. Returns whether it waits. */
bool supervisor_call_waits_again(struct supervisor *self);

/* Sends all that follows the output: the claims, the files, the verdict. */
void supervisor_finish_call(struct supervisor *self, struct session_done *done,
                            struct slice claims);

/* ---- supervisor_workers.c ---- */

void supervisor_ask_for_worker(struct supervisor *self);

/* Takes what has come from the worker. */
void supervisor_read_worker(struct supervisor *self);

/* The worker's channel, or its process, has ended. */
void supervisor_worker_hung_up(struct supervisor *self);

/* Ends the worker, and the call that it ran with `outcome`; goes on from a checkpoint, or
 * asks for another one. A call that it was not sent yet is run there. */
void supervisor_replace_worker(struct supervisor *self, enum session_outcome outcome);

/* Whether the kernel has killed for memory in the worker's cgroup since this was last
 * asked: the worker or its copy. It counts before it kills. */
bool supervisor_has_new_oom_kill(struct supervisor *self);

/* The same, if it runs code of a user already. */
void supervisor_stop_worker(struct supervisor *self, enum session_outcome outcome);

/* It could not be made: asks again after a pause. */
void supervisor_forget_worker(struct supervisor *self);

/* ---- supervisor_checkpoints.c ---- */

/* The worker has just become ready; a call has ended; a call begins. */
void supervisor_worker_is_fresh(struct supervisor *self);
void supervisor_session_is_idle(struct supervisor *self);
void supervisor_session_is_busy(struct supervisor *self);

/* At `due`, when no call is there; at `limit`, when the worker is COPYING. */
void supervisor_checkpoint_is_due(struct supervisor *self);
void supervisor_copy_is_overdue(struct supervisor *self);

/* Takes the launcher's answer; a frame of a worker that is COPYING; a call that the
 * session's filter leaves to us. */
void supervisor_worker_was_looked_at(struct supervisor *self,
                                     const struct control_look *look);
void supervisor_worker_was_copied(struct supervisor *self, const struct frame *frame);
void supervisor_read_notification(struct supervisor *self);

/* Whether such calls are taken now: a flood of them is not, until the next call
 * begins. */
bool supervisor_listens(const struct supervisor *self);

/* Goes on from the checkpoint, in place of a worker that has ended and was not forgotten.
 * Notes what is to be told of it. False when there is none, or it is of no use: the
 * worker is to be forgotten. */
bool supervisor_restore_worker(struct supervisor *self);

/* Without it the session is to go on with a fresh worker. */
void supervisor_drop_checkpoints(struct supervisor *self);

/* Makes the next one, of a worker that is the last one and has run nothing. */
void supervisor_copy_again(struct supervisor *self);

#endif
