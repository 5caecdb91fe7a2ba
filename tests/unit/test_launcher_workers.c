/* SPDX-License-Identifier: MIT */
/* The workers of the tiers without namespaces, which are the launcher's own children; and
 * how the launcher looks at a worker before a copy is made of it. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "executor/control.h"
#include "executor/launcher/launcher_state.h"

#define NUMBER 7

static struct launcher launcher;
static struct managed_sandbox managed;
static int supervisor; /* its end of the control socket */
static pid_t worker;

/* A sandbox that has asked for a worker: it is made, and nobody has told of it yet. */
static int open_sandbox(void **state) {
    int control[2], report[2];

    (void)state;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report))
        return -1;
    close(report[1]);
    supervisor = control[1];
    launcher = (struct launcher){.setup = {.tier = ISOLATION_CONFINED, .proc = -1},
                                 .sandboxes = &managed};
    managed = (struct managed_sandbox){.launcher = &launcher,
                                       .sandbox = {.number = NUMBER,
                                                   .state = SANDBOX_TAKEN,
                                                   .pid = getpid(),
                                                   .control = control[0],
                                                   .report = report[0],
                                                   .worker_asked = true}};
    worker = fork();
    if (worker == 0)
        for (;;)
            pause();
    return worker > 0 ? 0 : -1;
}

static int close_sandbox(void **state) {
    (void)state;
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
    close(supervisor);
    close(managed.sandbox.control);
    close_and_clear(&managed.sandbox.report);
    return 0;
}

static void answer(int failed) {
    const struct spawn_reply reply = {
        .sandbox = NUMBER, .failed = failed, .worker = failed ? 0 : worker};

    launcher_worker_answered(&launcher, &reply);
}

/* What the supervisor was told; or 0. */
static int told(void) {
    struct pollfd waiting = {supervisor, POLLIN, 0};
    struct control_message message = {0};
    size_t fd_count;

    if (poll(&waiting, 1, 0) == 1)
        assert_int_equal(io_receive_message(supervisor, &message, sizeof message, NULL, 0,
                                            &fd_count, NULL),
                         sizeof message);
    return (int)message.what;
}

static int signal_that_ended_it(void) {
    siginfo_t ended = {0};

    assert_int_equal(waitid(P_PID, (id_t)worker, &ended, WEXITED | WNOWAIT), 0);
    return ended.si_status;
}

static bool is_alive(void) {
    siginfo_t ended = {0};

    assert_int_equal(waitid(P_PID, (id_t)worker, &ended, WEXITED | WNOHANG | WNOWAIT), 0);
    return ended.si_pid == 0;
}

static void an_interrupt_strikes_a_worker_that_is_known(void **state) {
    (void)state;
    answer(0);
    launcher_interrupt_worker(&managed);
    assert_int_equal(signal_that_ended_it(), SIGINT);
    assert_int_equal(told(), CONTROL_INTERRUPTED);
}

static void an_interrupt_waits_for_one_that_is_not_known_yet(void **state) {
    (void)state;
    launcher_interrupt_worker(&managed);
    assert_true(is_alive());
    assert_int_equal(told(), 0);
    answer(0);
    assert_int_equal(signal_that_ended_it(), SIGINT);
    assert_int_equal(told(), CONTROL_INTERRUPTED);
    assert_int_equal(told(), 0);
}

static void an_interrupt_of_one_that_is_never_made_is_answered(void **state) {
    (void)state;
    launcher_interrupt_worker(&managed);
    answer(ENOMEM);
    assert_int_equal(told(), CONTROL_WORKER_FAILED);
    assert_int_equal(told(), CONTROL_INTERRUPTED);
    assert_int_equal(told(), 0);
    assert_true(is_alive());
}

static void an_interrupt_of_one_that_has_ended_is_answered(void **state) {
    (void)state;
    launcher_interrupt_worker(&managed);
    kill(worker, SIGKILL);
    assert_int_equal(signal_that_ended_it(), SIGKILL);
    assert_null(launcher_child_was_worker(&launcher, worker, SIGKILL));
    answer(0);
    assert_int_equal(told(), CONTROL_INTERRUPTED);
    assert_int_equal(managed.sandbox.worker, 0);
}

static void one_that_is_unwanted_is_killed_when_it_is_known(void **state) {
    (void)state;
    launcher_end_worker(&managed);
    assert_true(is_alive());
    launcher_interrupt_worker(&managed);
    answer(0);
    assert_int_equal(signal_that_ended_it(), SIGKILL);
    assert_int_equal(told(), CONTROL_INTERRUPTED);
}

static void no_interrupt_is_kept_for_the_next_worker(void **state) {
    (void)state;
    answer(0);
    launcher_interrupt_worker(&managed);
    assert_int_equal(signal_that_ended_it(), SIGINT);
    assert_ptr_equal(launcher_child_was_worker(&launcher, worker, SIGINT), &managed);
    launcher_interrupt_worker(&managed); /* of none */
    waitpid(worker, NULL, 0);
    worker = fork();
    if (worker == 0)
        for (;;)
            pause();
    managed.sandbox.worker_asked = true;
    answer(0);
    assert_true(is_alive());
    assert_int_equal(told(), CONTROL_INTERRUPTED);
    assert_int_equal(told(), CONTROL_INTERRUPTED);
    assert_int_equal(told(), 0);
}

/* ---- looked at ---- */

static enum look_verdict verdict(uint32_t number) {
    struct control_look look = {.number = number, .worker = worker};

    launcher_look_at_worker(&managed, &look);
    return look.verdict;
}

/* Takes the place of the worker, as in a call that has opened a file. */
static void replace_worker(void) {
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
    int file = open("/dev/null", O_RDONLY);
    worker = fork();
    if (worker == 0)
        for (;;)
            pause();
    close(file);
}

static void what_a_call_has_opened_is_never_taken_for_a_fresh_worker(void **state) {
    (void)state;
    launcher.setup.proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    managed.sandbox.state = SANDBOX_STARTING;
    verdict(0);
    managed.sandbox.state = SANDBOX_TAKEN;
    assert_int_equal(verdict(1), LOOK_CLEAN);
    replace_worker();
    verdict(0); /* late, for its call runs */
    assert_int_equal(verdict(2), LOOK_OPEN_FILES);
    close(launcher.setup.proc);
}

static void who_takes_its_place_before_there_is_a_session_is_looked_at(void **state) {
    (void)state;
    launcher.setup.proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    managed.sandbox.state = SANDBOX_STARTING;
    kill(worker, SIGKILL);
    waitpid(worker, NULL, 0);
    verdict(0);
    replace_worker();
    managed.sandbox.state = SANDBOX_READY;
    verdict(0);
    managed.sandbox.state = SANDBOX_TAKEN;
    assert_int_equal(verdict(1), LOOK_CLEAN);
    close(launcher.setup.proc);
}

int main(void) {
#define TEST(function)                                                                   \
    cmocka_unit_test_setup_teardown(function, open_sandbox, close_sandbox)
    const struct CMUnitTest tests[] = {
        TEST(an_interrupt_strikes_a_worker_that_is_known),
        TEST(an_interrupt_waits_for_one_that_is_not_known_yet),
        TEST(an_interrupt_of_one_that_is_never_made_is_answered),
        TEST(an_interrupt_of_one_that_has_ended_is_answered),
        TEST(one_that_is_unwanted_is_killed_when_it_is_known),
        TEST(no_interrupt_is_kept_for_the_next_worker),
        TEST(what_a_call_has_opened_is_never_taken_for_a_fresh_worker),
        TEST(who_takes_its_place_before_there_is_a_session_is_looked_at),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
