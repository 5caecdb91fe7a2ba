/* SPDX-License-Identifier: MIT */
/* The supervisor's worker: asked for, heard, replaced. */
#include <unistd.h>

#include "common/io.h"
#include "common/log.h"
#include "executor/session_cgroup.h"
#include "executor/supervisor/supervisor_state.h"

#define RETRY_MS      200
#define STILLBORN_MAX 5
#define EXIT_LIMIT_MS 500 /* from the end of its channel to that of the process */

void supervisor_forget_worker(struct supervisor *self) {
    worker_process_forget(&self->worker);
    self->retry_at = viv_after_ms(RETRY_MS);
}

void supervisor_ask_for_worker(struct supervisor *self) {
    struct viv_error err;

    if (worker_process_ask(&self->worker, &self->own, &err) == 0)
        return;
    viv_log_failure(VIV_LOG_WARNING, "worker_not_asked_for", err.message, NULL);
    supervisor_forget_worker(self);
}

/* A worker that ended before it was ready: what it said of the reason is for the log, for
 * no code of a user had run in it. The next one comes later. */
static void replace_stillborn(struct supervisor *self) {
    char text[512];
    struct worker_end end;
    struct viv_error err;

    if (worker_process_end(&self->worker, &self->own, &end, &err))
        supervisor_give_up(&err);
    ssize_t got = read(self->worker.output[1], text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    viv_log_failure(VIV_LOG_ERROR, "worker_not_started", text, NULL);
    worker_process_forget(&self->worker);
    if (++self->stillborn == STILLBORN_MAX)
        supervisor_give_up(&(struct viv_error){.code = VIV_SYSTEM,
                                               .message = "no worker can be started"});
    self->retry_at = viv_after_ms(RETRY_MS);
}

bool supervisor_has_new_oom_kill(struct supervisor *self) {
    uint64_t kills;

    if (self->own.events < 0 ||
        session_cgroup_oom_kills(self->own.events, &kills, NULL) ||
        kills == self->oom_kills)
        return false;
    self->oom_kills = kills;
    return true;
}

void supervisor_replace_worker(struct supervisor *self, enum session_outcome outcome) {
    struct session_done done = {.outcome = outcome};
    bool ends_call =
        self->call.phase == CALL_RUNNING && !supervisor_call_waits_again(self);
    bool was_fresh = !ends_call && self->checkpoints.state == 0;
    struct worker_end end;
    struct viv_error err;

    if (worker_process_end(&self->worker, &self->own, &end, &err))
        supervisor_give_up(&err);
    if (outcome == SESSION_CRASHED && supervisor_has_new_oom_kill(self))
        done.outcome = SESSION_OUT_OF_MEMORY;
    done.signal = (uint8_t)end.signal;
    done.status = (uint8_t)end.status;
    bool restored = supervisor_restore_worker(self);
    if (!restored && !was_fresh) {
        self->variables_lost = true;
        self->restored_to = 0;
    }
    if (ends_call)
        supervisor_finish_call(self, &done, (struct slice){0});
    if (restored) {
        supervisor_copy_again(self);
        return;
    }
    if (self->checkpoints.on)
        worker_process_end_all(); /* processes that were to become copies and did not */
    worker_process_forget(&self->worker);
    supervisor_ask_for_worker(self);
}

void supervisor_stop_worker(struct supervisor *self, enum session_outcome outcome) {
    /* What an idle session has, its copy has, too: to go on from it would free
     * nothing. */
    if (self->worker.state != WORKER_RUNNING)
        supervisor_drop_checkpoints(self);
    if (self->worker.state >= WORKER_IDLE)
        supervisor_replace_worker(self, outcome);
}

/* The one answer that a running worker may give, with nothing behind it. */
static void take_result(struct supervisor *self, const struct frame *frame) {
    const struct session_exec *exec = &self->call.exec;
    struct session_done done = {.outcome = SESSION_RAN};
    struct slice claims;

    if (worker_result_get(frame, exec->nonce, exec->number, &claims, NULL) ||
        frame_reader_pending(&self->worker.reader) > 0) {
        supervisor_replace_worker(self, SESSION_BROKE_PROTOCOL);
        return;
    }
    if (self->call.interrupted && !self->call.unwanted)
        done.outcome = SESSION_TIMED_OUT;
    self->worker.state = WORKER_IDLE;
    self->checkpoints.state = exec->number;
    supervisor_finish_call(self, &done, claims);
}

static void take_ready(struct supervisor *self, const struct frame *frame) {
    struct viv_error err;

    /* No code of a user ran in it yet: a fault here is ours. */
    if (worker_process_ready(&self->worker, frame, &err))
        supervisor_give_up(&err);
    worker_process_reap_others(&self->worker);
    self->stillborn = 0;
    supervisor_worker_is_fresh(self);
    supervisor_has_new_oom_kill(self); /* what was counted before is not of this one */
    if (!self->announced)
        supervisor_tell_launcher(self, CONTROL_READY, 0);
    self->announced = true;
    if (self->call.phase == CALL_WAITING)
        supervisor_start_call(self);
}

/* The end of the channel comes with the end of the process, or a little before it. */
void supervisor_worker_hung_up(struct supervisor *self) {
    bool ended = worker_process_has_ended(&self->worker, viv_after_ms(EXIT_LIMIT_MS));

    if (self->worker.state == WORKER_STARTING)
        replace_stillborn(self);
    else
        supervisor_replace_worker(self, ended ? SESSION_CRASHED : SESSION_BROKE_PROTOCOL);
}

/* The first thing that comes from one that offers checkpoints. */
static bool owes_listener(const struct supervisor *self) {
    return self->own.checkpoints && self->worker.state == WORKER_STARTING &&
           self->worker.listener < 0;
}

static void take_listener(struct supervisor *self) {
    struct viv_error err;

    if (worker_process_take_listener(&self->worker, &err) && err.code != VIV_UNAVAILABLE)
        supervisor_worker_hung_up(self);
}

void supervisor_read_worker(struct supervisor *self) {
    if (owes_listener(self)) {
        take_listener(self);
        return;
    }
    struct frame frame;
    int got = frame_reader_fill(&self->worker.reader, self->worker.channel, NULL);

    if (got < 0) {
        supervisor_worker_hung_up(self);
        return;
    }
    int result = frame_reader_next(&self->worker.reader, &frame, NULL);
    /* One that was not asked has nothing to say, not even the beginning of a frame. */
    if (result < 0 || (got > 0 && self->worker.state == WORKER_IDLE))
        supervisor_replace_worker(self, SESSION_BROKE_PROTOCOL);
    else if (result > 0 && self->worker.state == WORKER_STARTING)
        take_ready(self, &frame);
    else if (result > 0 && self->worker.state == WORKER_PINGED)
        supervisor_worker_is_alive(self, &frame);
    else if (result > 0 && self->worker.state == WORKER_COPYING)
        supervisor_worker_was_copied(self, &frame);
    else if (result > 0)
        take_result(self, &frame);
}
