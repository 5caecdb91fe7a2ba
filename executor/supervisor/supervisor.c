/* SPDX-License-Identifier: MIT */
/*
 * The loop: one poll(2) over the launcher's socket, the session channel and the worker.
 * Whatever takes time happens to the worker only; the supervisor itself blocks no longer
 * than a client that does not read, and that one is given up (client_channel.h).
 */
#include "executor/supervisor/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "common/log.h"
#include "executor/session_cgroup.h"
#include "executor/supervisor/answer.h"
#include "executor/supervisor/call.h"
#include "executor/supervisor/client_channel.h"
#include "executor/supervisor/disk_watch.h"
#include "executor/supervisor/output.h"
#include "executor/supervisor/supervisor_setup.h"
#include "executor/supervisor/worker_process.h"

#define WORKER_START_LIMIT_MS 60000 /* a zygote may have to be started first */
#define CALL_SEND_LIMIT_MS    5000  /* or less, where the call has less */
#define WORKER_RETRY_MS       200
#define STILLBORN_MAX         5
#define WORKER_EXIT_LIMIT_MS  500 /* from the end of its channel to that of the process */

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

__attribute__((noreturn)) static void give_up(const struct viv_error *err) {
    viv_log_failure(VIV_LOG_WARNING, "supervisor_ends", err->message, NULL);
    _exit(1);
}

static void drop_client(struct supervisor *self) {
    client_channel_close(&self->client);
    /* What runs goes on; what was still arriving never does. */
    if (self->call.phase == CALL_RECEIVING)
        call_end(&self->call);
    self->call.client_gone = true;
}

static void tell_launcher(const struct supervisor *self, enum control_what what,
                          uint64_t bytes) {
    const struct control_message message = {.what = what, .bytes = bytes};
    struct viv_error err;

    if (io_send_message(self->own.control, &message, sizeof message, NULL, 0, &err))
        give_up(&err);
}

static void ask_for_worker(struct supervisor *self) {
    struct viv_error err;

    if (worker_process_ask(&self->worker, &self->own, &err) == 0)
        return;
    viv_log_failure(VIV_LOG_WARNING, "worker_not_asked_for", err.message, NULL);
    worker_process_forget(&self->worker);
    self->retry_at = viv_after_ms(WORKER_RETRY_MS);
}

/* ---- a call ---- */

static struct answer answer_of(struct supervisor *self) {
    return (struct answer){&self->call, &self->client};
}

static void refuse_call(struct supervisor *self) {
    struct answer answer = answer_of(self);

    answer_refuse(&answer);
    call_end(&self->call);
}

/* Sends all that follows the output: the claims, the files, the verdict. */
static void finish_call(struct supervisor *self, struct session_done *done,
                        struct slice claims) {
    struct answer answer = answer_of(self);

    done->runtime_ms = call_runtime_ms(&self->call);
    output_pump_all(&self->worker, &self->call, &self->client);
    done->variables_lost = self->variables_lost;
    if (answer_finish(&answer, self->own.folders[SESSION_HOME_FOLDER], done, claims) == 0)
        self->variables_lost = false;
    call_end(&self->call);
}

/* A worker that ended before it was ready: what it said of the reason is for the log, for
 * no code of a user had run in it. The next one comes later. */
