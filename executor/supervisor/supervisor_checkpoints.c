/* SPDX-License-Identifier: MIT */
/*
 * The supervisor's checkpoints. One is made when the session has been idle for a while,
 * its worker is small, and nothing is in the way that a copy would share or lose: that is
 * looked at by the launcher, from outside. Nothing in it can change before the copy is
 * made: the worker waits for a frame and has no other thread.
 */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/io.h"
#include "common/log.h"
#include "executor/supervisor/notifications.h"
#include "executor/supervisor/supervisor_state.h"

#define COPY_LIMIT_MS    5000 /* some milliseconds, on a machine that is not busy */
#define RESTORE_LIMIT_MS 5000
#define REFUSED_MAX      1000 /* then who asks has to wait for the next call */
#define RESTORES_MAX     5    /* without a call in between */

/* ---- is one due, and can it be made? ---- */

static void ask_launcher(struct supervisor *self, uint32_t number) {
    const struct control_message message = {
        .what = CONTROL_LOOK,
        .look = {.number = number,
                 .worker = self->worker.pid,
                 .copy = self->checkpoints.parked.pid},
    };
    struct viv_error err;

    if (io_send_message(self->own.control, &message, sizeof message, NULL, 0, &err))
        supervisor_give_up(&err);
}

void supervisor_worker_is_fresh(struct supervisor *self) {
    self->checkpoints.state = 0;
    if (self->checkpoints.on)
        ask_launcher(self, 0);
}

void supervisor_session_is_idle(struct supervisor *self) {
    if (self->checkpoints.on)
        self->checkpoints.due = viv_after_ms(self->checkpoints.delay_ms);
}

void supervisor_session_is_busy(struct supervisor *self) {
    struct checkpoints *checkpoints = &self->checkpoints;

    checkpoints->due = VIV_TIME_NEVER;
    checkpoints->looking = false;
    checkpoints->refused = 0;
    supervisor_has_new_oom_kill(self); /* a copy's end is not this call's */
    self->call.checkpoint =
        checkpoints_have(&checkpoints->parked) ? checkpoints->parked.number : 0;
    self->call.skipped = checkpoints->skipped;
}

static void begin_look(struct supervisor *self) {
    struct checkpoints *checkpoints = &self->checkpoints;

    checkpoints->looking = true;
    if (++checkpoints->look == 0)
        checkpoints->look = 1;
    ask_launcher(self, checkpoints->look);
}

void supervisor_checkpoint_is_due(struct supervisor *self) {
    struct checkpoints *checkpoints = &self->checkpoints;

    checkpoints->due = VIV_TIME_NEVER;
    if (checkpoints->state == 0 || (checkpoints_have(&checkpoints->parked) &&
                                    checkpoints->parked.number == checkpoints->state))
        return; /* nothing has run in it, or nothing since */
    begin_look(self);
}

static void begin_copy(struct supervisor *self) {
    struct checkpoints *checkpoints = &self->checkpoints;
    struct viv_error err;

    checkpoints->armed = true;
    checkpoints->refused = 0;
    checkpoints->expected = checkpoints->copied = false;
    checkpoints->coming = (struct parked_copy){.sequence = ++checkpoints->sequence,
                                               .number = checkpoints->state};
    checkpoints->limit = viv_after_ms(COPY_LIMIT_MS);
    if (worker_process_copy(&self->worker, checkpoints->sequence, &err)) {
        checkpoints->armed = false;
        supervisor_replace_worker(self, SESSION_BROKE_PROTOCOL);
    }
}

static enum session_skipped reason_of(const struct checkpoints *checkpoints,
                                      const struct control_look *look) {
    static const enum session_skipped reasons[] = {
        [LOOK_CLEAN] = SESSION_NOT_SKIPPED,
        [LOOK_THREADS] = SESSION_HAS_THREADS,
        [LOOK_OPEN_FILES] = SESSION_HAS_OPEN_FILES,
        [LOOK_SHARED_MEMORY] = SESSION_HAS_SHARED_MEMORY,
        [LOOK_FAILED] = SESSION_NOT_COPIED,
    };

    if (look->verdict == LOOK_CLEAN && look->own > checkpoints->most_memory)
        return SESSION_TOO_MUCH_MEMORY;
    return reasons[look->verdict];
}

