/* SPDX-License-Identifier: MIT */
/*
 * The worker as its supervisor sees it. Each test is PID 1 of a PID namespace, as a
 * supervisor is: what is tested here kills and reaps whatever is there.
 */
#include "tests/unit/unit.h"

#include <poll.h>
#include <sys/socket.h>

#include "common/io.h"
#include "executor/supervisor/worker_process.h"
#include "tests/unit/child.h"

/* A supervisor with the launcher's end of its control socket. */
struct bench {
    struct supervisor_descriptors own;
    struct worker_process worker;
    int launcher;
};

static struct bench bench_new(void) {
    struct bench bench;
    int pair[2];

    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    bench.own.tier = ISOLATION_ISOLATED;
    bench.own.control = pair[0];
    bench.launcher = pair[1];
    for (int i = 0; i < NAMESPACE_COUNT; i++)
        bench.own.namespaces[i] = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);
    worker_process_init(&bench.worker);
    return bench;
}

/* Asks, and takes the request as the launcher does. */
static void ask(struct bench *bench, int fds[SPAWN_CGROUP]) {
    struct control_message message;
    size_t count;

    REQUIRE(worker_process_ask(&bench->worker, &bench->own, NULL) == 0);
    REQUIRE(io_receive_message(bench->launcher, &message, sizeof message, fds,
                               SPAWN_CGROUP, &count, NULL) == sizeof message);
    REQUIRE(message.what == CONTROL_SPAWN && count == SPAWN_CGROUP);
}

static void close_all(const int fds[SPAWN_CGROUP]) {
    for (int i = 0; i < SPAWN_CGROUP; i++)
        close(fds[i]);
}

/* Forks a worker that keeps its ends and waits to be killed, or ends with a status. */
static pid_t fork_worker(const int fds[SPAWN_CGROUP], int status) {
    /* A job in the background of a shell has it ignored, and its children at first. */
    signal(SIGINT, SIG_DFL);
    pid_t child = fork();

    REQUIRE(child >= 0);
    if (child == 0) {
        if (status >= 0)
            _exit(status);
        for (;;)
            pause();
    }
    close_all(fds);
    return child;
}

/* Ends it, and tells how it ended. */
static struct worker_end end(struct bench *bench) {
    struct worker_end end;

    REQUIRE(worker_process_end(&bench->worker, &bench->own, &end, NULL) == 0);
    return end;
}

static int say_ready(struct bench *bench, uint8_t type, uint32_t pid, size_t size) {
    char payload[8] = {0};
    struct frame frame = {type, 0, {payload, size}};

    put_u32(payload, pid);
    return worker_process_ready(&bench->worker, &frame, NULL);
}

static int body_asks(void) {
    struct bench bench = bench_new();
    int fds[SPAWN_CGROUP];
    char byte;

    REQUIRE(bench.worker.state == WORKER_ABSENT);
    ask(&bench, fds);
    REQUIRE(bench.worker.state == WORKER_STARTING);
    /* The worker's ends block; those of the supervisor do not, and close on exec. */
    const int theirs[] = {fds[SPAWN_CHANNEL], fds[SPAWN_STDOUT], fds[SPAWN_STDERR]};
    const int ours[] = {bench.worker.channel, bench.worker.output[0],
                        bench.worker.output[1]};
    for (int i = 0; i < 3; i++) {
        REQUIRE(!(fcntl(theirs[i], F_GETFL) & O_NONBLOCK));
        REQUIRE(fcntl(ours[i], F_GETFL) & O_NONBLOCK);
        REQUIRE(fcntl(ours[i], F_GETFD) & FD_CLOEXEC);
        REQUIRE(write(theirs[i], "x", 1) == 1);
        REQUIRE(read(ours[i], &byte, 1) == 1);
    }
    /* No end of the worker's is left here: its end shows. */
    close_all(fds);
    for (int i = 0; i < 3; i++)
        REQUIRE(read(ours[i], &byte, 1) == 0);
    return 0;
}

static void asks_for_a_worker(void **state) {
    (void)state;
    in_pid_namespace(body_asks);
}

static int body_asks_nobody(void) {
    struct bench bench = bench_new();
    struct viv_error err;

    close(bench.launcher);
    REQUIRE(worker_process_ask(&bench.worker, &bench.own, &err) == -1);
    REQUIRE(err.code == VIV_BAD_GATEWAY);
    int before = open_descriptors();
    worker_process_forget(&bench.worker);
    REQUIRE(open_descriptors() == before - 3);
    return 0;
}

static void a_failed_request_leaves_nothing(void **state) {
    (void)state;
    in_pid_namespace(body_asks_nobody);
}

static int body_ready(void) {
    struct bench bench = bench_new();
    int fds[SPAWN_CGROUP];

    ask(&bench, fds);
    pid_t worker = fork_worker(fds, -1);
    REQUIRE(say_ready(&bench, WORKER_READY, (uint32_t)worker, 4) == 0);
    REQUIRE(bench.worker.state == WORKER_IDLE && bench.worker.pid == worker);
    REQUIRE(!worker_process_has_ended(&bench.worker, viv_now()));
    /* A second one is out of place. */
    REQUIRE(say_ready(&bench, WORKER_READY, (uint32_t)worker, 4) == -1);
    return 0;
}

