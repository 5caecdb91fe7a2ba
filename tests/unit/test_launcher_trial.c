/* SPDX-License-Identifier: MIT */
/* The sandbox of a trial is one of make-believe: what sandbox.h declares is here. */
#include "tests/unit/unit.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/io.h"
#include "executor/control.h"
#include "executor/launcher/launcher.h"
#include "executor/launcher/sandbox.h"

#define TIME_TO_SPEAK_MS 300 /* how late the kill is */

static enum control_what first_message;
static int log_pipe[2]; /* a byte: the supervisor has logged the end of a worker */
static int cleared;

/* Asks, as a supervisor does, and sees whether its worker's channel is closed. */
static void be_supervisor(int control) {
    const struct control_message message = {.what = first_message};
    int channel[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel) ||
        io_send_message(control, &message, sizeof message, &channel[1], 1, NULL))
        _exit(1);
    close(channel[1]);
    struct pollfd watched = {channel[0], POLLIN, 0};
    if (poll(&watched, 1, -1) != 1 || write(log_pipe[1], "x", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

int sandbox_start(struct sandbox *sandbox, const struct sandbox_setup *setup, int folder,
                  struct viv_error *err) {
    int control[2];

    (void)setup;
    (void)folder;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control))
        return viv_fail(err, VIV_SYSTEM, "socketpair: %m");
    sandbox->pid = fork();
    if (sandbox->pid == 0) {
        close(control[0]);
        be_supervisor(control[1]);
    }
    close(control[1]);
    sandbox->control = control[0];
    return 0;
}

void sandbox_kill(struct sandbox *sandbox) {
    poll(NULL, 0, TIME_TO_SPEAK_MS);
    kill(sandbox->pid, SIGKILL);
}

void sandbox_clear(const struct sandbox *sandbox, const struct sandbox_setup *setup) {
    (void)setup;
    assert_int_equal(waitpid(sandbox->pid, NULL, WNOHANG), -1); /* reaped before */
    cleared++;
}

static int lowest_free(void) {
    int fd = dup(STDERR_FILENO), lowest = fd;

    close(fd);
    return lowest;
}

static int run_trial(enum control_what what, struct viv_error *err) {
    struct settings settings = {.slots = 1};
    struct cgroups cgroups = cgroups_none();
    const struct launcher_start start = {.settings = &settings,
                                         .tier = ISOLATION_ISOLATED,
                                         .proc = -1,
                                         .no_checkpoints = "",
                                         .cgroups = &cgroups};

    first_message = what;
    cleared = 0;
    return launcher_try(&start, err);
}

static void is_over_when_a_worker_is_asked_for(void **state) {
    int before = lowest_free();

    (void)state;
    assert_int_equal(run_trial(CONTROL_SPAWN, NULL), 0);
    assert_int_equal(cleared, 1);
    assert_int_equal(lowest_free(), before);
}

static void ends_the_supervisor_before_it_misses_its_worker(void **state) {
    struct pollfd said = {log_pipe[0], POLLIN, 0};

    (void)state;
    assert_int_equal(run_trial(CONTROL_SPAWN, NULL), 0);
    assert_int_equal(poll(&said, 1, 0), 0);
}

static void fails_with_any_other_message(void **state) {
    struct viv_error err;

    (void)state;
    assert_fails(run_trial(CONTROL_READY, &err), &err, VIV_SYSTEM, "could not be set up");
    assert_int_equal(cleared, 1);
}

static int open_log(void **state) {
    (void)state;
    return pipe(log_pipe);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_over_when_a_worker_is_asked_for),
        cmocka_unit_test(ends_the_supervisor_before_it_misses_its_worker),
        cmocka_unit_test(fails_with_any_other_message),
    };
    return cmocka_run_group_tests(tests, open_log, NULL);
}