/* Of what was deleted malloc(3) may keep most. Once, and then it is looked at again. */
static void ask_for_less_memory(struct supervisor *self) {
    struct checkpoints *checkpoints = &self->checkpoints;

    if (checkpoints->trimmed == checkpoints->state)
        return;
    checkpoints->trimmed = checkpoints->state;
    checkpoints->due = viv_after_ms(checkpoints->delay_ms);
    if (worker_process_trim(&self->worker, NULL))
        supervisor_replace_worker(self, SESSION_BROKE_PROTOCOL);
}

/* The worker goes on without a new one. */
static void leave_copy(struct supervisor *self, enum session_skipped reason) {
    struct checkpoints *checkpoints = &self->checkpoints;

    checkpoints->armed = checkpoints->expected = checkpoints->looking = false;
    checkpoints_drop(&checkpoints->coming);
    checkpoints->skipped = reason;
    self->worker.state = WORKER_IDLE;
    if (self->call.phase == CALL_WAITING)
        supervisor_start_call(self);
}

void supervisor_worker_was_looked_at(struct supervisor *self,
                                     const struct control_look *look) {
    struct checkpoints *checkpoints = &self->checkpoints;

    if (!checkpoints->looking || look->number != checkpoints->look)
        return; /* a call has begun meanwhile */
    checkpoints->looking = false;
    checkpoints->skipped = reason_of(checkpoints, look);
    if (checkpoints->skipped == SESSION_NOT_SKIPPED)
        begin_copy(self);
    else if (self->worker.state == WORKER_COPYING)
        leave_copy(self, checkpoints->skipped);
    else if (checkpoints->skipped == SESSION_TOO_MUCH_MEMORY)
        ask_for_less_memory(self);
}

/* ---- while it is made ---- */

static void end_copy(struct supervisor *self) {
    struct checkpoints *checkpoints = &self->checkpoints;

    checkpoints_drop(&checkpoints->parked);
    checkpoints->parked = checkpoints->coming;
    checkpoints->coming.pid = 0;
    self->worker.state = WORKER_IDLE;
    if (self->call.phase == CALL_WAITING)
        supervisor_start_call(self);
}

void supervisor_worker_was_copied(struct supervisor *self, const struct frame *frame) {
    struct checkpoints *checkpoints = &self->checkpoints;

    if (frame->type != WORKER_COPIED || frame->sequence != checkpoints->sequence ||
        frame->payload.size != WORKER_COPIED_SIZE || checkpoints->looking ||
        checkpoints->copied || frame_reader_pending(&self->worker.reader) > 0) {
        supervisor_replace_worker(self, SESSION_BROKE_PROTOCOL);
        return;
    }
    checkpoints->copied = true;
    if (frame->payload.data[0] == 0)
        leave_copy(self, SESSION_NOT_COPIED); /* so says the kernel, or who lies */
    else if (checkpoints->coming.pid > 0)
        end_copy(self);
}

/* A launcher that is late costs a checkpoint. When it is the worker, the code in its
 * memory is not ours any more, or the machine stands still: no copy of it is one to go on
 * from. */
void supervisor_copy_is_overdue(struct supervisor *self) {
    if (self->checkpoints.looking)
        leave_copy(self, SESSION_NOT_COPIED);
    else
        supervisor_replace_worker(self, SESSION_BROKE_PROTOCOL);
}

/* A new process: our child, and not a thread. */
static bool is_child(pid_t pid) {
    siginfo_t child;

    return waitid(P_PID, (id_t)pid, &child, WEXITED | WNOHANG | WNOWAIT) == 0;
}

