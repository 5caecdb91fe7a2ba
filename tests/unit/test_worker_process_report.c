/* SPDX-License-Identifier: MIT */
/* A worker without a PID namespace as its supervisor sees it: the launcher is its parent,
 * which tells of its end through a pipe. */
#include "tests/unit/unit.h"

#include <poll.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "executor/supervisor/worker_process.h"
#include "tests/unit/child.h"

#define FD_COUNT (SPAWN_REPORT + 1)

/* A supervisor and the launcher's end of its control socket; the descriptors of the
 * worker that it has asked for, and the process that is taken for it. */
struct bench {
    struct supervisor_descriptors own;
    struct worker_process worker;
    int launcher;
    int fds[SPAWN_FD_MAX];
    pid_t pid;
};

static struct bench *bench; /* of the running test */

static int set_up(void **state) {
    int pair[2];

    (void)state;
    bench = viv_xcalloc(1, sizeof *bench);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    bench->own.tier = ISOLATION_CONFINED;
    bench->own.control = pair[0];
    bench->launcher = pair[1];
    for (int i = 0; i < SPAWN_FD_MAX; i++)
        bench->fds[i] = -1;
    worker_process_init(&bench->worker);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (bench->pid > 0) {
        kill(bench->pid, SIGKILL);
        waitpid(bench->pid, NULL, 0);
    }
    worker_process_forget(&bench->worker);
    for (int i = 0; i < SPAWN_FD_MAX; i++)
        close_fd_cleanup(&bench->fds[i]);
    close(bench->own.control);
    close_fd_cleanup(&bench->launcher);
    free(bench);
    return 0;
}

/* Asks, and takes the request as the launcher does. */
static void ask(void) {
    struct control_message message;
    size_t count;

    assert_int_equal(worker_process_ask(&bench->worker, &bench->own, NULL), 0);
    assert_int_equal(io_receive_message(bench->launcher, &message, sizeof message,
                                        bench->fds, SPAWN_FD_MAX, &count, NULL),
                     sizeof message);
    assert_int_equal(message.what, CONTROL_SPAWN);
    assert_int_equal(count, FD_COUNT);
}