static void replace_stillborn(struct supervisor *self) {
    char text[512];
    struct worker_end end;
    struct viv_error err;

    if (worker_process_end(&self->worker, &self->own, &end, &err))
        give_up(&err);
    ssize_t got = read(self->worker.output[1], text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    viv_log_failure(VIV_LOG_ERROR, "worker_not_started", text, NULL);
    worker_process_forget(&self->worker);
    if (++self->stillborn == STILLBORN_MAX)
        give_up(&(struct viv_error){VIV_SYSTEM, "no worker can be started"});
    self->retry_at = viv_after_ms(WORKER_RETRY_MS);
}

/* The kernel counts before it kills. */
static bool was_killed_for_memory(struct supervisor *self) {
    uint64_t kills;

    if (self->own.events < 0 ||
        session_cgroup_oom_kills(self->own.events, &kills, NULL) ||
        kills == self->oom_kills)
        return false;
    self->oom_kills = kills;
    return true;
}

/* Ends the worker, and the call that it ran with `outcome`, and asks for another one. */
static void replace_worker(struct supervisor *self, enum session_outcome outcome) {
    struct session_done done = {.outcome = outcome};
    bool was_running = self->worker.state == WORKER_RUNNING;
    struct worker_end end;
    struct viv_error err;

    if (worker_process_end(&self->worker, &self->own, &end, &err))
        give_up(&err);
    if (outcome == SESSION_CRASHED && was_killed_for_memory(self))
        done.outcome = SESSION_OUT_OF_MEMORY;
    done.signal = (uint8_t)end.signal;
    done.status = (uint8_t)end.status;
    self->variables_lost = true;
    if (was_running)
        finish_call(self, &done, (struct slice){0});
    worker_process_forget(&self->worker);
    ask_for_worker(self);
}

static void start_call(struct supervisor *self) {
    struct call *call = &self->call;
    struct viv_error err;
    const struct worker_call worker_call = call_for_worker(call);

    if (upload_commit(&call->upload)) {
        refuse_call(self);
        return;
    }
    upload_clear(&call->upload);
    if (home_snapshot_take(&call->before, self->own.folders[SESSION_HOME_FOLDER], &err))
        give_up(&err);
    output_pump_all(&self->worker, &self->call, &self->client);
    call->phase = CALL_RUNNING;
    call->began = viv_now();
    call->deadline = viv_after_ms(call->exec.timeout_ms);
    struct slice text = {call->text.data, call->text.size};
    int failed = worker_process_call(&self->worker, &worker_call, text,
                                     viv_after_ms(call_send_limit_ms(call)), &err);
    buffer_clear(&call->text);
    self->worker.state = WORKER_RUNNING;
    if (failed)
        replace_worker(self, err.code == VIV_TIMED_OUT ? SESSION_TIMED_OUT
                                                       : SESSION_BROKE_PROTOCOL);
}

static void run_call(struct supervisor *self) {
    if (self->call.upload.failed)
        refuse_call(self);
    else if (self->worker.state == WORKER_IDLE)
        start_call(self);
    else
        self->call.phase = CALL_WAITING;
}

/* ---- what comes in ---- */

static int take_client_frame(struct supervisor *self, const struct frame *frame,
                             struct viv_error *err) {
    if (self->call.phase == CALL_NONE)
        return call_begin(&self->call, self->own.folders[SESSION_HOME_FOLDER], frame,
                          err);
    if (frame->type != SESSION_RUN)
        return call_receive_file(&self->call, frame, err);
    if (self->call.phase != CALL_RECEIVING || frame->sequence != self->call.sequence)
        return viv_fail(err, VIV_BAD_GATEWAY, "RUN out of its call");
    run_call(self);
    return 0;
}

static void read_client(struct supervisor *self) {
    struct frame frame;
    int result = frame_reader_fill(&self->client.reader, self->client.fd, NULL);

    while (result > 0 && self->client.fd >= 0 && call_takes_frames(&self->call)) {
        result = frame_reader_next(&self->client.reader, &frame, NULL);
        if (result > 0 && take_client_frame(self, &frame, NULL))
            result = -1;
    }
    /* A client has nothing to say until its call has ended. */
    if (result < 0 || (!call_takes_frames(&self->call) &&
                       frame_reader_pending(&self->client.reader) > 0))
        drop_client(self);
}

/* The one answer that a running worker may give, with nothing behind it. */
static void take_result(struct supervisor *self, const struct frame *frame) {
    const struct session_exec *exec = &self->call.exec;
    struct session_done done = {.outcome = SESSION_RAN};
    struct slice claims;

    if (worker_result_get(frame, exec->nonce, exec->number, &claims, NULL) ||
        frame_reader_pending(&self->worker.reader) > 0) {
        replace_worker(self, SESSION_BROKE_PROTOCOL);
        return;
    }
    if (self->call.interrupted)
        done.outcome = SESSION_TIMED_OUT;
    finish_call(self, &done, claims);
    self->worker.state = WORKER_IDLE;
}

static void take_ready(struct supervisor *self, const struct frame *frame) {
    struct viv_error err;

    /* No code of a user ran in it yet: a fault here is ours. */
    if (worker_process_ready(&self->worker, frame, &err))
        give_up(&err);
    self->stillborn = 0;
    if (!self->announced)
        tell_launcher(self, CONTROL_READY, 0);
    self->announced = true;
    if (self->call.phase == CALL_WAITING)
        start_call(self);
}

/* The end of the channel comes with the end of the process, or a little before it. */
static void worker_hung_up(struct supervisor *self) {
    bool ended =
        worker_process_has_ended(&self->worker, viv_after_ms(WORKER_EXIT_LIMIT_MS));

    if (self->worker.state == WORKER_STARTING)
        replace_stillborn(self);
    else
        replace_worker(self, ended ? SESSION_CRASHED : SESSION_BROKE_PROTOCOL);
}

static void read_worker(struct supervisor *self) {
    struct frame frame;
    int got = frame_reader_fill(&self->worker.reader, self->worker.channel, NULL);

    if (got < 0) {
        worker_hung_up(self);
        return;
    }
    int result = frame_reader_next(&self->worker.reader, &frame, NULL);
    /* One that was not asked has nothing to say, not even the beginning of a frame. */
    if (result < 0 || (got > 0 && self->worker.state == WORKER_IDLE))
        replace_worker(self, SESSION_BROKE_PROTOCOL);
    else if (result > 0 && self->worker.state == WORKER_STARTING)
        take_ready(self, &frame);
    else if (result > 0)
        take_result(self, &frame);
}

static void take_channel(struct supervisor *self, int fd) {
    drop_client(self);
    client_channel_open(&self->client, fd);
    /* Nobody will read the answer of a call that was asked for over the old channel. */
    if (self->call.phase == CALL_WAITING)
        call_end(&self->call);
    else if (self->call.phase == CALL_RUNNING && !self->call.interrupted)
        self->call.deadline = viv_now();
}

/* Nothing is stopped that runs no code of a user yet. */
static void stop_worker(struct supervisor *self, enum session_outcome reason) {
    if (self->worker.state == WORKER_IDLE || self->worker.state == WORKER_RUNNING)
        replace_worker(self, reason);
}

static void read_launcher(struct supervisor *self) {
    struct control_message message;
    struct viv_error err;
    size_t fd_count;
    int fd = -1;
    ssize_t got = io_receive_message(self->own.control, &message, sizeof message, &fd, 1,
                                     &fd_count, &err);

    if (got <= 0)
        _exit(0); /* the launcher is gone, and so is the session */
    if (message.what == CONTROL_CHANNEL && fd_count == 1) {
        take_channel(self, fd);
    } else if (message.what == CONTROL_WORKER_FAILED &&
               self->worker.state == WORKER_STARTING) {
        worker_process_forget(&self->worker);
        self->retry_at = viv_after_ms(WORKER_RETRY_MS);
    } else if (message.what == CONTROL_TELL_FILES) {
        tell_launcher(self, CONTROL_FILES, disk_watch_bytes(&self->disk));
    } else if (message.what == CONTROL_STOP_FOR_MEMORY) {
        stop_worker(self, SESSION_OUT_OF_MEMORY);
    }
}

/* ---- time ---- */

static viv_time next_deadline(const struct supervisor *self) {
    if (self->call.phase == CALL_RUNNING)
        return self->call.deadline;
    if (self->worker.state == WORKER_ABSENT)
        return self->retry_at;
    if (self->worker.state == WORKER_STARTING)
        return self->worker.asked_for + WORKER_START_LIMIT_MS * VIV_MS;
    return VIV_TIME_NEVER;
}

static void deadline_passed(struct supervisor *self) {
    struct viv_error err;

    if (self->call.phase == CALL_RUNNING && !self->call.interrupted) {
        self->call.interrupted = true;
        self->call.deadline = viv_after_ms(self->call.exec.grace_ms);
        worker_process_interrupt(&self->worker);
    } else if (self->call.phase == CALL_RUNNING) {
        replace_worker(self, SESSION_TIMED_OUT);
    } else if (self->worker.state == WORKER_ABSENT) {
        ask_for_worker(self);
    } else {
        viv_fail(&err, VIV_SYSTEM, "no worker came");
        give_up(&err);
    }
}

static void look_at_disk(struct supervisor *self) {
    const struct viv_error far_too_full = {VIV_CAPACITY,
                                           "the session fills the disk of the host"};

    switch (disk_watch_look(&self->disk, self->call.phase == CALL_RUNNING)) {
    case DISK_HAS_ROOM:
        break;
    case DISK_FULL:
        stop_worker(self, SESSION_OUT_OF_DISK);
        break;
    case DISK_FAR_TOO_FULL:
        give_up(&far_too_full);
    }
}

/* ---- the loop ---- */

enum { LAUNCHER, CLIENT, WORKER, WORKER_OUT, WORKER_ERR, WATCHED_COUNT };

static void watch(const struct supervisor *self, struct pollfd watched[WATCHED_COUNT]) {
    short client = call_takes_frames(&self->call) ? POLLIN : 0;

    if (self->client.queue.size > 0)
        client |= POLLOUT;
    watched[LAUNCHER] = (struct pollfd){self->own.control, POLLIN, 0};
    watched[CLIENT] = (struct pollfd){self->client.fd, client, 0};
    watched[WORKER] = (struct pollfd){self->worker.channel, POLLIN, 0};
    watched[WORKER_OUT] = (struct pollfd){self->worker.output[0], POLLIN, 0};
    watched[WORKER_ERR] = (struct pollfd){self->worker.output[1], POLLIN, 0};
}

/* Output comes before the result that follows it; a flood of it holds up nothing else. */
static void handle(struct supervisor *self, const struct pollfd watched[WATCHED_COUNT]) {
    if (watched[LAUNCHER].revents) {
        read_launcher(self);
        return; /* it may have changed what the others are */
    }
    for (int stream = 0; stream < 2; stream++)
        if (watched[WORKER_OUT + stream].revents)
            output_pump(&self->worker, stream, &self->call, &self->client);
    if (watched[WORKER].revents)
        read_worker(self);
    else if (watched[CLIENT].revents & POLLIN)
        read_client(self);
    else if (watched[CLIENT].revents & (POLLHUP | POLLERR))
        drop_client(self);
    client_channel_flush_some(&self->client);
}

void supervisor_main(const struct supervisor_start *start) {
    struct supervisor self = {0};
    struct pollfd watched[WATCHED_COUNT];
    struct viv_error err;

    client_channel_init(&self.client);
    worker_process_init(&self.worker);
    if (supervisor_set_up(&self.own, start, &err))
        give_up(&err);
    disk_watch_init(&self.disk, &self.own, start->settings);
    ask_for_worker(&self);
    for (;;) {
        if (viv_now() >= next_deadline(&self))
            deadline_passed(&self);
        if (viv_now() >= self.disk.look_at)
            look_at_disk(&self);
        watch(&self, watched);
        viv_time next = next_deadline(&self);
        if (self.disk.look_at < next)
            next = self.disk.look_at;
        if (poll(watched, WATCHED_COUNT, viv_poll_timeout(next)) > 0)
            handle(&self, watched);
    }
}
