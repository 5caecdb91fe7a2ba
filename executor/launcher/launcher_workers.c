/* SPDX-License-Identifier: MIT */
/*
 * The launcher's part in the life of workers: it has the zygote make them, and where they
 * have no PID namespace, it is their parent, which tells their supervisor how they ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
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
#define STRAY_AGE    (10 * VIV_SECOND)

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
    if (sandbox->worker > 0 || sandbox->worker_asked)
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
    close_and_clear(&sandbox->report);
    sandbox->report = report;
    sandbox->worker_asked = true;
    sandbox->worker_unwanted = false;
    sandbox->worker_interrupted = false;
    return 0;
}

/* The launcher waits for nobody: whatever the supervisor has made of the other end, or
 * sent in place of a socket, this is one call that fails. */
static void report_end(struct sandbox *sandbox, int status) {
    if (send(sandbox->report, &status, sizeof status, MSG_DONTWAIT | MSG_NOSIGNAL) !=
        sizeof status)
        viv_log_failure(VIV_LOG_DEBUG, "worker_end_not_told", "the supervisor is gone",
                        "sandbox=%llu", (unsigned long long)sandbox->number);
    close_and_clear(&sandbox->report);
    sandbox->worker = 0;
}

/* A child that ended before the zygote told whose worker it was. Its number may belong to
 * another process some time later. */
static bool take_stray(struct launcher *launcher, pid_t pid, int *status) {
    for (size_t i = 0; i < STRAYS_MAX; i++) {
        struct stray *stray = &launcher->strays[i];
        if (stray->pid != pid || viv_now() - stray->ended > STRAY_AGE)
            continue;
        *status = stray->status;
        stray->pid = 0;
        return true;
    }
    return false;
}

static void note_stray(struct launcher *launcher, pid_t pid, int status) {
    launcher->strays[launcher->next_stray] = (struct stray){pid, status, viv_now()};
    launcher->next_stray = (launcher->next_stray + 1) % STRAYS_MAX;
}

/* An interrupt that was to strike it waits for that no longer: it has, or never will. */
static void tell_interrupted(struct sandbox *sandbox) {
    const struct control_message done = {.what = CONTROL_INTERRUPTED};

    sandbox->worker_interrupted = false;
    io_send_message(sandbox->control, &done, sizeof done, NULL, 0, NULL);
}

/* The zygote has answered, or never will. */
static void end_asking(struct sandbox *sandbox) {
    sandbox->worker_asked = false;
    if (sandbox->worker_interrupted)
        tell_interrupted(sandbox);
}

static void worker_made(struct launcher *launcher, struct managed_sandbox *managed,
                        pid_t pid) {
    int status = 0;
    bool has_ended = take_stray(launcher, pid, &status);

    if (!managed) {
        if (!has_ended)
            kill(pid, SIGKILL);
        return;
    }
    if (!has_ended) {
        managed->sandbox.worker = pid;
        if (managed->sandbox.worker_unwanted || managed->sandbox.state == SANDBOX_ENDING)
            kill(pid, SIGKILL);
        else if (managed->sandbox.worker_interrupted)
            kill(pid, SIGINT);
    }
    end_asking(&managed->sandbox);
    if (has_ended) {
        report_end(&managed->sandbox, status);
        launcher_forget_if_ended(managed);
    }
}

/* Whether it is for want of something that there may be more of some time. */
static bool is_shortage(int error) {
    return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE;
}

/* The supervisor asks again after a pause. Who waits for a sandbox hears of a shortage
 * now. */
void launcher_refuse_worker(struct managed_sandbox *managed, int error) {
    const struct control_message failed = {.what = CONTROL_WORKER_FAILED};
    struct viv_error failure;

    viv_log_failure(VIV_LOG_WARNING, "worker_not_made", strerror(error), "sandbox=%llu",
                    (unsigned long long)managed->sandbox.number);
    if (managed->sandbox.state == SANDBOX_STARTING && is_shortage(error)) {
        viv_fail(&failure, VIV_CAPACITY, "no worker can be made: %s", strerror(error));
        launcher_fail_waiting(managed->launcher, &failure);
    }
    io_send_message(managed->sandbox.control, &failed, sizeof failed, NULL, 0, NULL);
}

void launcher_worker_answered(void *context, const struct spawn_reply *reply) {
    struct launcher *launcher = context;
    struct managed_sandbox *managed = find(launcher, reply->sandbox);
    const bool is_ours = !isolation_has_namespaces(launcher->setup.tier);

    if (!reply->failed) {
        if (is_ours)
            worker_made(launcher, managed, reply->worker);
        return;
    }
    if (!managed)
        return;
    /* One whose sandbox ends meanwhile is needed no more. */
    if (managed->sandbox.state != SANDBOX_ENDING)
        launcher_refuse_worker(managed, reply->failed);
    if (is_ours) {
        close_and_clear(&managed->sandbox.report);
        end_asking(&managed->sandbox);
        launcher_forget_if_ended(managed);
    }
}

void launcher_look_at_worker(struct managed_sandbox *managed, struct control_look *look) {
    const int proc = managed->launcher->setup.proc;
    const pid_t supervisor = managed->sandbox.pid;

    if (look->number == 0) {
        /* One of a session may be in a call by now: a waiting one begins when it is
         * ready. All workers of a sandbox are alike when they are fresh. */
        if (managed->sandbox.state < SANDBOX_TAKEN)
            worker_look_fresh(proc, supervisor, look, &managed->fresh);
        return;
    }
    worker_look(proc, supervisor, &managed->fresh, look);
    const struct control_message looked = {.what = CONTROL_LOOKED, .look = *look};
    io_send_message(managed->sandbox.control, &looked, sizeof looked, NULL, 0, NULL);
}

/* ---- ended ---- */

void launcher_interrupt_worker(struct managed_sandbox *managed) {
    struct sandbox *sandbox = &managed->sandbox;

    /* A worker may be in a call before the zygote has said that it is made. */
    if (sandbox->worker_asked) {
        sandbox->worker_interrupted = true;
        return;
    }
    if (sandbox->worker > 0)
        kill(sandbox->worker, SIGINT);
    tell_interrupted(sandbox);
}

void launcher_end_worker(struct managed_sandbox *managed) {
    /* One that has ended has its report written. */
    managed->sandbox.worker_unwanted = true;
    if (managed->sandbox.worker > 0)
        kill(managed->sandbox.worker, SIGKILL);
}

struct managed_sandbox *launcher_child_was_worker(struct launcher *launcher, pid_t pid,
                                                  int status) {
    for (struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        if (one->sandbox.worker == pid) {
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