/* A worker that is no child of this process: its parent, which is, waits for it. */
static pid_t worker_of_another(void) {
    int ends[2];
    pid_t worker;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    bench->pid = fork();
    if (bench->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        worker = fork();
        if (worker == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            signal(SIGINT, SIG_DFL);
            worker = getpid();
            while (write(ends[1], &worker, sizeof worker) == sizeof worker)
                pause();
            _exit(1);
        }
        waitpid(worker, NULL, 0);
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(read(ends[0], &worker, sizeof worker), sizeof worker);
    close(ends[0]);
    return worker;
}

static int say_ready(uint32_t pid) {
    char payload[WORKER_READY_SIZE];
    struct frame frame = {WORKER_READY, 0, {payload, sizeof payload}};

    put_u32(payload, pid);
    return worker_process_ready(&bench->worker, &frame, NULL);
}

static void assert_launcher_was_asked(enum control_what what) {
    struct control_message message;
    size_t count;

    assert_int_equal(io_receive_message(bench->launcher, &message, sizeof message, NULL,
                                        0, &count, NULL),
                     sizeof message);
    assert_int_equal(message.what, what);
}

static void the_launcher_gets_a_socket_to_report_to(void **state) {
    char byte;

    (void)state;
    int before = open_descriptors();
    ask();
    /* Here the channel, two pipes and the report; there their other ends. */
    assert_int_equal(open_descriptors(), before + 2 * FD_COUNT);
    assert_int_equal(write(bench->fds[SPAWN_REPORT], "x", 1), 1);
    assert_int_equal(read(bench->worker.report, &byte, 1), 1);
    /* No end of it is left here: that the launcher has lost the worker shows. */
    close_and_clear(&bench->fds[SPAWN_REPORT]);
    assert_int_equal(read(bench->worker.report, &byte, 1), 0);
    worker_process_forget(&bench->worker);
    assert_int_equal(open_descriptors(), before + FD_COUNT - 1);
}

static void a_failed_request_leaves_nothing(void **state) {
    struct viv_error err;

    (void)state;
    close_and_clear(&bench->launcher);
    int before = open_descriptors();
    assert_int_equal(worker_process_ask(&bench->worker, &bench->own, &err), -1);
    worker_process_forget(&bench->worker);
    assert_int_equal(open_descriptors(), before);
}

static void a_worker_need_not_be_a_child(void **state) {
    (void)state;
    ask();
    pid_t worker = worker_of_another();
    assert_int_equal(say_ready((uint32_t)worker), 0);
    assert_int_equal(bench->worker.state, WORKER_IDLE);
    assert_int_equal(bench->worker.pid, worker);
    assert_false(worker_process_has_ended(&bench->worker, viv_now()));
    /* Whose child it is, interrupts it. */
    worker_process_interrupt(&bench->worker, &bench->own);
    assert_launcher_was_asked(CONTROL_INTERRUPT_WORKER);
    /* Until that is done, it could strike another call. */
    assert_false(worker_process_is_free(&bench->worker));
    worker_process_interrupted(&bench->worker);
    assert_true(worker_process_is_free(&bench->worker));
    assert_int_equal(kill(worker, SIGINT), 0);
    assert_true(worker_process_has_ended(&bench->worker, viv_after_ms(60000)));
}

static void a_worker_must_be_there(void **state) {
    /* No number that the kernel gives: PID_MAX_LIMIT is 4194304. */
    static const uint32_t wrong[] = {0, 1, 4194305, INT32_MAX, 0x80000000, UINT32_MAX};

    (void)state;
    ask();
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(say_ready(wrong[i]), -1);
    assert_int_equal(bench->worker.state, WORKER_STARTING);
    assert_int_equal(bench->worker.pidfd, -1);
}

/* ---- its end ---- */

/* The wait status of a child that ends so. */
static int status_of(int exit_status, int number) {
    int status;
    pid_t child = fork();

    if (child == 0) {
        signal(number ? number : SIGTERM, SIG_DFL);
        if (number)
            raise(number);
        _exit(exit_status);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void report(int status) {
    assert_int_equal(write(bench->fds[SPAWN_REPORT], &status, sizeof status),
                     sizeof status);
}

static struct worker_end end_of(int exit_status, int number) {
    struct worker_end end;

    ask();
    report(status_of(exit_status, number));
    assert_int_equal(worker_process_end(&bench->worker, &bench->own, &end, NULL), 0);
    assert_launcher_was_asked(CONTROL_END_WORKER);
    worker_process_forget(&bench->worker);
    assert_int_equal(bench->worker.report, -1);
    for (int i = 0; i < FD_COUNT; i++)
        close_and_clear(&bench->fds[i]);
    return end;
}

static void the_launcher_tells_how_it_ended(void **state) {
    static const int exits[] = {0, 3, 255};
    static const int numbers[] = {SIGKILL, SIGSEGV, SIGTERM, SIGXCPU};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(exits); i++) {
        struct worker_end end = end_of(exits[i], 0);
        assert_int_equal(end.signal, 0);
        assert_int_equal(end.status, exits[i]);
    }
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        assert_int_equal(end_of(0, numbers[i]).signal, numbers[i]);
}

/* It is not this process that kills it, which may not be able to. */
static void the_launcher_is_to_end_it(void **state) {
    struct worker_end end;

    (void)state;
    ask();
    pid_t worker = worker_of_another();
    assert_int_equal(say_ready((uint32_t)worker), 0);
    pid_t launcher = fork();
    if (launcher == 0) {
        struct control_message message;
        int status = SIGKILL; /* wait(2): ended by it */
        REQUIRE(recv(bench->launcher, &message, sizeof message, 0) == sizeof message);
        REQUIRE(message.what == CONTROL_END_WORKER);
        REQUIRE(kill(worker, 0) == 0); /* still */
        REQUIRE(write(bench->fds[SPAWN_REPORT], &status, sizeof status) == sizeof status);
        _exit(0);
    }
    assert_int_equal(worker_process_end(&bench->worker, &bench->own, &end, NULL), 0);
    assert_int_equal(end.signal, SIGKILL);
    int status;
    assert_int_equal(waitpid(launcher, &status, 0), launcher);
    assert_int_equal(status, 0);
}

static void a_lost_worker_is_a_failure(void **state) {
    struct worker_end end;
    struct viv_error err;
    const char half[2] = {0};

    (void)state;
    ask();
    close_and_clear(&bench->fds[SPAWN_REPORT]);
    assert_fails(worker_process_end(&bench->worker, &bench->own, &end, &err), &err,
                 VIV_SYSTEM, "the launcher lost the worker");
    worker_process_forget(&bench->worker);
    for (int i = 0; i < FD_COUNT; i++)
        close_and_clear(&bench->fds[i]);
    /* Half of a status is none. */
    assert_int_equal(recv(bench->launcher, &end, sizeof end, MSG_TRUNC) > 0, 1);
    ask();
    assert_int_equal(write(bench->fds[SPAWN_REPORT], half, sizeof half), sizeof half);
    assert_fails(worker_process_end(&bench->worker, &bench->own, &end, &err), &err,
                 VIV_SYSTEM, "the launcher lost the worker");
}

static void without_a_launcher_nobody_can_tell(void **state) {
    struct worker_end end;
    struct viv_error err;

    (void)state;
    ask();
    close_and_clear(&bench->launcher);
    err.code = VIV_OK;
    assert_int_equal(worker_process_end(&bench->worker, &bench->own, &end, &err), -1);
    assert_int_not_equal(err.code, VIV_OK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_launcher_gets_a_socket_to_report_to),
        TEST(a_failed_request_leaves_nothing),
        TEST(a_worker_need_not_be_a_child),
        TEST(a_worker_must_be_there),
        TEST(the_launcher_tells_how_it_ended),
        TEST(the_launcher_is_to_end_it),
        TEST(a_lost_worker_is_a_failure),
        TEST(without_a_launcher_nobody_can_tell),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
