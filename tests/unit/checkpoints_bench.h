/* SPDX-License-Identifier: MIT */
/*
 * A bench for checkpoints as a supervisor makes them: a supervisor without its loop, the
 * launcher's end of its socket, and a worker that does nothing but copy itself. Each test
 * is PID 1 of a PID namespace, as a supervisor is.
 */
#ifndef VIV_TESTS_CHECKPOINTS_BENCH_H
#define VIV_TESTS_CHECKPOINTS_BENCH_H

#include "tests/unit/unit.h"

#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "common/io.h"
#include "executor/checkpoint.h"
#include "executor/supervisor/supervisor_state.h"
#include "executor/worker_copy.h"
#include "tests/unit/child.h"

/* ---- the worker ---- */

/* Asks without end for what only the main thread gets, and only once. */
static inline void *spin(void *context) {
    bool refused = true;

    while (refused) {
        long made = syscall(SYS_clone, CHECKPOINT_CLONE_FLAGS, NULL, NULL, NULL, NULL);
        refused = made < 0 && syscall(SYS_getppid, CHECKPOINT_PARK) < 0;
    }
    while (pause()) /* a process too many, to be counted */
        ;
    return context;
}

/* A frame of a worker's; without a type there is none. */
struct said {
    uint8_t type;
    uint32_t ahead; /* of the sequence number of the CHECKPOINT */
    uint32_t size;  /* of the payload */
    char fill;      /* each byte of it */
};

/* What a worker does that another one would not. */
struct behaviour {
    bool spins;
    /* From this CHECKPOINT on it says this, all at once, before it makes the copy, and
     * this in place of its COPIED; 0: never. */
    int lies_from;
    struct said before[2], after[2];
};

static inline void say(const struct said said[2], uint32_t sequence) {
    char bytes[2 * (FRAME_HEADER_SIZE + 16)];
    size_t size = 0;

    for (int i = 0; i < 2 && said[i].type != 0; i++) {
        frame_put_header(bytes + size, said[i].type, sequence + said[i].ahead,
                         said[i].size);
        memset(bytes + size + FRAME_HEADER_SIZE, said[i].fill, said[i].size);
        size += FRAME_HEADER_SIZE + said[i].size;
    }
    REQUIRE(write(WORKER_CHANNEL, bytes, size) == (ssize_t)size);
}

/* What it has to say of a copy. */
static inline void say_truth(enum worker_copy copy, uint32_t sequence) {
    char frame[FRAME_HEADER_SIZE + WORKER_COPIED_SIZE];
    bool woken = copy == WORKER_COPY_WOKEN;
    size_t size = FRAME_HEADER_SIZE + (woken ? 0 : WORKER_COPIED_SIZE);

    frame_put_header(frame, woken ? WORKER_RESTORED : WORKER_COPIED, sequence,
                     woken ? 0 : WORKER_COPIED_SIZE);
    frame[FRAME_HEADER_SIZE] = copy == WORKER_COPY_MADE;
    REQUIRE(write(WORKER_CHANNEL, frame, size) == (ssize_t)size);
}

/* It answers each CHECKPOINT; a copy that was woken is honest. */
static inline void be_worker(int channel, const struct behaviour *behaviour) {
    const struct raw_fork thread = raw_fork_prepare();
    char frame[FRAME_HEADER_SIZE];
    bool honest = behaviour->lies_from == 0;
    pthread_t spinner;

    REQUIRE(dup2(channel, WORKER_CHANNEL) == WORKER_CHANNEL);
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    frame_put_header(frame, WORKER_LISTENER, 0, 0);
    REQUIRE(worker_copy_offer(WORKER_CHANNEL, frame, sizeof frame, NULL) == 0);
    REQUIRE(!behaviour->spins || pthread_create(&spinner, NULL, spin, NULL) == 0);
    for (int asked = 1;; asked++) {
        do
            if (recv(WORKER_CHANNEL, frame, sizeof frame, MSG_WAITALL) != sizeof frame)
                _exit(0);
        while (frame[5] == WORKER_TRIM); /* frame_put_header() has the type there */
        REQUIRE(frame[5] == WORKER_CHECKPOINT);
        uint32_t sequence = get_u32(frame + 8);
        bool lies = !honest && asked >= behaviour->lies_from;
        if (lies)
            say(behaviour->before, sequence);
        enum worker_copy copy = worker_copy_make(&thread, WORKER_CHANNEL);
        if (copy == WORKER_COPY_WOKEN)
            lies = !(honest = true);
        if (lies)
            say(behaviour->after, sequence);
        else
            say_truth(copy, sequence);
    }
}

/* ---- the supervisor ---- */

struct bench {
    struct supervisor self;
    int launcher;
};

