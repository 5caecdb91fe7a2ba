/* SPDX-License-Identifier: MIT */
/*
 * The loop: one ppoll(2) over the launcher's socket, the session channel and the worker.
 * Whatever takes time happens to the worker only; the supervisor itself blocks no longer
 * than a client that does not read, and that one is given up (client_channel.h).
 */
#include "executor/supervisor/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "common/io.h"
#include "common/log.h"
#include "executor/supervisor/output.h"
#include "executor/supervisor/supervisor_state.h"

#define WORKER_START_LIMIT_MS 60000 /* a zygote may have to be started first */

__attribute__((noreturn)) void supervisor_give_up(const struct viv_error *err) {
    viv_log_failure(VIV_LOG_WARNING, "supervisor_ends", err->message, NULL);
    _exit(1);
}

void supervisor_tell_launcher(const struct supervisor *self, enum control_what what,
                              uint64_t bytes) {
    const struct control_message message = {.what = what, .bytes = bytes};
    struct viv_error err;

    if (io_send_message(self->own.control, &message, sizeof message, NULL, 0, &err))
        supervisor_give_up(&err);
}

/* ---- the launcher ---- */

static void take_channel(struct supervisor *self, int fd) {
    supervisor_drop_client(self);
    client_channel_open(&self->client, fd);
    /* Nobody will read the answer of a call that was asked for over the old channel. */
    if (self->call.phase == CALL_WAITING)
        call_end(&self->call);
    else if (self->call.phase == CALL_RUNNING && !self->call.interrupted)
        self->call.deadline = viv_now();
}

static void worker_was_interrupted(struct supervisor *self) {
    worker_process_interrupted(&self->worker);
    if (self->call.phase == CALL_WAITING && worker_process_is_free(&self->worker))
        supervisor_start_call(self);
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
        supervisor_forget_worker(self);
    } else if (message.what == CONTROL_TELL_FILES) {
        supervisor_tell_launcher(self, CONTROL_FILES, disk_watch_bytes(&self->disk));
    } else if (message.what == CONTROL_STOP_FOR_MEMORY) {
        supervisor_stop_worker(self, SESSION_OUT_OF_MEMORY);
    } else if (message.what == CONTROL_STOP_FOR_DISK) {
        supervisor_stop_worker(self, SESSION_OUT_OF_DISK);
    } else if (message.what == CONTROL_INTERRUPTED) {
        worker_was_interrupted(self);
    } else if (message.what == CONTROL_LOOKED) {
        supervisor_worker_was_looked_at(self, &message.look);
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
    if (self->worker.state == WORKER_COPYING)
        return self->checkpoints.limit;
    return self->call.phase == CALL_NONE ? self->checkpoints.due : VIV_TIME_NEVER;
}

static void deadline_passed(struct supervisor *self) {
    struct viv_error err;

    if (self->call.phase == CALL_RUNNING && !self->call.interrupted) {
        self->call.interrupted = true;
        self->call.deadline = viv_after_ms(self->call.exec.grace_ms);
        worker_process_interrupt(&self->worker, &self->own);
    } else if (self->call.phase == CALL_RUNNING) {
        supervisor_replace_worker(self, self->call.unwanted ? SESSION_INTERRUPTED
                                                            : SESSION_TIMED_OUT);
    } else if (self->worker.state == WORKER_ABSENT) {
        supervisor_ask_for_worker(self);
    } else if (self->worker.state == WORKER_COPYING) {
        supervisor_copy_is_overdue(self);
    } else if (self->worker.state == WORKER_IDLE) {
        supervisor_checkpoint_is_due(self);
    } else {
        viv_fail(&err, VIV_SYSTEM, "no worker came");
        supervisor_give_up(&err);
    }
}

static void look_at_disk(struct supervisor *self) {
    const struct viv_error far_too_full = {
        .code = VIV_CAPACITY, .message = "the session fills the disk of the host"};

    switch (disk_watch_look(&self->disk, self->call.phase == CALL_RUNNING)) {
    case DISK_HAS_ROOM:
        break;
    case DISK_FULL:
        supervisor_stop_worker(self, SESSION_OUT_OF_DISK);
        break;
    case DISK_FAR_TOO_FULL:
        /* The call has its answer; the next one will hear that all is lost. */
        supervisor_stop_worker(self, SESSION_OUT_OF_DISK);
        supervisor_give_up(&far_too_full);
    }
}

