/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints as a supervisor makes them, of a worker that does nothing else. Each test is
 * PID 1 of a PID namespace, as a supervisor is.
 */
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

#define ROUNDS 200

/* ---- the worker ---- */

/* Asks without end for what only the main thread gets, and only once. */
static void *spin(void *context) {
    bool refused = true;

    while (refused) {
        long made = syscall(SYS_clone, CHECKPOINT_CLONE_FLAGS, NULL, NULL, NULL, NULL);
        refused = made < 0 && syscall(SYS_getppid, CHECKPOINT_PARK) < 0;
    }
    while (pause()) /* a process too many, to be counted */
        ;
    return context;
}

/* It answers each CHECKPOINT, with what is told of the copies: a count that each has of its
 * own. */
static void be_worker(int channel, bool spins) {
    const struct raw_fork thread = raw_fork_prepare();
    char frame[FRAME_HEADER_SIZE + WORKER_COPIED_SIZE];
    pthread_t spinner;

    REQUIRE(dup2(channel, WORKER_CHANNEL) == WORKER_CHANNEL);
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    frame_put_header(frame, WORKER_LISTENER, 0, 0);
    REQUIRE(worker_copy_offer(WORKER_CHANNEL, frame, FRAME_HEADER_SIZE, NULL) == 0);
    REQUIRE(!spins || pthread_create(&spinner, NULL, spin, NULL) == 0);
    for (;;) {
        if (recv(WORKER_CHANNEL, frame, FRAME_HEADER_SIZE, MSG_WAITALL) !=
            FRAME_HEADER_SIZE)
            _exit(0);
        uint32_t sequence = get_u32(frame + 8);
        enum worker_copy copy = worker_copy_make(&thread, WORKER_CHANNEL);
        bool woken = copy == WORKER_COPY_WOKEN;
        frame_put_header(frame, woken ? WORKER_RESTORED : WORKER_COPIED, sequence,
                         woken ? 0 : WORKER_COPIED_SIZE);
        frame[FRAME_HEADER_SIZE] = copy == WORKER_COPY_MADE;
        size_t size = FRAME_HEADER_SIZE + (woken ? 0 : WORKER_COPIED_SIZE);
        REQUIRE(write(WORKER_CHANNEL, frame, size) == (ssize_t)size);
    }
}

/* ---- the supervisor ---- */

struct bench {
    struct supervisor self;
    int launcher;
};

static void wait_for(int fd) {
    REQUIRE(io_wait(fd, false, viv_after_ms(20000), NULL) == 0);
}

static void begin(struct bench *bench, bool spins) {
    const struct settings settings = {.checkpoint_memory = 1000};
    struct supervisor *self = &bench->self;
    int control[2], channel[2];
    char payload[WORKER_READY_SIZE];

    *self = (struct supervisor){.own = {.tier = ISOLATION_ISOLATED, .events = -1}};
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0);
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) == 0);
    self->own.control = control[0];
    bench->launcher = control[1];
    client_channel_init(&self->client);
    worker_process_init(&self->worker);
    checkpoints_init(&self->checkpoints, &settings, true);
    pid_t worker = fork();
    REQUIRE(worker >= 0);
    if (worker == 0)
        be_worker(channel[1], spins);
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

/* The question to the launcher, and its answer. */
static struct control_look look(struct bench *bench) {
    struct control_message message;
    size_t count;

    bench->self.checkpoints.state++;
    supervisor_checkpoint_is_due(&bench->self);
    REQUIRE(io_receive_message(bench->launcher, &message, sizeof message, NULL, 0, &count,
                               NULL) == sizeof message);
    REQUIRE(message.what == CONTROL_LOOK && message.look.number > 0);
    REQUIRE(message.look.worker == bench->self.worker.pid);
    message.look.verdict = LOOK_CLEAN;
    return message.look;
}

static void turn(struct supervisor *self) {
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

static void make_checkpoint(struct bench *bench) {
    struct supervisor *self = &bench->self;
    const struct control_look looked = look(bench);

    supervisor_worker_was_looked_at(self, &looked);
    REQUIRE(self->worker.state == WORKER_COPYING);
    while (self->worker.state == WORKER_COPYING)
        turn(self);
    REQUIRE(self->worker.state == WORKER_IDLE && self->checkpoints.skipped == 0);
    REQUIRE(checkpoints_have(&self->checkpoints.parked));
    REQUIRE(self->checkpoints.parked.number == self->checkpoints.state);
    worker_process_reap_others(&self->worker);
}

static void lose_worker(struct supervisor *self) {
    struct worker_end end;

    REQUIRE(worker_process_end(&self->worker, &self->own, &end, NULL) == 0);
    REQUIRE(end.signal == SIGKILL);
}

/* Children of this process. */
static size_t children(void) {
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

/* When those that were killed have been reaped. */
static void require_children(struct supervisor *self, size_t expected) {
    const viv_time limit = viv_after_ms(20000);

    while (children() != expected && viv_now() < limit) {
        usleep(1000);
        worker_process_reap_others(&self->worker);
    }
    REQUIRE(children() == expected);
}

static int body_goes_back(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, false);
    make_checkpoint(&bench);
    pid_t first = self->worker.pid, copy = self->checkpoints.parked.pid;
    REQUIRE(copy != first);
    /* What the session sends to the copy was meant for nobody. */
    REQUIRE(kill(copy, SIGTERM) == 0 && kill(copy, SIGUSR1) == 0);
    lose_worker(self);
    REQUIRE(supervisor_restore_worker(self));
    REQUIRE(self->worker.pid == copy && self->worker.state == WORKER_IDLE);
    REQUIRE(self->restored_to == 1 && !self->variables_lost);
    REQUIRE(self->checkpoints.parked.pid == 0);
    /* Ten times: the one that goes on is as good as the one before. */
    for (int generation = 0; generation < 10; generation++) {
        self->checkpoints.restores = 0; /* as a call does */
        make_checkpoint(&bench);
        lose_worker(self);
        REQUIRE(supervisor_restore_worker(self));
        REQUIRE(!self->variables_lost);
    }
    require_children(self, 1);
    return 0;
}

static void goes_back_to_the_copy(void **state) {
    (void)state;
    in_pid_namespace(body_goes_back);
}

static int body_without_calls(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, false);
    for (int restored = 0; restored < 5; restored++) {
        make_checkpoint(&bench);
        lose_worker(self);
        REQUIRE(supervisor_restore_worker(self));
    }
    make_checkpoint(&bench);
    lose_worker(self);
    REQUIRE(!supervisor_restore_worker(self));
    worker_process_end_all();
    require_children(self, 0);
    return 0;
}

