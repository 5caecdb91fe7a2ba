/* SPDX-License-Identifier: MIT */
/* The supervisor's calls: as they come from its client, up to their answer. */
#include "common/io.h"
#include "executor/supervisor/answer.h"
#include "executor/supervisor/output.h"
#include "executor/supervisor/supervisor_state.h"

void supervisor_drop_client(struct supervisor *self) {
    client_channel_close(&self->client);
    /* What runs goes on; what was still arriving never does. */
    if (self->call.phase == CALL_RECEIVING)
        call_end(&self->call);
    self->call.client_gone = true;
}

static struct answer answer_of(struct supervisor *self) {
    return (struct answer){&self->call, &self->client};
}

static void refuse_call(struct supervisor *self) {
    struct answer answer = answer_of(self);

    answer_refuse(&answer);
    call_end(&self->call);
}

void supervisor_finish_call(struct supervisor *self, struct session_done *done,
                            struct slice claims) {
    struct answer answer = answer_of(self);

    done->runtime_ms = call_runtime_ms(&self->call);
    output_pump_all(&self->worker, &self->call, &self->client);
    done->variables_lost = self->variables_lost;
    done->restored_to = self->restored_to;
    if (answer_finish(&answer, self->own.folders[SESSION_HOME_FOLDER], done, claims) ==
        0) {
        self->variables_lost = false;
        self->restored_to = 0;
    }
    call_end(&self->call);
    supervisor_session_is_idle(self);
}

void supervisor_start_call(struct supervisor *self) {
    struct call *call = &self->call;
    struct viv_error err;

    /* What was sent is in the home already, though under no name of its own. */
    if (call->upload.count > 0 && !disk_watch_has_room(&self->disk))
        upload_refuse_for_room(&call->upload);
    if (upload_commit(&call->upload)) {
        refuse_call(self);
        return;
    }
    upload_clear(&call->upload);
    /* Whether it is alive shows while the home is looked at. One that is not is replaced
     * when that is noticed. */
    worker_process_ping(&self->worker, call->exec.number, NULL);
    if (home_snapshot_take(&call->before, self->own.folders[SESSION_HOME_FOLDER], &err))
        supervisor_give_up(&err);
    output_pump_all(&self->worker, &self->call, &self->client);
    disk_watch_begin(&self->disk);
    supervisor_session_is_busy(self);
    call->phase = CALL_RUNNING;
    call_set_time(call, self->worker.late_interrupt);
}

void supervisor_worker_is_alive(struct supervisor *self, const struct frame *frame) {
    struct call *call = &self->call;
    const struct worker_call worker_call = call_for_worker(call);
    struct slice text = {call->text.data, call->text.size};
    struct viv_error err;

    if (frame->type != WORKER_PONG || frame->sequence != call->exec.number ||
        frame_reader_pending(&self->worker.reader) > 0) {
        supervisor_replace_worker(self, SESSION_BROKE_PROTOCOL);
        return;
    }
    self->checkpoints.restores = 0;
    int failed = worker_process_call(&self->worker, &worker_call, text,
                                     viv_after_ms(call_send_limit_ms(call)), &err);
    buffer_clear(&call->text);
    if (failed && err.code == VIV_TIMED_OUT)
        supervisor_replace_worker(self, SESSION_TIMED_OUT);
    else if (failed)
        supervisor_worker_hung_up(self);
}

bool supervisor_call_waits_again(struct supervisor *self) {
    struct call *call = &self->call;

    if (self->worker.state != WORKER_PINGED || call->interrupted ||
        viv_now() >= call->deadline)
        return false;
    home_snapshot_clear(&call->before);
    call->phase = CALL_WAITING;
    return true;
}

static void run_call(struct supervisor *self) {
    if (self->call.upload.failed)
        refuse_call(self);
    else if (worker_process_is_free(&self->worker))
        supervisor_start_call(self);
    else
        self->call.phase = CALL_WAITING;
}

static int take_client_frame(struct supervisor *self, const struct frame *frame,
                             struct viv_error *err) {
    if (frame->type == SESSION_INTERRUPT) {
        call_interrupt(&self->call, frame->sequence);
        return 0;
    }
    if (!call_takes_frames(&self->call))
        return viv_fail(err, VIV_BAD_GATEWAY, "a frame in the middle of a call");
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

void supervisor_read_client(struct supervisor *self) {
    struct frame frame;
    int result = frame_reader_fill(&self->client.reader, self->client.fd, NULL);

    while (result > 0 && self->client.fd >= 0) {
        result = frame_reader_next(&self->client.reader, &frame, NULL);
        if (result > 0 && take_client_frame(self, &frame, NULL))
            result = -1;
    }
    if (result < 0)
        supervisor_drop_client(self);
}
