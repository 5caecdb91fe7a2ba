/* SPDX-License-Identifier: MIT */
/*
 * The launcher's part in the life of workers: it has the zygote make them, and where they
 * have no PID namespace, it is their parent, which tells their supervisor how they ended.
 */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "common/log.h"
#include "executor/launcher/cgroups.h"
#include "executor/launcher/host_memory.h"
#include "executor/launcher/launcher_state.h"
#include "executor/launcher/slot_ids.h"

#define CHILDREN_MAX 1024

static struct managed_sandbox *find(struct launcher *launcher, uint64_t number) {
    struct managed_sandbox *one = launcher->sandboxes;

    while (one && one->sandbox.number != number)
        one = one->next;
    return one;
}

/* ---- made ---- */

static int spawn_in_namespaces(struct managed_sandbox *managed, int fds[],
                               struct viv_error *err) {
    struct launcher *launcher = managed->launcher;
    size_t count = spawn_fd_count(launcher->setup.tier);
    CLEANUP(close_fd) int cgroup = -1;

    if (cgroups_used(launcher->setup.cgroups)) {
        cgroup = cgroups_open_worker_procs(launcher->setup.cgroups, managed->sandbox.slot,
                                           err);
        if (cgroup < 0)
            return viv_fail(err, VIV_CAPACITY, "open the cgroup: %m");
        fds[SPAWN_CGROUP] = cgroup;
        count++;
    }
    /* Its user is the one of its namespace. */
    if (zygotes_spawn(&launcher->zygotes, managed->sandbox.number, SESSION_UID, fds,
                      count, err))
        return -1;
    steal_fd(&cgroup);
    return 0;
}

int launcher_spawn_worker(struct managed_sandbox *managed, int fds[],
                          struct viv_error *err) {
    struct launcher *launcher = managed->launcher;
    struct sandbox *sandbox = &managed->sandbox;
    const uid_t user = slot_worker_uid(launcher->settings, sandbox->slot);
    const size_t count = spawn_fd_count(launcher->setup.tier);

    if (isolation_has_namespaces(launcher->setup.tier))
        return spawn_in_namespaces(managed, fds, err);
    /* One at a time: the one before has ended, or the supervisor is not one of ours. */
    if (sandbox->report >= 0)
        return viv_fail(err, VIV_BAD_GATEWAY, "a second worker is asked for");
    CLEANUP(close_fd)
    int folder = fcntl(launcher->slots.all[sandbox->slot].folder, F_DUPFD_CLOEXEC, 0);
    if (folder < 0)
        return viv_fail(err, VIV_CAPACITY, "duplicate a descriptor: %m");
    int report = fds[SPAWN_REPORT];
    fds[SPAWN_FOLDER] = folder;
    if (zygotes_spawn(&launcher->zygotes, sandbox->number, user, fds, count, err)) {
        fds[SPAWN_REPORT] = report;
        return -1;
    }
    steal_fd(&folder);
    sandbox->report = report;
    sandbox->worker = 0;
    sandbox->worker_unwanted = false;
    return 0;
}

static void report_end(struct sandbox *sandbox, int status) {
    /* The pipe is empty, so that this does not wait; a supervisor that is gone needs
     * nothing. */
    if (write(sandbox->report, &status, sizeof status) != sizeof status)
        viv_log_failure(VIV_LOG_DEBUG, "worker_end_not_told", "the supervisor is gone",
                        "sandbox=%llu", (unsigned long long)sandbox->number);
    close_and_clear(&sandbox->report);
    sandbox->worker = 0;
}

/* A child that ended before the zygote told whose worker it was. */
static bool take_stray(struct launcher *launcher, pid_t pid, int *status) {
    for (size_t i = 0; i < STRAYS_MAX; i++)
        if (launcher->strays[i].pid == pid) {
            *status = launcher->strays[i].status;
            launcher->strays[i].pid = 0;
            return true;
        }
    return false;
}

static void note_stray(struct launcher *launcher, pid_t pid, int status) {
    launcher->strays[launcher->next_stray] = (struct stray){pid, status};
    launcher->next_stray = (launcher->next_stray + 1) % STRAYS_MAX;
}

static void worker_made(struct launcher *launcher, uint64_t number, pid_t pid) {
    struct managed_sandbox *managed = find(launcher, number);
    int status;

    if (!managed || (managed->sandbox.report < 0 &&
                     !isolation_has_namespaces(launcher->setup.tier))) {
        /* Its sandbox has ended meanwhile; in a PID namespace it has with that. */
        if (!isolation_has_namespaces(launcher->setup.tier) &&
            !take_stray(launcher, pid, &status))
            kill(pid, SIGKILL);
        return;
    }
    managed->sandbox.worker = pid;
    if (managed->sandbox.report < 0)
        return;
    if (take_stray(launcher, pid, &status))
        report_end(&managed->sandbox, status);
    else if (managed->sandbox.worker_unwanted || managed->sandbox.state == SANDBOX_ENDING)
        kill(pid, SIGKILL);
}

void launcher_worker_answered(void *context, const struct spawn_reply *reply) {
    struct launcher *launcher = context;
    const struct control_message failed = {.what = CONTROL_WORKER_FAILED};

    if (!reply->failed) {
        worker_made(launcher, reply->sandbox, reply->worker);
        return;
    }
    viv_log_failure(VIV_LOG_WARNING, "worker_not_made", strerror(reply->failed),
                    "sandbox=%llu", (unsigned long long)reply->sandbox);
    struct managed_sandbox *managed = find(launcher, reply->sandbox);
    if (!managed)
        return;
    close_and_clear(&managed->sandbox.report);
    /* The supervisor asks again after a pause. */
    io_send_message(managed->sandbox.control, &failed, sizeof failed, NULL, 0, NULL);
}

/* ---- ended ---- */

void launcher_end_worker(struct managed_sandbox *managed) {
    struct sandbox *sandbox = &managed->sandbox;

    if (sandbox->report < 0)
        return; /* it has ended, and the report of it is written */
    sandbox->worker_unwanted = true;
    if (sandbox->worker > 0)
        kill(sandbox->worker, SIGKILL);
}

struct managed_sandbox *launcher_child_was_worker(struct launcher *launcher, pid_t pid,
                                                  int status) {
    for (struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        if (one->sandbox.worker == pid && one->sandbox.report >= 0) {
            report_end(&one->sandbox, status);
            return one;
        }
    note_stray(launcher, pid, status);
    return NULL;
}

static bool is_known(const struct launcher *launcher, pid_t pid) {
    for (const struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        if (one->sandbox.pid == pid || one->sandbox.worker == pid)
            return true;
    return zygotes_have(&launcher->zygotes, pid);
}

void launcher_end_strangers(struct launcher *launcher) {
    pid_t children[CHILDREN_MAX];
    size_t count = host_children(launcher->setup.proc, getpid(), children, CHILDREN_MAX);

    for (size_t i = 0; i < count; i++)
        if (!is_known(launcher, children[i]))
            kill(children[i], SIGKILL);
}

uint64_t launcher_memory_of(const struct launcher *launcher,
                            const struct sandbox *sandbox) {
    const int proc = launcher->setup.proc;

    return isolation_has_namespaces(launcher->setup.tier)
               ? host_memory_of_children(proc, sandbox->pid)
               : host_memory_of(proc, sandbox->worker);
}
