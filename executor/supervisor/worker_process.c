/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "executor/supervisor/notifications.h"

#define REPORT_LIMIT_MS 10000

void worker_process_init(struct worker_process *worker) {
    *worker = (struct worker_process){
        .pidfd = -1,
        .channel = -1,
        .listener = -1,
        .reader = {.cap = worker_cap_to_supervisor},
        .output = {-1, -1},
        .report = -1,
    };
}

int worker_process_ask(struct worker_process *worker,
                       const struct supervisor_descriptors *descriptors,
                       struct viv_error *err) {
    const struct control_message message = {.what = CONTROL_SPAWN};
    int channel[2], out[2], error[2], report[2], fds[SPAWN_FD_MAX];
    CLEANUP(close_fd) int their_report = -1;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel))
        return viv_fail(err, VIV_SYSTEM, "socketpair: %m");
    worker->channel = channel[0];
    CLEANUP(close_fd) int their_channel = channel[1];
    if (pipe2(out, O_CLOEXEC))
        return viv_fail(err, VIV_SYSTEM, "pipe: %m");
    worker->output[0] = out[0];
    CLEANUP(close_fd) int their_out = out[1];
    if (pipe2(error, O_CLOEXEC))
        return viv_fail(err, VIV_SYSTEM, "pipe: %m");
    worker->output[1] = error[0];
    CLEANUP(close_fd) int their_error = error[1];
    /* The ends of the supervisor only: each end has its own open file description. */
    if (io_set_nonblocking(worker->channel, err) ||
        io_set_nonblocking(worker->output[0], err) ||
        io_set_nonblocking(worker->output[1], err))
        return -1;
    if (isolation_has_namespaces(descriptors->tier)) {
        memcpy(fds + SPAWN_NAMESPACES, descriptors->namespaces,
               sizeof descriptors->namespaces);
    } else {
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, report))
            return viv_fail(err, VIV_SYSTEM, "socketpair: %m");
        worker->report = report[0];
        their_report = report[1];
        fds[SPAWN_REPORT] = their_report;
    }
    fds[SPAWN_CHANNEL] = their_channel;
    fds[SPAWN_STDOUT] = their_out;
    fds[SPAWN_STDERR] = their_error;
    if (io_send_message(descriptors->control, &message, sizeof message, fds,
                        spawn_fd_count(descriptors->tier), err))
        return -1;
    worker->state = WORKER_STARTING;
    worker->asked_for = viv_now();
    return 0;
}

int worker_process_take_listener(struct worker_process *worker, struct viv_error *err) {
    char header[FRAME_HEADER_SIZE], expected[FRAME_HEADER_SIZE];
    int listener = -1;
    size_t fd_count;

    frame_put_header(expected, WORKER_LISTENER, 0, 0);
    ssize_t got = io_receive_message(worker->channel, header, sizeof header, &listener, 1,
                                     &fd_count, err);
    if (got < 0)
        return -1;
    worker->listener = listener;
    if (got != sizeof header || fd_count != 1 ||
        memcmp(header, expected, sizeof header) != 0)
        return viv_fail(err, VIV_BAD_GATEWAY, "not the LISTENER of a worker");
    return 0;
}

/* A process that is a child of ours becomes the worker. */
static int adopt(struct worker_process *worker, pid_t pid, struct viv_error *err) {
    worker->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (worker->pidfd < 0)
        return viv_fail(err, VIV_SYSTEM, "pidfd_open: %m");
    worker->pid = pid;
    worker->state = WORKER_IDLE;
    return 0;
}

int worker_process_ready(struct worker_process *worker, const struct frame *frame,
                         struct viv_error *err) {
    siginfo_t child;

    if (worker->state != WORKER_STARTING || frame->type != WORKER_READY ||
        frame->payload.size != WORKER_READY_SIZE)
        return viv_fail(err, VIV_BAD_GATEWAY, "not the READY of a worker");
    pid_t pid = (pid_t)get_u32(frame->payload.data);
    /* ECHILD unless it is a child of this process. */
    if (pid <= 1 || (worker->report < 0 &&
                     waitid(P_PID, (id_t)pid, &child, WEXITED | WNOHANG | WNOWAIT)))
        return viv_fail(err, VIV_BAD_GATEWAY, "READY names no child");
    return adopt(worker, pid, err);
}

int worker_process_copy(struct worker_process *worker, uint32_t sequence,
                        struct viv_error *err) {
    if (frame_send(worker->channel, WORKER_CHECKPOINT, sequence, NULL, 0, viv_now(), err))
        return -1;
    worker->state = WORKER_COPYING;
    return 0;
}

int worker_process_trim(struct worker_process *worker, struct viv_error *err) {
    return frame_send(worker->channel, WORKER_TRIM, 0, NULL, 0, viv_now(), err);
}

/* A new channel for the copy, whose other end is the answer's. */
static int replace_channel(struct worker_process *worker, int *theirs,
                           struct viv_error *err) {
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return viv_fail(err, VIV_SYSTEM, "socketpair: %m");
    close_fd_cleanup(&worker->pidfd);
    close_fd_cleanup(&worker->channel);
    frame_reader_clear(&worker->reader);
    worker->reader = (struct frame_reader){.cap = worker_cap_to_supervisor};
    worker->pidfd = -1;
    worker->channel = pair[0];
    *theirs = pair[1];
    return io_set_nonblocking(worker->channel, err);
}