/* Takes the copy that was expected, as whole: it does nothing any more. */
static bool take_copy(struct supervisor *self, const struct notification *parking) {
    struct checkpoints *checkpoints = &self->checkpoints;
    struct parked_copy *coming = &checkpoints->coming;

    if (!checkpoints->expected || parking->pid == self->worker.pid ||
        !is_child(parking->pid))
        return false;
    coming->pidfd = (int)syscall(SYS_pidfd_open, parking->pid, 0);
    if (coming->pidfd < 0)
        return false;
    coming->pid = parking->pid;
    coming->id = parking->id;
    checkpoints->expected = false;
    if (checkpoints->copied)
        end_copy(self);
    return true;
}

/* Before Linux 5.19 a signal starts the call of a parked process again. The number of one
 * that has ended may be another's by now. */
static bool parks_again(struct parked_copy *copy, const struct notification *parking) {
    if (copy->pid != parking->pid || !checkpoints_have(copy))
        return false;
    copy->id = parking->id;
    return true;
}

void supervisor_read_notification(struct supervisor *self) {
    struct checkpoints *checkpoints = &self->checkpoints;
    struct notification asked;

    if (notification_receive(self->worker.listener, &asked))
        return;
    if (asked.is_clone && checkpoints->armed && asked.pid == self->worker.pid) {
        checkpoints->armed = false;
        checkpoints->expected = true;
        notification_allow(self->worker.listener, &asked);
    } else if (asked.is_clone ||
               (!parks_again(&checkpoints->parked, &asked) &&
                !parks_again(&checkpoints->coming, &asked) && !take_copy(self, &asked))) {
        checkpoints->refused++;
        notification_refuse(self->worker.listener, &asked);
    }
}

bool supervisor_listens(const struct supervisor *self) {
    return self->checkpoints.refused < REFUSED_MAX;
}

/* ---- back to it ---- */

/* Takes what is known of a copy that was being made when the worker ended. */
static void settle_copy(struct supervisor *self) {
    struct checkpoints *checkpoints = &self->checkpoints;
    const bool made = checkpoints->coming.pid > 0;

    if (made) {
        checkpoints_drop(&checkpoints->parked);
        checkpoints->parked = checkpoints->coming;
    }
    checkpoints->coming.pid = 0;
    checkpoints->armed = checkpoints->expected = checkpoints->looking = false;
    checkpoints->due = VIV_TIME_NEVER;
}

void supervisor_drop_checkpoints(struct supervisor *self) {
    settle_copy(self);
    checkpoints_drop(&self->checkpoints.parked);
}

/* The copy is used up, whatever comes of it. A SIGSTOP of the session's that waits for it
 * goes with SIGCONT: signal(7). */
static int wake(struct supervisor *self, const struct parked_copy *copy,
                struct viv_error *err) {
    syscall(SYS_pidfd_send_signal, copy->pidfd, SIGCONT, NULL, 0);
    close(copy->pidfd);
    return worker_process_restore(&self->worker, copy->pid, copy->id, copy->sequence,
                                  viv_after_ms(RESTORE_LIMIT_MS), err);
}

bool supervisor_restore_worker(struct supervisor *self) {
    struct checkpoints *checkpoints = &self->checkpoints;
    const uint32_t lost = checkpoints->state;
    struct worker_end end;
    struct viv_error err;

    settle_copy(self);
    /* One that ends as often as it is woken would be woken for ever. */
    if (++checkpoints->restores > RESTORES_MAX ||
        !checkpoints_have(&checkpoints->parked)) {
        checkpoints_drop(&checkpoints->parked);
        return false;
    }
    const struct parked_copy copy = checkpoints->parked;
    checkpoints->parked.pid = 0;
    if (wake(self, &copy, &err)) {
        viv_log_failure(VIV_LOG_WARNING, "checkpoint_not_usable", err.message, NULL);
        if (worker_process_end(&self->worker, &self->own, &end, &err))
            supervisor_give_up(&err);
        return false;
    }
    if (copy.number != lost)
        self->variables_lost = true;
    self->restored_to = copy.number;
    checkpoints->state = copy.number;
    return true;
}

void supervisor_copy_again(struct supervisor *self) {
    /* What the lost worker has left behind is ended by the look. */
    self->checkpoints.copied = false;
    self->checkpoints.limit = viv_after_ms(COPY_LIMIT_MS);
    self->worker.state = WORKER_COPYING;
    begin_look(self);
}
