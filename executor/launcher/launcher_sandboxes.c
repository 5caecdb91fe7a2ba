/* SPDX-License-Identifier: MIT */
/* The launcher's sandboxes: started as many as are wanted, heard, ended. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/io.h"
#include "common/log.h"
#include "executor/launcher/launcher_state.h"
#include "executor/launcher/unshared_memory.h"
#include "executor/launcher/user_namespace.h"

#define RETRY_FIRST_MS 100
#define RETRY_LAST_MS  5000
#define FILES_MAX      (UINT64_C(1) << 50) /* bytes that anybody could have */
#define SLOTS_AHEAD    4 /* free ones: the first tree of a slot takes its time */
#define START_LIMIT    (60 * VIV_SECOND) /* a zygote may have to be started first */

unsigned launcher_count(const struct launcher *launcher, enum sandbox_state state) {
    unsigned count = 0;

    for (const struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        count += one->sandbox.state == state;
    return count;
}

/* ---- their life ---- */

void launcher_end_sandbox(struct managed_sandbox *managed) {
    const struct cgroups *cgroups = managed->launcher->setup.cgroups;

    managed->sandbox.state = SANDBOX_ENDING;
    sandbox_kill(&managed->sandbox);
    /* A worker that is on its way into the PID namespace, too. */
    if (cgroups_used(cgroups))
        cgroups_kill(cgroups, managed->sandbox.slot);
}

static void forget(struct managed_sandbox *managed) {
    struct managed_sandbox **link = &managed->launcher->sandboxes;

    while (*link != managed)
        link = &(*link)->next;
    *link = managed->next;
    zygotes_forget(&managed->launcher->zygotes, managed->sandbox.number);
    event_loop_remove(&managed->launcher->loop, &managed->source);
    close(managed->source.fd);
    close_fd_cleanup(&managed->sandbox.report);
    sandbox_clear(&managed->sandbox, &managed->launcher->setup);
    if (!isolation_has_namespaces(managed->launcher->setup.tier))
        slots_give_back(&managed->launcher->slots, managed->sandbox.slot);
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

uint64_t launcher_most_sessions(const struct launcher *launcher) {
    const struct settings *settings = launcher->settings;

    return isolation_has_namespaces(launcher->setup.tier) ||
                   settings->max_sessions < settings->slots
               ? settings->max_sessions
               : settings->slots;
}

/* The lowest slot that no live sandbox has: at most their number. In the tiers with
 * namespaces a slot is but a number. */
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

    if (!launcher->proven)
        launcher_tell_keeper(launcher, LAUNCHER_READY);
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

/* Takes a message that is one of a supervisor of ours; descriptors stay with the caller
 * when it is not. */
static bool take_message(struct managed_sandbox *managed, struct control_message *message,
                         int fds[], size_t fd_count) {
    struct launcher *launcher = managed->launcher;
    struct viv_error err;

    if (message->what == CONTROL_SPAWN &&
        fd_count == spawn_fd_count(launcher->setup.tier)) {
        if (launcher_spawn_worker(managed, fds, &err) == 0)
            return true;
        if (err.code != VIV_CAPACITY)
            return false;
        close_all(fds, fd_count);
        launcher_refuse_worker(managed, EMFILE);
        return true;
    }
    if (fd_count > 0)
        return false;
    if (message->what == CONTROL_READY && managed->sandbox.state == SANDBOX_STARTING)
        became_ready(managed);
    else if (message->what == CONTROL_FILES)
        managed->sandbox.files = message->bytes < FILES_MAX ? message->bytes : FILES_MAX;
    else if (message->what == CONTROL_LOOK && launcher->setup.checkpoints)
        launcher_look_at_worker(managed, &message->look);
    else if (message->what == CONTROL_INTERRUPT_WORKER)
        launcher_interrupt_worker(managed);
    else if (message->what == CONTROL_END_WORKER)
        launcher_end_worker(managed);
    else
        return false;
    return true;
}

static void supervisor_says(struct event_source *source) {
    struct managed_sandbox *managed = (struct managed_sandbox *)source;
    struct control_message message;
    int fds[SPAWN_FD_MAX];
    size_t fd_count;
    struct viv_error err;
    ssize_t got = io_receive_message(source->fd, &message, sizeof message, fds,
                                     SPAWN_FD_MAX, &fd_count, &err);

    if (got < 0 && err.code == VIV_UNAVAILABLE)
        return;
    if (got < 0 && err.code == VIV_CAPACITY) {
        launcher_refuse_worker(managed, EMFILE);
        return;
    }
    if (got == sizeof message && take_message(managed, &message, fds, fd_count))
        return;
    if (got > 0)
        close_all(fds, fd_count);
    /* Its end, or what no supervisor of ours sends. It is reaped when it is dead. */
    event_loop_remove(&managed->launcher->loop, source);
    sandbox_kill(&managed->sandbox);
}

/* Starts one in that slot, whose folder it has in a tier without namespaces. */
static int start_sandbox(struct launcher *launcher, uint32_t slot, int folder,
                         struct viv_error *err) {
    struct managed_sandbox *managed = unshared_alloc(sizeof *managed);

    managed->launcher = launcher;
    managed->sandbox.number = ++launcher->last_number;
    managed->sandbox.slot = slot;
    if (sandbox_start(&managed->sandbox, &launcher->setup, folder, err)) {
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

/* Starts one if there is a place for it; false when there is none now. */
static bool start_in_free_slot(struct launcher *launcher, struct viv_error *err) {
    if (isolation_has_namespaces(launcher->setup.tier)) {
        uint32_t slot = free_slot(launcher);
        if (FIRST_SESSION_ID + slot < OUTER_IDS &&
            start_sandbox(launcher, slot, -1, err) == 0)
            return true;
        start_failed(launcher, err);
        return false;
    }
    int64_t slot = slots_take(&launcher->slots);
    if (slot < 0)
        return false; /* it comes with the janitor's answer */
    if (start_sandbox(launcher, (uint32_t)slot, launcher->slots.all[slot].folder, err) ==
        0)
        return true;
    slots_give_back(&launcher->slots, (uint32_t)slot);
    start_failed(launcher, err);
    return false;
}

void launcher_refill(struct launcher *launcher) {
    struct viv_error err;
    uint64_t wanted = launcher->settings->pool_size;

    if (launcher->stopping || viv_now() < launcher->start_at)
        return;
    if (!launcher->proven && wanted == 0)
        wanted = 1;
    wanted += launcher_count_waiting(launcher);
    uint64_t there = launcher_count(launcher, SANDBOX_STARTING) +
                     launcher_count(launcher, SANDBOX_READY);
    if (!isolation_has_namespaces(launcher->setup.tier))
        slots_prepare(&launcher->slots, (there < wanted ? wanted - there : 0) +
                                            (launcher->proven ? SLOTS_AHEAD : 0));
    while (there < wanted && start_in_free_slot(launcher, &err))
        there++;
}

/* ---- their end ---- */

static const char *const state_words[] = {[SANDBOX_STARTING] = "starting",
                                          [SANDBOX_READY] = "ready",
                                          [SANDBOX_TAKEN] = "taken",
                                          [SANDBOX_ENDING] = "ending"};

void launcher_forget_if_ended(struct managed_sandbox *managed) {
    const struct sandbox *sandbox = &managed->sandbox;

    if (sandbox->pid == 0 && sandbox->worker == 0 && !sandbox->worker_asked)
        forget(managed);
}

/* Its supervisor is gone. A worker that is our child goes, too, and the sandbox is there
 * until it has. */
void launcher_supervisor_ended(struct managed_sandbox *managed) {
    struct launcher *launcher = managed->launcher;
    struct viv_error failure;
    enum sandbox_state state = managed->sandbox.state;

    if (state != SANDBOX_ENDING)
        viv_log(VIV_LOG_WARNING, "sandbox_died", "sandbox=%llu state=%s",
                (unsigned long long)managed->sandbox.number, state_words[state]);
    managed->sandbox.pid = 0;
    launcher_end_sandbox(managed);
    if (!zygotes_forget(&launcher->zygotes, managed->sandbox.number))
        managed->sandbox.worker_asked = false;
    launcher_forget_if_ended(managed);
    if (state == SANDBOX_STARTING) {
        viv_fail(&failure, VIV_SYSTEM,
                 "a sandbox could not be set up: the log has the reason");
        start_failed(launcher, &failure);
    }
}

void launcher_end_overdue(struct launcher *launcher) {
    for (struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        if (one->sandbox.state == SANDBOX_STARTING &&
            viv_now() - one->sandbox.started > START_LIMIT)
            sandbox_kill(&one->sandbox);
}