static void takes_the_ready_of_its_child(void **state) {
    (void)state;
    in_pid_namespace(body_ready);
}

static int body_other_ready(void) {
    struct bench bench = bench_new();
    int fds[SPAWN_CGROUP], ends[2];
    uint32_t grandchild;

    ask(&bench, fds);
    REQUIRE(pipe(ends) == 0);
    pid_t between = fork();
    if (between == 0) {
        pid_t inner = fork();
        if (inner > 0)
            REQUIRE(write(ends[1], &inner, sizeof inner) == sizeof inner);
        for (;;)
            pause();
    }
    REQUIRE(read(ends[0], &grandchild, sizeof grandchild) == sizeof grandchild);
    const uint32_t wrong[] = {0, 1, grandchild, 1000, 0x80000000, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        REQUIRE(say_ready(&bench, WORKER_READY, wrong[i], 4) == -1);
    REQUIRE(say_ready(&bench, WORKER_RESULT, (uint32_t)between, 4) == -1);
    REQUIRE(say_ready(&bench, WORKER_READY, (uint32_t)between, 3) == -1);
    REQUIRE(say_ready(&bench, WORKER_READY, (uint32_t)between, 5) == -1);
    REQUIRE(bench.worker.state == WORKER_STARTING);
    REQUIRE(say_ready(&bench, WORKER_READY, (uint32_t)between, 4) == 0);
    return 0;
}

static void takes_no_other_ready(void **state) {
    (void)state;
    in_pid_namespace(body_other_ready);
}

static int body_calls(void) {
    struct bench bench = bench_new();
    const struct worker_call call = {.nonce = "nonce",
                                     .number = 9,
                                     .code_size = 4,
                                     .has_stdin = true,
                                     .stdin_size = 2};
    struct frame_reader reader = {.cap = worker_cap_to_worker};
    struct frame frame;
    struct worker_call got;
    struct slice code, input;
    int fds[SPAWN_CGROUP];

    ask(&bench, fds);
    bench.worker.state = WORKER_IDLE;
    REQUIRE(worker_process_call(&bench.worker, &call, SLICE("codein"),
                                viv_after_ms(10000), NULL) == 0);
    REQUIRE(bench.worker.state == WORKER_RUNNING);
    REQUIRE(frame_reader_wait(&reader, fds[SPAWN_CHANNEL], &frame, VIV_TIME_NEVER,
                              NULL) == 0);
    REQUIRE(frame.type == WORKER_CALL && frame.sequence == 9);
    REQUIRE(worker_call_get(frame.payload, &got, &code, &input, NULL) == 0);
    REQUIRE(code.size == 4 && memcmp(code.data, "code", 4) == 0 && input.size == 2);
    close(fds[SPAWN_CHANNEL]);
    REQUIRE(worker_process_ping(&bench.worker, 10, NULL) == -1);
    REQUIRE(worker_process_call(&bench.worker, &call, SLICE("codein"),
                                viv_after_ms(10000), NULL) == -1);
    return 0;
}

static void sends_a_call(void **state) {
    (void)state;
    in_pid_namespace(body_calls);
}

/* Whether the next CALL tells of an interrupt that may come late. */
static bool tells_of_late_interrupt(struct bench *bench, int channel) {
    const struct worker_call call = {.number = 1};
    struct frame_reader reader = {.cap = worker_cap_to_worker};
    struct frame frame;
    struct worker_call got;
    struct slice code, input;

    REQUIRE(worker_process_ping(&bench->worker, call.number, NULL) == 0);
    REQUIRE(bench->worker.state == WORKER_PINGED);
    REQUIRE(worker_process_call(&bench->worker, &call, SLICE(""), VIV_TIME_NEVER, NULL) ==
            0);
    REQUIRE(frame_reader_wait(&reader, channel, &frame, VIV_TIME_NEVER, NULL) == 0);
    REQUIRE(frame.type == WORKER_PING && frame.sequence == call.number);
    REQUIRE(frame_reader_wait(&reader, channel, &frame, VIV_TIME_NEVER, NULL) == 0);
    REQUIRE(worker_call_get(frame.payload, &got, &code, &input, NULL) == 0);
    frame_reader_clear(&reader);
    return got.late_interrupt;
}

static int body_interrupts(void) {
    struct bench bench = bench_new();
    int fds[SPAWN_CGROUP];

    ask(&bench, fds);
    int channel = fcntl(fds[SPAWN_CHANNEL], F_DUPFD_CLOEXEC, 0);
    pid_t worker = fork_worker(fds, -1);
    REQUIRE(say_ready(&bench, WORKER_READY, (uint32_t)worker, 4) == 0);
    REQUIRE(!tells_of_late_interrupt(&bench, channel));
    worker_process_interrupt(&bench.worker, &bench.own);
    REQUIRE(worker_process_has_ended(&bench.worker, viv_after_ms(60000)));
    REQUIRE(tells_of_late_interrupt(&bench, channel));
    REQUIRE(!tells_of_late_interrupt(&bench, channel));
    REQUIRE(end(&bench).signal == SIGINT);
    /* It is of this worker, not of the next one. */
    worker_process_interrupt(&bench.worker, &bench.own);
    worker_process_forget(&bench.worker);
    REQUIRE(!bench.worker.interrupted);
    return 0;
}

static void an_interrupt_is_told_with_the_next_call(void **state) {
    (void)state;
    in_pid_namespace(body_interrupts);
}

static struct worker_end end_of(int status, int number) {
    struct bench bench = bench_new();
    int fds[SPAWN_CGROUP];

    ask(&bench, fds);
    pid_t worker = fork_worker(fds, status);
    REQUIRE(say_ready(&bench, WORKER_READY, (uint32_t)worker, 4) == 0);
    if (number)
        REQUIRE(kill(worker, number) == 0);
    if (status >= 0 || (number && number != SIGSTOP))
        REQUIRE(worker_process_has_ended(&bench.worker, viv_after_ms(60000)));
    struct worker_end ended = end(&bench);
    REQUIRE(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    int before = open_descriptors();
    worker_process_forget(&bench.worker);
    REQUIRE(open_descriptors() == before - 4);
    REQUIRE(bench.worker.state == WORKER_ABSENT && bench.worker.pid == 0);
    return ended;
}

static int body_ends(void) {
    struct worker_end ended = end_of(0, 0);

    REQUIRE(ended.signal == 0 && ended.status == 0);
    ended = end_of(3, 0);
    REQUIRE(ended.signal == 0 && ended.status == 3);
    ended = end_of(255, 0);
    REQUIRE(ended.signal == 0 && ended.status == 255);
    ended = end_of(-1, SIGSEGV);
    REQUIRE(ended.signal == SIGSEGV);
    ended = end_of(-1, 0);
    REQUIRE(ended.signal == SIGKILL);
    /* A stopped process is killed like any other. */
    ended = end_of(-1, SIGSTOP);
    REQUIRE(ended.signal == SIGKILL);
    return 0;
}

static void tells_how_a_worker_ended(void **state) {
    (void)state;
    in_pid_namespace(body_ends);
}

/* One that never said its number is killed with all others that are there. */
static int body_ends_stillborn(void) {
    struct bench bench = bench_new();
    int fds[SPAWN_CGROUP];

    ask(&bench, fds);
    pid_t one = fork_worker(fds, -1);
    pid_t other = fork();
    if (other == 0)
        for (;;)
            pause();
    struct worker_end ended = end(&bench);
    REQUIRE(ended.signal == SIGKILL);
    REQUIRE(kill(one, 0) == -1 && errno == ESRCH);
    REQUIRE(kill(other, 0) == -1 && errno == ESRCH);
    REQUIRE(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    return 0;
}

static void ends_one_that_never_became_ready(void **state) {
    (void)state;
    in_pid_namespace(body_ends_stillborn);
}

/* A child that has ended and waits to be reaped. */
static pid_t ended_child(void) {
    pid_t child = fork();
    siginfo_t ended;

    if (child == 0)
        _exit(0);
    REQUIRE(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT) == 0);
    return child;
}

static int body_reaps_others(void) {
    struct bench bench = bench_new();
    int fds[SPAWN_CGROUP];
    siginfo_t ended;

    ask(&bench, fds);
    pid_t first = ended_child(), second = ended_child();
    /* Either might be the worker, whose READY is still to be read. */
    worker_process_reap_others(&bench.worker);
    REQUIRE(kill(first, 0) == 0 && kill(second, 0) == 0);
    pid_t worker = fork_worker(fds, -1);
    REQUIRE(say_ready(&bench, WORKER_READY, (uint32_t)worker, WORKER_READY_SIZE) == 0);
    worker_process_reap_others(&bench.worker);
    REQUIRE(kill(first, 0) == -1 && kill(second, 0) == -1 && kill(worker, 0) == 0);
    /* How the worker ended is still to be told. */
    kill(worker, SIGTERM);
    REQUIRE(waitid(P_PID, (id_t)worker, &ended, WEXITED | WNOWAIT) == 0);
    worker_process_reap_others(&bench.worker);
    REQUIRE(end(&bench).signal == SIGTERM);
    worker_process_reap_others(&bench.worker);
    return 0;
}

static void reaps_others_once_the_worker_is_known(void **state) {
    (void)state;
    in_pid_namespace(body_reaps_others);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(asks_for_a_worker),
        cmocka_unit_test(a_failed_request_leaves_nothing),
        cmocka_unit_test(takes_the_ready_of_its_child),
        cmocka_unit_test(takes_no_other_ready),
        cmocka_unit_test(sends_a_call),
        cmocka_unit_test(an_interrupt_is_told_with_the_next_call),
        cmocka_unit_test(tells_how_a_worker_ended),
        cmocka_unit_test(ends_one_that_never_became_ready),
        cmocka_unit_test(reaps_others_once_the_worker_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