static inline void wait_for(int fd) {
    REQUIRE(io_wait(fd, false, viv_after_ms(20000), NULL) == 0);
}

/* `behaviour`: NULL for a worker that does what it should. */
static inline void begin(struct bench *bench, const struct behaviour *behaviour) {
    const struct settings settings = {.checkpoint_memory = 1000};
    static const struct behaviour honest;
    struct supervisor *self = &bench->self;
    int control[2], channel[2];
    char payload[WORKER_READY_SIZE];

    *self = (struct supervisor){.own = {.tier = ISOLATION_ISOLATED, .events = -1}};
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0);
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) == 0);
    self->own.control = control[0];
    bench->launcher = control[1];
    for (int i = 0; i < NAMESPACE_COUNT; i++)
        self->own.namespaces[i] = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    client_channel_init(&self->client);
    worker_process_init(&self->worker);
    checkpoints_init(&self->checkpoints, &settings, true);
    pid_t worker = fork();
    REQUIRE(worker >= 0);
    if (worker == 0)
        be_worker(channel[1], behaviour ? behaviour : &honest);
    close(channel[1]);
    self->worker.channel = channel[0];
    REQUIRE(io_set_nonblocking(channel[0], NULL) == 0);
    self->worker.state = WORKER_STARTING;
    wait_for(channel[0]);
    REQUIRE(worker_process_take_listener(&self->worker, NULL) == 0);
    put_u32(payload, (uint32_t)worker);
    const struct frame ready = {WORKER_READY, 0, {payload, sizeof payload}};
    REQUIRE(worker_process_ready(&self->worker, &ready, NULL) == 0);
}

/* What the supervisor asks the launcher, as one answers that has found nothing in the
 * way. */
static inline struct control_look answer_look(struct bench *bench) {
    struct control_message message;
    size_t count;

    REQUIRE(io_receive_message(bench->launcher, &message, sizeof message, NULL, 0, &count,
                               NULL) == sizeof message);
    REQUIRE(message.what == CONTROL_LOOK && message.look.number > 0);
    REQUIRE(message.look.worker == bench->self.worker.pid);
    message.look.verdict = LOOK_CLEAN;
    return message.look;
}

/* The same, when a checkpoint is due after another call. */
static inline struct control_look look(struct bench *bench) {
    bench->self.checkpoints.state++;
    supervisor_checkpoint_is_due(&bench->self);
    return answer_look(bench);
}

static inline void turn(struct supervisor *self) {
    struct pollfd watched[] = {{self->worker.listener, POLLIN, 0},
                               {self->worker.channel, POLLIN, 0}};

    REQUIRE(poll(watched, 2, 20000) > 0);
    /* Without the limit: here it is to go on for ever. */
    self->checkpoints.refused = 0;
    if (watched[1].revents)
        supervisor_read_worker(self);
    else
        supervisor_read_notification(self);
}

/* Passes the launcher's answer on, up to the copy. */
static inline void finish_checkpoint(struct bench *bench,
                                     const struct control_look *looked) {
    struct supervisor *self = &bench->self;

    supervisor_worker_was_looked_at(self, looked);
    REQUIRE(self->worker.state == WORKER_COPYING);
    while (self->worker.state == WORKER_COPYING)
        turn(self);
    REQUIRE(self->worker.state == WORKER_IDLE && self->checkpoints.skipped == 0);
    REQUIRE(checkpoints_have(&self->checkpoints.parked));
    REQUIRE(self->checkpoints.parked.number == self->checkpoints.state);
    worker_process_reap_others(&self->worker);
}

static inline void make_checkpoint(struct bench *bench) {
    const struct control_look looked = look(bench);

    finish_checkpoint(bench, &looked);
}

static inline void lose_worker(struct supervisor *self) {
    struct worker_end end;

    REQUIRE(worker_process_end(&self->worker, &self->own, &end, NULL) == 0);
    REQUIRE(end.signal == SIGKILL);
}

/* Children of this process. */
static inline size_t children(void) {
    char text[4096] = "";
    size_t count = 0;
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);

    /* Of the namespace above, whose number of them is the same. */
    REQUIRE(fd >= 0 && read(fd, text, sizeof text - 1) >= 0);
    close(fd);
    for (const char *next = text; *next; next++)
        count += *next == ' ';
    return count;
}

/* When those that were killed have been reaped, and those ended that nobody lets park. */
static inline void require_children(struct supervisor *self, size_t expected) {
    const viv_time limit = viv_after_ms(20000);

    while (children() != expected && viv_now() < limit) {
        usleep(1000);
        if (io_wait(self->worker.listener, false, viv_now(), NULL) == 0)
            supervisor_read_notification(self);
        worker_process_reap_others(&self->worker);
    }
    REQUIRE(children() == expected);
}

#endif