/* ---- the loop ---- */

enum {
    LAUNCHER,
    CLIENT,
    WORKER_END, /* before what it has sent until then */
    WORKER,
    WORKER_OUT,
    WORKER_ERR,
    NOTIFICATIONS,
    WATCHED_COUNT
};

static void watch(const struct supervisor *self, struct pollfd watched[WATCHED_COUNT]) {
    /* A new client waits for the end of a call that is not its own. */
    bool listens = call_takes_frames(&self->call) || !self->call.client_gone;
    short client = listens ? POLLIN : 0;

    if (self->client.queue.size > 0)
        client |= POLLOUT;
    watched[LAUNCHER] = (struct pollfd){self->own.control, POLLIN, 0};
    watched[CLIENT] = (struct pollfd){self->client.fd, client, 0};
    watched[WORKER_END] = (struct pollfd){self->worker.pidfd, POLLIN, 0};
    watched[WORKER] = (struct pollfd){self->worker.channel, POLLIN, 0};
    /* What one says that does not become ready is for the log. */
    bool is_ready = self->worker.state != WORKER_STARTING;
    watched[WORKER_OUT] =
        (struct pollfd){is_ready ? self->worker.output[0] : -1, POLLIN, 0};
    watched[WORKER_ERR] =
        (struct pollfd){is_ready ? self->worker.output[1] : -1, POLLIN, 0};
    watched[NOTIFICATIONS] =
        (struct pollfd){supervisor_listens(self) ? self->worker.listener : -1, POLLIN, 0};
}

/* Output comes before the result that follows it; a flood of it holds up nothing else. */
static void handle(struct supervisor *self, const struct pollfd watched[WATCHED_COUNT]) {
    if (watched[LAUNCHER].revents) {
        read_launcher(self);
        return; /* it may have changed what the others are */
    }
    if (watched[NOTIFICATIONS].revents & POLLIN) {
        supervisor_read_notification(self);
        return; /* likewise */
    }
    for (int stream = 0; stream < 2; stream++)
        if (watched[WORKER_OUT + stream].revents)
            output_pump(&self->worker, stream, &self->call, &self->client);
    if (watched[WORKER].revents)
        supervisor_read_worker(self);
    else if (watched[WORKER_END].revents)
        supervisor_worker_hung_up(self); /* a process of its own holds the channel */
    else if (watched[CLIENT].revents & POLLIN)
        supervisor_read_client(self);
    else if (watched[CLIENT].revents & (POLLHUP | POLLERR))
        supervisor_drop_client(self);
    client_channel_flush_some(&self->client);
}

/* Waits for what is watched, for the end of a child, or until `deadline`. */
static void wait_and_handle(struct supervisor *self, viv_time deadline) {
    const int ms = viv_poll_timeout(deadline);
    const struct timespec limit = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * VIV_MS};
    struct pollfd watched[WATCHED_COUNT];
    sigset_t none;

    sigemptyset(&none);
    watch(self, watched);
    int ready = ppoll(watched, WATCHED_COUNT, ms < 0 ? NULL : &limit, &none);
    if (ready > 0)
        handle(self, watched);
    else if (ready < 0)
        worker_process_reap_others(&self->worker);
}

void supervisor_main(const struct supervisor_start *start) {
    struct supervisor self = {0};
    struct viv_error err;

    client_channel_init(&self.client);
    worker_process_init(&self.worker);
    if (supervisor_set_up(&self.own, start, &err))
        supervisor_give_up(&err);
    disk_watch_init(&self.disk, &self.own, start->settings);
    checkpoints_init(&self.checkpoints, start->settings, self.own.checkpoints);
    supervisor_ask_for_worker(&self);
    for (;;) {
        if (viv_now() >= next_deadline(&self))
            deadline_passed(&self);
        if (viv_now() >= self.disk.look_at)
            look_at_disk(&self);
        viv_time next = next_deadline(&self);
        wait_and_handle(&self, self.disk.look_at < next ? self.disk.look_at : next);
    }
}
