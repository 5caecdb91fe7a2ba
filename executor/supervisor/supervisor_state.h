/* SPDX-License-Identifier: MIT */
/* What supervisor.c and the other files of its name share. */
#ifndef VIV_SUPERVISOR_STATE_H
#define VIV_SUPERVISOR_STATE_H

#include "executor/supervisor/call.h"
#include "executor/supervisor/client_channel.h"
#include "executor/supervisor/disk_watch.h"
#include "executor/supervisor/supervisor.h"
#include "executor/supervisor/worker_process.h"

struct supervisor {
    struct supervisor_descriptors own;
    struct client_channel client;
    struct worker_process worker;
    viv_time retry_at;   /* of asking for a worker that could not be made */
    int stillborn;       /* workers in a row that ended before they were ready */
    uint64_t oom_kills;  /* in the worker's cgroup, as far as they are told */
    bool variables_lost; /* and not yet told */
    bool announced;      /* the launcher knows that the sandbox is ready */
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

/* Runs the call that has waited for a worker. */
void supervisor_start_call(struct supervisor *self);

/* Sends all that follows the output: the claims, the files, the verdict. */
void supervisor_finish_call(struct supervisor *self, struct session_done *done,
                            struct slice claims);

/* ---- supervisor_workers.c ---- */

void supervisor_ask_for_worker(struct supervisor *self);

/* Takes what has come from the worker. */
void supervisor_read_worker(struct supervisor *self);

/* Ends the worker, and the call that it ran with `outcome`, and asks for another one. */
void supervisor_replace_worker(struct supervisor *self, enum session_outcome outcome);

/* The same, if it runs code of a user already. */
void supervisor_stop_worker(struct supervisor *self, enum session_outcome outcome);

/* It could not be made: asks again after a pause. */
void supervisor_forget_worker(struct supervisor *self);

#endif
