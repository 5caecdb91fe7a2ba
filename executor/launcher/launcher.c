/* SPDX-License-Identifier: MIT */
#include "executor/launcher/launcher.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "common/log.h"
#include "executor/launcher/host_memory.h"
#include "executor/launcher/launcher_state.h"
#include "executor/launcher/unshared_memory.h"
#include "executor/launcher/user_namespace.h"

#define RETRY_FIRST_MS         100
#define RETRY_LAST_MS          5000
#define MEMORY_LOOK_MS         125
#define SANDBOX_START_LIMIT_MS 60000 /* a zygote may have to be started first */

unsigned launcher_count(const struct launcher *launcher, enum sandbox_state state) {
    unsigned count = 0;

    for (const struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        count += one->sandbox.state == state;
    return count;
}

/* ---- sandboxes ---- */

void launcher_end_sandbox(struct managed_sandbox *managed) {
    managed->sandbox.state = SANDBOX_ENDING;
    sandbox_kill(&managed->sandbox);
}

static void forget(struct managed_sandbox *managed) {
    struct managed_sandbox **link = &managed->launcher->sandboxes;

    while (*link != managed)
        link = &(*link)->next;
    *link = managed->next;
    zygotes_forget(&managed->launcher->zygotes, managed->sandbox.number);
    event_loop_remove(&managed->launcher->loop, &managed->source);
    close(managed->source.fd);
    unshared_free(managed, sizeof *managed);
}

/* A start has failed: the client that waits longest hears of it, and the next attempt
 * comes later after each failure in a row. */
static void start_failed(struct launcher *launcher, const struct viv_error *failure) {
    int64_t wait_ms = viv_backoff_ms(++launcher->failures, RETRY_FIRST_MS, RETRY_LAST_MS);

    launcher->start_at = viv_after_ms(wait_ms);
    snprintf(launcher->reason, sizeof launcher->reason, "%s", failure->message);
    viv_log_failure(VIV_LOG_ERROR, "sandbox_not_started", failure->message,
                    "retry_ms=%lld", (long long)wait_ms);
    launcher_fail_waiting(launcher, failure);
}

/* The lowest slot that no live sandbox has: at most their number. */
static uint32_t free_slot(const struct launcher *launcher) {
    uint32_t count = 0, slot = 0;

    for (const struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        count++;
    CLEANUP(free_ptr) bool *taken = viv_xcalloc(count + 1, sizeof *taken);
    for (const struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        if (one->sandbox.slot < count)
            taken[one->sandbox.slot] = true;
    while (taken[slot])
        slot++;
    return slot;
}

static void became_ready(struct managed_sandbox *managed) {
    struct launcher *launcher = managed->launcher;

    launcher->proven = true;
    launcher->failures = 0;
    launcher->reason[0] = '\0';
    managed->sandbox.state = SANDBOX_READY;
    viv_log(VIV_LOG_DEBUG, "sandbox_ready", "sandbox=%llu took_us=%lld",
            (unsigned long long)managed->sandbox.number,
            (long long)((viv_now() - managed->sandbox.started) / 1000));
    if (!launcher_serve_waiting(launcher, managed) &&
        launcher_count(launcher, SANDBOX_READY) > launcher->settings->pool_size)
        launcher_end_sandbox(managed);
}

static void close_all(const int *fds, size_t count) {
    for (size_t i = 0; i < count; i++)
        close(fds[i]);
}

/* The supervisor asks again after a pause. */
static void worker_not_made(void *context, uint64_t sandbox, int error) {
    struct launcher *launcher = context;
    const struct control_message failed = {.what = CONTROL_WORKER_FAILED};

    viv_log_failure(VIV_LOG_WARNING, "worker_not_made", strerror(error), "sandbox=%llu",
                    (unsigned long long)sandbox);
    for (struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        if (one->sandbox.number == sandbox)
            io_send_message(one->sandbox.control, &failed, sizeof failed, NULL, 0, NULL);
}

static void supervisor_says(struct event_source *source) {
    struct managed_sandbox *managed = (struct managed_sandbox *)source;
    struct control_message message;
    int fds[SPAWN_FD_COUNT];
    size_t fd_count;
    struct viv_error err;
    ssize_t got = io_receive_message(source->fd, &message, sizeof message, fds,
                                     SPAWN_FD_COUNT, &fd_count, &err);

    if (got < 0 && err.code == VIV_UNAVAILABLE)
        return;
    if (got < 0 && err.code == VIV_CAPACITY) {
        worker_not_made(managed->launcher, managed->sandbox.number, EMFILE);
        return;
    }
    if (got == sizeof message && message.what == CONTROL_SPAWN &&
        fd_count == SPAWN_FD_COUNT &&
        zygotes_spawn(&managed->launcher->zygotes, managed->sandbox.number, fds, &err) ==
            0)
        return;
    if (got > 0)
        close_all(fds, fd_count);
    if (got == sizeof message && message.what == CONTROL_READY && fd_count == 0 &&
        managed->sandbox.state == SANDBOX_STARTING) {
        became_ready(managed);
        return;
    }
    if (got == sizeof message && message.what == CONTROL_FILES && fd_count == 0) {
        managed->sandbox.files = message.bytes;
        return;
    }
    /* Its end, or what no supervisor of ours sends. It is reaped when it is dead. */
    event_loop_remove(&managed->launcher->loop, source);
    sandbox_kill(&managed->sandbox);
}

static int start_sandbox(struct launcher *launcher, struct viv_error *err) {
    struct managed_sandbox *managed = unshared_alloc(sizeof *managed);

    managed->launcher = launcher;
    managed->sandbox.number = ++launcher->last_number;
    managed->sandbox.slot = free_slot(launcher);
    if (FIRST_SESSION_ID + managed->sandbox.slot >= OUTER_IDS ||
        sandbox_start(&managed->sandbox, &launcher->setup, err)) {
        unshared_free(managed, sizeof *managed);
        return -1;
    }
    managed->source = (struct event_source){managed->sandbox.control, supervisor_says};
    managed->next = launcher->sandboxes;
    launcher->sandboxes = managed;
    if (event_loop_add(&launcher->loop, &managed->source, err)) {
        launcher_end_sandbox(managed);
        return -1;
    }
    return 0;
}

void launcher_refill(struct launcher *launcher) {
    struct viv_error err;
    uint64_t wanted = launcher->settings->pool_size;

    if (launcher->stopping || viv_now() < launcher->start_at)
        return;
    if (!launcher->proven && wanted == 0)
        wanted = 1;
    wanted += launcher_count_waiting(launcher);
    for (uint64_t there = launcher_count(launcher, SANDBOX_STARTING) +
                          launcher_count(launcher, SANDBOX_READY);
         there < wanted; there++)
        if (start_sandbox(launcher, &err)) {
            start_failed(launcher, &err);
            return;
        }
}

/* ---- children that have ended ---- */

static const char *const state_words[] = {[SANDBOX_STARTING] = "starting",
                                          [SANDBOX_READY] = "ready",
                                          [SANDBOX_TAKEN] = "taken",
                                          [SANDBOX_ENDING] = "ending"};

static void sandbox_ended(struct managed_sandbox *managed) {
    struct launcher *launcher = managed->launcher;
    struct viv_error failure;
    enum sandbox_state state = managed->sandbox.state;

    if (state != SANDBOX_ENDING)
        viv_log(VIV_LOG_WARNING, "sandbox_died", "sandbox=%llu state=%s",
                (unsigned long long)managed->sandbox.number, state_words[state]);
    forget(managed);
    if (state == SANDBOX_STARTING) {
        viv_fail(&failure, VIV_SYSTEM,
                 "a sandbox could not be set up: the log has the reason");
        start_failed(launcher, &failure);
    }
}

static void reap(struct launcher *launcher) {
    pid_t pid;

    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0) {
        if (zygotes_reaped(&launcher->zygotes, pid))
            continue;
        for (struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
            if (one->sandbox.pid == pid) {
                sandbox_ended(one);
                break;
            }
    }
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

/* ---- memory of the host ---- */

static void send_to_all_taken(struct launcher *launcher, enum control_what what) {
    const struct control_message message = {.what = what};

    for (struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        if (one->sandbox.state == SANDBOX_TAKEN)
            io_send_message(one->sandbox.control, &message, sizeof message, NULL, 0,
                            NULL);
}

/* The host must not die for one session: of the one that takes most, the worker is stopped;
 * where its files are the larger part, which outlive a worker, the sandbox is ended. */
static void stop_largest(struct launcher *launcher) {
    const struct control_message stop = {.what = CONTROL_STOP_FOR_MEMORY};
    struct managed_sandbox *largest = NULL;
    uint64_t most = 0, files = 0;

    for (struct managed_sandbox *one = launcher->sandboxes; one; one = one->next) {
        if (one->sandbox.state != SANDBOX_TAKEN)
            continue;
        uint64_t size = one->sandbox.files +
                        host_memory_of_children(launcher->setup.proc, one->sandbox.pid);
        if (size > most) {
            most = size;
            files = one->sandbox.files;
            largest = one;
        }
    }
    if (!largest)
        return;
    viv_log(VIV_LOG_WARNING, "stopped_for_memory",
            "sandbox=%llu size_mb=%llu files_mb=%llu",
            (unsigned long long)largest->sandbox.number, (unsigned long long)(most >> 20),
            (unsigned long long)(files >> 20));
    if (files > most / 2)
        launcher_end_sandbox(largest);
    else
        io_send_message(largest->sandbox.control, &stop, sizeof stop, NULL, 0, NULL);
}

/* Stops one at the second look that finds too little, when all have told of their files. */
static void watch_memory(struct launcher *launcher) {
    if (viv_now() < launcher->memory_at)
        return;
    bool is_short = host_memory_available(launcher->setup.proc) <
                    launcher->settings->min_free_memory / 2;
    if (is_short && launcher->memory_short)
        stop_largest(launcher);
    if (is_short)
        send_to_all_taken(launcher, CONTROL_TELL_FILES);
    launcher->memory_short = is_short;
    launcher->memory_at = viv_after_ms(MEMORY_LOOK_MS);
}

/* ---- start, loop, stop ---- */

static int watch_children(struct launcher *launcher, struct viv_error *err) {
    sigset_t mask;

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
        .setup = {start->settings, start->proc, start->ordinary},
        .zygote_setup = {start->settings, start->program, start->proc, start->ordinary},
        .keeper = {start->keeper, keeper_says},
    };
    if (event_loop_init(&launcher->loop, err) || watch_children(launcher, err) ||
        io_set_nonblocking(start->keeper, err))
        return -1;
    zygotes_init(&launcher->zygotes, &launcher->zygote_setup, &launcher->loop,
                 worker_not_made, launcher);
    return event_loop_add(&launcher->loop, &launcher->keeper, err);
}

static viv_time earliest(viv_time a, viv_time b) { return a < b ? a : b; }

/* What is due by the clock; returns when something is due again. */
static viv_time keep_time(struct launcher *launcher) {
    viv_time now = viv_now();

    for (struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        if (one->sandbox.state == SANDBOX_STARTING &&
            now - one->sandbox.started > SANDBOX_START_LIMIT_MS * VIV_MS)
            sandbox_kill(&one->sandbox);
    viv_time next = zygotes_keep_time(&launcher->zygotes);
    watch_memory(launcher);
    launcher_refill(launcher);
    next = earliest(next, launcher->memory_at);
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
    return launcher.stopping ? EXIT_SUCCESS : EXIT_FAILURE;
}
