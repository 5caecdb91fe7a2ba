/* SPDX-License-Identifier: MIT */
/* One whole checkpoint, of a process that does nothing else. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "executor/launcher/probe_attempts.h"
#include "executor/supervisor/notifications.h"
#include "executor/worker_copy.h"

#define STEP_LIMIT_MS 3000

/* The worker: its word that it was copied comes by the first channel, that of the woken
 * copy by the second, which is then at the same place. */
__attribute__((noreturn)) static void be_copied(int channel) {
    const struct raw_fork thread = raw_fork_prepare();
    struct viv_error err;
    char word = 'l';

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!thread.id || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        worker_copy_offer(channel, &word, sizeof word, &err))
        _exit(1);
    word = worker_copy_make(&thread, channel) == WORKER_COPY_WOKEN ? 'w' : 'm';
    io_send_message(channel, &word, sizeof word, NULL, 0, NULL);
    pause();
    _exit(0);
}

static int receive(int listener, struct notification *notification,
                   struct viv_error *err) {
    if (io_wait(listener, false, viv_after_ms(STEP_LIMIT_MS), err) ||
        notification_receive(listener, notification))
        return viv_fail(err, VIV_SYSTEM, "no call reaches the listener");
    return 0;
}

/* Lets the one call through, and takes the process that then parks. */
static int let_copy(int listener, pid_t worker, struct notification *parked,
                    struct viv_error *err) {
    struct notification asked = {0};

    if (receive(listener, &asked, err))
        return -1;
    if (!asked.is_clone || asked.pid != worker)
        return viv_fail(err, VIV_SYSTEM, "another call reaches the listener");
    notification_allow(listener, &asked);
    if (receive(listener, parked, err))
        return -1;
    return !parked->is_clone && parked->pid != worker
               ? 0
               : viv_fail(err, VIV_SYSTEM, "the copy does not park");
}

static int wait_for_word(int channel, char expected, struct viv_error *err) {
    size_t fd_count;
    char word;

    if (io_wait(channel, false, viv_after_ms(STEP_LIMIT_MS), err) ||
        io_receive_message(channel, &word, sizeof word, NULL, 0, &fd_count, err) != 1 ||
        word != expected)
        return viv_fail(err, VIV_SYSTEM, "the copy cannot be woken");
    return 0;
}

static int copy_and_wake(int channel, int worker_end, pid_t worker,
                         struct viv_error *err) {
    CLEANUP(close_fd) int listener = -1;
    struct notification parked = {0};
    size_t fd_count;
    int pair[2];
    char word;

    if (io_wait(channel, false, viv_after_ms(STEP_LIMIT_MS), err) ||
        io_receive_message(channel, &word, sizeof word, &listener, 1, &fd_count, err) !=
            1 ||
        fd_count != 1)
        return viv_fail(err, VIV_SYSTEM, "no filter with a listener can be loaded");
    if (let_copy(listener, worker, &parked, err) || wait_for_word(channel, 'm', err))
        return -1;
    kill(worker, SIGKILL);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return viv_fail(err, VIV_SYSTEM, "socketpair: %m");
    CLEANUP(close_fd) int ours = pair[0];
    CLEANUP(close_fd) int theirs = pair[1];
    if (notification_wake(listener, parked.id, theirs, worker_end))
        return viv_fail(err, VIV_SYSTEM, "the copy cannot be woken: %m");
    close_and_clear(&theirs);
    int failed = wait_for_word(ours, 'w', err);
    kill(parked.pid, SIGKILL);
    return failed;
}

int attempt_checkpoints(const struct settings *settings, struct viv_error *err) {
    int pair[2];

    (void)settings;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return viv_fail(err, VIV_SYSTEM, "socketpair: %m");
    CLEANUP(close_fd) int ours = pair[0];
    CLEANUP(close_fd) int theirs = pair[1];
    pid_t worker = fork();
    if (worker == 0)
        be_copied(theirs);
    if (worker < 0)
        return viv_fail(err, VIV_SYSTEM, "fork: %m");
    const int worker_end = theirs;
    close_and_clear(&theirs);
    int failed = copy_and_wake(ours, worker_end, worker, err);
    kill(worker, SIGKILL);
    /* A copy that is still parked has ended with the listener. */
    while (waitpid(-1, NULL, 0) > 0)
        ;
    return failed;
}