static void one_that_always_ends_is_not_woken_for_ever(void **state) {
    (void)state;
    in_pid_namespace(body_without_calls);
}

static int body_older_copy(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, false);
    make_checkpoint(&bench);
    struct control_look looked = look(&bench);
    looked.verdict = LOOK_OPEN_FILES;
    supervisor_worker_was_looked_at(self, &looked);
    REQUIRE(self->worker.state == WORKER_IDLE);
    REQUIRE(self->checkpoints.skipped == SESSION_HAS_OPEN_FILES);
    looked = look(&bench);
    looked.own = 1001;
    supervisor_worker_was_looked_at(self, &looked);
    REQUIRE(self->checkpoints.skipped == SESSION_TOO_MUCH_MEMORY);
    lose_worker(self);
    REQUIRE(supervisor_restore_worker(self));
    REQUIRE(self->restored_to == 1 && self->variables_lost);
    return 0;
}

static void an_older_copy_is_told_as_a_loss(void **state) {
    (void)state;
    in_pid_namespace(body_older_copy);
}

static int body_old_answer(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, false);
    struct control_look first = look(&bench);
    supervisor_session_is_busy(self); /* a call, and another look after it */
    supervisor_worker_was_looked_at(self, &first);
    REQUIRE(self->worker.state == WORKER_IDLE);
    struct control_look second = look(&bench);
    supervisor_worker_was_looked_at(self, &first);
    REQUIRE(self->worker.state == WORKER_IDLE);
    supervisor_worker_was_looked_at(self, &second);
    REQUIRE(self->worker.state == WORKER_COPYING);
    return 0;
}

static void a_look_from_before_a_call_does_not_count(void **state) {
    (void)state;
    in_pid_namespace(body_old_answer);
}

static int body_worker_dies(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, false);
    make_checkpoint(&bench);
    kill(self->worker.pid, SIGSTOP);
    const struct control_look looked = look(&bench);
    supervisor_worker_was_looked_at(self, &looked);
    REQUIRE(self->worker.state == WORKER_COPYING);
    lose_worker(self);
    REQUIRE(supervisor_restore_worker(self));
    REQUIRE(self->restored_to == 1 && self->variables_lost);
    make_checkpoint(&bench);
    return 0;
}

static void a_worker_that_dies_meanwhile_is_restored_from_the_older_copy(void **state) {
    (void)state;
    in_pid_namespace(body_worker_dies);
}

static int body_copy_killed(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, false);
    make_checkpoint(&bench);
    kill(self->checkpoints.parked.pid, SIGKILL);
    wait_for(self->checkpoints.parked.pidfd);
    REQUIRE(!checkpoints_have(&self->checkpoints.parked));
    lose_worker(self);
    REQUIRE(!supervisor_restore_worker(self));
    REQUIRE(self->restored_to == 0 && self->checkpoints.parked.pid == 0);
    return 0;
}

static void a_copy_that_was_killed_is_none(void **state) {
    (void)state;
    in_pid_namespace(body_copy_killed);
}

static int body_spinner(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, true);
    for (int round = 0; round < ROUNDS; round++)
        make_checkpoint(&bench);
    /* The worker, and the last of its copies. */
    require_children(self, 2);
    lose_worker(self);
    REQUIRE(supervisor_restore_worker(self));
    require_children(self, 1);
    return 0;
}

static void a_thread_that_asks_without_end_gets_nothing(void **state) {
    (void)state;
    in_pid_namespace(body_spinner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_back_to_the_copy),
        cmocka_unit_test(one_that_always_ends_is_not_woken_for_ever),
        cmocka_unit_test(an_older_copy_is_told_as_a_loss),
        cmocka_unit_test(a_look_from_before_a_call_does_not_count),
        cmocka_unit_test(a_worker_that_dies_meanwhile_is_restored_from_the_older_copy),
        cmocka_unit_test(a_copy_that_was_killed_is_none),
        cmocka_unit_test(a_thread_that_asks_without_end_gets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
