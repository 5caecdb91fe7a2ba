/* SPDX-License-Identifier: MIT */
#include "executor/launcher/launcher.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "common/log.h"
#include "common/sanitizer.h"
#include "executor/launcher/launcher_state.h"
#include "executor/seccomp/supervisor_filter.h"

#define STRANGERS_MS 2000

/* ---- children that have ended ---- */

static void take_end(struct launcher *launcher, pid_t pid, int status) {
    if (zygotes_reaped(&launcher->zygotes, pid)) {
        launcher->strangers_until = viv_after_ms(STRANGERS_MS);
        return;
    }
    for (struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        if (one->sandbox.pid == pid) {
            launcher_supervisor_ended(one);
            return;
        }
    struct managed_sandbox *of = launcher_child_was_worker(launcher, pid, status);
    if (of)
        launcher_forget_if_ended(of);
}

static void reap(struct launcher *launcher) {
    pid_t pid;
    int status;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        take_end(launcher, pid, status);
}

static void child_ended(struct event_source *source) {
    struct launcher *launcher =
        (struct launcher *)((char *)source - offsetof(struct launcher, child_ended));
    struct signalfd_siginfo info;

    if (read(source->fd, &info, sizeof info) == sizeof info)
        reap(launcher);
}

/* ---- the keeper ---- */

static void keeper_says(struct event_source *source) {
    struct launcher *launcher =
        (struct launcher *)((char *)source - offsetof(struct launcher, keeper));
    char byte;
    int fd = -1;
    size_t fd_count;
    struct viv_error err;
    ssize_t got =
        io_receive_message(source->fd, &byte, sizeof byte, &fd, 1, &fd_count, &err);

    if (got > 0 && fd_count == 1) {
        launcher_add_client(launcher, fd);
    } else if (got < 0 && err.code == VIV_CAPACITY) {
        viv_log_failure(VIV_LOG_WARNING, "client_dropped", "too many open files", NULL);
    } else if (got == 0 || (got < 0 && err.code != VIV_UNAVAILABLE)) {
        event_loop_remove(&launcher->loop, source);
        launcher->stopping = true;
    }
}

/* A keeper that does not read has ended, or will be found not to work. */
void launcher_tell_keeper(const struct launcher *launcher, char word) {
    io_send_message(launcher->keeper.fd, &word, sizeof word, NULL, 0, NULL);
}

static viv_time tell_that_it_works(struct launcher *launcher, viv_time now) {
    if (launcher->beat_ms == 0)
        return VIV_TIME_NEVER;
    if (now >= launcher->beat_at) {
        launcher_tell_keeper(launcher, LAUNCHER_WORKS);
        launcher->beat_at = now + launcher->beat_ms * VIV_MS;
    }
    return launcher->beat_at;
}

/* ---- workers of a dead zygote ---- */

/* Not while the next one owes an answer: the worker would be taken for a stranger. */
static void look_for_strangers(struct launcher *launcher, viv_time now) {
    if (launcher->strangers_until == 0 ||
        isolation_has_namespaces(launcher->setup.tier) || zygotes_owe(&launcher->zygotes))
        return;
    launcher_end_strangers(launcher);
    if (now >= launcher->strangers_until)
        launcher->strangers_until = 0;
}

/* ---- start, loop, stop ---- */

/* Workers that have no PID 1 of their own are our children. Those that have one are its,
 * for the kernel looks for a reaper in the orphan's PID namespace alone; but what a
 * zygote leaves behind that is killed in the middle of a fork is its own child, and in
 * the namespace of a sandbox, which does not end before somebody has reaped it. */
static int watch_children(struct launcher *launcher, struct viv_error *err) {
    sigset_t mask;

    if (prctl(PR_SET_CHILD_SUBREAPER, 1))
        return viv_fail(err, VIV_SYSTEM, "become the reaper of orphans: %m");
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    launcher->child_ended = (struct event_source){
        signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK), child_ended};
    if (launcher->child_ended.fd < 0)
        return viv_fail(err, VIV_SYSTEM, "signalfd: %m");
    return event_loop_add(&launcher->loop, &launcher->child_ended, err);
}

static int init(struct launcher *launcher, const struct launcher_start *start,
                struct viv_error *err) {
    *launcher = (struct launcher){
        .settings = start->settings,
        /* Numbers go on above those of an executor that ran before: whoever still holds
         * one of those must not mean another sandbox by it. */
        .last_number = (uint64_t)viv_now(),
        .setup = {.settings = start->settings,
                  .tier = start->tier,
                  .proc = start->proc,
                  .ordinary = start->ordinary,
                  .checkpoints = !start->no_checkpoints[0],
                  .cgroups = start->cgroups},
        .zygote_setup = {.settings = start->settings,
                         .tier = start->tier,
                         .program = start->program,
                         .proc = start->proc,
                         .folder = start->folder,
                         .checkpoints = !start->no_checkpoints[0],
                         .ordinary = start->ordinary},
        .weaker = start->weaker,
        .no_checkpoints = start->no_checkpoints,
        .beat_ms = start->beat_ms,
        .keeper = {start->keeper, keeper_says},
    };
    if (event_loop_init(&launcher->loop, err) || watch_children(launcher, err) ||
        io_set_nonblocking(start->keeper, err))
        return -1;
    if (supervisor_filter_build(&launcher->setup.filter,
                                isolation_has_namespaces(start->tier), err))
        return -1;
    if (!isolation_has_namespaces(start->tier) &&
        slots_init(&launcher->slots, start->janitor, (uint32_t)start->settings->slots,
                   &launcher->loop, err))
        return -1;
    zygotes_init(&launcher->zygotes, &launcher->zygote_setup, &launcher->loop,
                 launcher_worker_answered, launcher);
    return event_loop_add(&launcher->loop, &launcher->keeper, err);
}

static viv_time earliest(viv_time a, viv_time b) { return a < b ? a : b; }

/* What is due by the clock; returns when something is due again. */
static viv_time keep_time(struct launcher *launcher) {
    viv_time now = viv_now();

    launcher_end_overdue(launcher);
    look_for_strangers(launcher, now);
    if (launcher->slots.lost)
        launcher->stopping = true;
    viv_time next = zygotes_keep_time(&launcher->zygotes);
    launcher_watch_host(launcher);
    launcher_refill(launcher);
    next = earliest(next, launcher->host_at);
    next = earliest(next, tell_that_it_works(launcher, now));
    return earliest(next, launcher_expire_waiting(launcher));
}

static void stop(struct launcher *launcher) {
    for (struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        sandbox_kill(&one->sandbox);
    zygotes_kill(&launcher->zygotes);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
}

int launcher_run(const struct launcher_start *start) {
    struct launcher launcher;
    struct viv_error err;

    if (init(&launcher, start, &err)) {
        viv_log_failure(VIV_LOG_ERROR, "launcher_not_started", err.message, NULL);
        return EXIT_FAILURE;
    }
    while (!launcher.stopping) {
        viv_time next = keep_time(&launcher);
        if (event_loop_turn(&launcher.loop, next, &err)) {
            viv_log_failure(VIV_LOG_ERROR, "launcher_fails", err.message, NULL);
            break;
        }
    }
    stop(&launcher);
    sanitizer_look_for_leaks();
    return launcher.stopping ? EXIT_SUCCESS : EXIT_FAILURE;
}