int worker_process_restore(struct worker_process *worker, pid_t pid, uint64_t id,
                           uint32_t sequence, viv_time deadline, struct viv_error *err) {
    CLEANUP(close_fd) int theirs = -1;
    struct frame frame;

    worker->interrupted = false;
    worker->pid = 0;
    if (replace_channel(worker, &theirs, err) || adopt(worker, pid, err))
        return -1;
    if (notification_wake(worker->listener, id, theirs, WORKER_CHANNEL))
        return viv_fail(err, VIV_SYSTEM, "the copy is gone");
    close_and_clear(&theirs);
    if (frame_reader_wait(&worker->reader, worker->channel, &frame, deadline, err))
        return -1;
    if (frame.type != WORKER_RESTORED || frame.sequence != sequence ||
        frame_reader_pending(&worker->reader) > 0)
        return viv_fail(err, VIV_BAD_GATEWAY, "not the RESTORED of a copy");
    return 0;
}

int worker_process_ping(struct worker_process *worker, uint32_t number,
                        struct viv_error *err) {
    worker->late_interrupt = worker->interrupted;
    worker->interrupted = false;
    worker->state = WORKER_PINGED;
    return frame_send(worker->channel, WORKER_PING, number, NULL, 0, viv_now(), err);
}

int worker_process_call(struct worker_process *worker, const struct worker_call *call,
                        struct slice text, viv_time deadline, struct viv_error *err) {
    char head[WORKER_CALL_SIZE];
    struct iovec payload[2] = {{head, sizeof head}, {(void *)text.data, text.size}};
    struct worker_call told = *call;

    told.late_interrupt = worker->late_interrupt;
    worker_call_put(head, &told);
    worker->state = WORKER_RUNNING;
    return frame_send(worker->channel, WORKER_CALL, call->number, payload, 2, deadline,
                      err);
}

void worker_process_interrupt(struct worker_process *worker,
                              const struct supervisor_descriptors *descriptors) {
    const struct control_message please = {.what = CONTROL_INTERRUPT_WORKER};

    /* Failures are of a worker or a launcher that is gone, which shows otherwise. */
    if (worker->report >= 0)
        worker->interrupt_pending = io_send_message(descriptors->control, &please,
                                                    sizeof please, NULL, 0, NULL) == 0;
    else if (worker->pidfd >= 0)
        syscall(SYS_pidfd_send_signal, worker->pidfd, SIGINT, NULL, 0);
    worker->interrupted = true;
}

void worker_process_interrupted(struct worker_process *worker) {
    worker->interrupt_pending = false;
}

bool worker_process_is_free(const struct worker_process *worker) {
    return worker->state == WORKER_IDLE && !worker->interrupt_pending;
}

bool worker_process_has_ended(const struct worker_process *worker, viv_time deadline) {
    return worker->pidfd >= 0 && io_wait(worker->pidfd, false, deadline, NULL) == 0;
}

void worker_process_reap_others(const struct worker_process *worker) {
    siginfo_t ended = {0};

    while (worker->pid > 0 &&
           waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid > 0 && ended.si_pid != worker->pid) {
        waitpid(ended.si_pid, NULL, WNOHANG);
        ended.si_pid = 0; /* it is left as it is where there is no other */
    }
}

static struct worker_end end_of(int status) {
    return (struct worker_end){
        .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
        .status = WIFEXITED(status) ? WEXITSTATUS(status) : 0,
    };
}

void worker_process_end_all(void) {
    kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
}

static void end_children(struct worker_process *worker, struct worker_end *end) {
    int status;

    *end = (struct worker_end){.signal = SIGKILL};
    if (worker->pid > 0) {
        kill(worker->pid, SIGKILL);
        while (waitpid(worker->pid, &status, 0) < 0)
            if (errno != EINTR)
                return;
        *end = end_of(status);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
    } else {
        /* It never became ready, so its number is not known; it is the only other
         * process. */
        worker_process_end_all();
    }
}

/* The launcher kills and reaps it, and writes the status; a worker that ended by itself
 * has it written already. */
static int end_by_launcher(struct worker_process *worker, int control,
                           struct worker_end *end, struct viv_error *err) {
    const struct control_message please = {.what = CONTROL_END_WORKER};
    int status;

    if (io_send_message(control, &please, sizeof please, NULL, 0, err) ||
        io_wait(worker->report, false, viv_after_ms(REPORT_LIMIT_MS), err))
        return -1;
    if (read(worker->report, &status, sizeof status) != sizeof status)
        return viv_fail(err, VIV_SYSTEM, "the launcher lost the worker");
    *end = end_of(status);
    return 0;
}

int worker_process_end(struct worker_process *worker,
                       const struct supervisor_descriptors *descriptors,
                       struct worker_end *end, struct viv_error *err) {
    if (worker->report >= 0)
        return end_by_launcher(worker, descriptors->control, end, err);
    end_children(worker, end);
    return 0;
}

void worker_process_forget(struct worker_process *worker) {
    close_fd_cleanup(&worker->pidfd);
    close_fd_cleanup(&worker->channel);
    close_fd_cleanup(&worker->listener);
    close_fd_cleanup(&worker->report);
    close_fd_cleanup(&worker->output[0]);
    close_fd_cleanup(&worker->output[1]);
    frame_reader_clear(&worker->reader);
    worker_process_init(worker);
}
