/* SPDX-License-Identifier: MIT */
#include "executor/launcher/sandbox.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "common/log.h"
#include "executor/control.h"
#include "executor/launcher/slot_ids.h"
#include "executor/launcher/user_namespace.h"
#include "executor/supervisor/supervisor.h"

static unsigned long namespace_flags(enum isolation_tier tier) {
    unsigned long flags = 0;

    for (int i = 0; i < NAMESPACE_COUNT && isolation_has_namespaces(tier); i++)
        flags |= (unsigned long)namespace_kinds[i].flag;
    return flags;
}

/* Like fork(2), into new namespaces if there are to be any. The child is C only and uses
 * nothing that glibc prepares at a fork. */
static pid_t make_process(enum isolation_tier tier) {
    return (pid_t)syscall(SYS_clone, SIGCHLD | namespace_flags(tier), NULL, NULL, NULL,
                          NULL);
}

/* The same in a cgroup: to move a process later takes milliseconds, in which the launcher
 * would do nothing else. */
static pid_t make_process_in(enum isolation_tier tier, int cgroup) {
    struct clone_args arguments = {
        .flags = namespace_flags(tier) | CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)cgroup,
    };

    return (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
}

/* The groups of a new sandbox; -1 where none are used. */
struct sandbox_cgroup {
    int supervisor; /* the directory of its group */
    int events;     /* where kills for memory are counted, or -1 */
};

static void sandbox_cgroup_cleanup(struct sandbox_cgroup *cgroup) {
    close_fd_cleanup(&cgroup->supervisor);
    close_fd_cleanup(&cgroup->events);
}

static int make_cgroup(struct sandbox_cgroup *cgroup, const struct sandbox *sandbox,
                       const struct sandbox_setup *setup, struct viv_error *err) {
    const struct cgroup_limits limits =
        cgroups_limits(setup->settings, setup->checkpoints);

    if (!cgroups_used(setup->cgroups))
        return 0;
    if (cgroups_make(setup->cgroups, sandbox->slot, &limits, err))
        return -1;
    cgroup->supervisor = cgroups_open_supervisor(setup->cgroups, sandbox->slot, err);
    if (cgroup->supervisor >= 0) {
        cgroup->events = cgroups_open_worker_events(setup->cgroups, sandbox->slot, err);
        if (cgroup->events >= 0 || err->code == VIV_UNAVAILABLE)
            return 0;
    }
    sandbox_clear(sandbox, setup);
    return -1;
}

void sandbox_clear(const struct sandbox *sandbox, const struct sandbox_setup *setup) {
    struct viv_error err;

    if (cgroups_used(setup->cgroups) &&
        cgroups_remove(setup->cgroups, sandbox->slot, &err))
        viv_log_failure(VIV_LOG_WARNING, "cgroup_left", err.message, "slot=%u",
                        sandbox->slot);
}

/* Lets the supervisor go on, if it has a user namespace with its map. */
static int release(struct sandbox *sandbox, const struct sandbox_setup *setup,
                   struct viv_error *err) {
    const struct control_message go = {.what = CONTROL_GO};
    uint32_t outer_id = setup->ordinary ? ORDINARY_ID : FIRST_SESSION_ID + sandbox->slot;

    if (isolation_has_namespaces(setup->tier) &&
        user_namespace_map_session(setup->proc, sandbox->pid, outer_id, setup->ordinary,
                                   err))
        return -1;
    return io_send_message(sandbox->control, &go, sizeof go, NULL, 0, err);
}

int sandbox_start(struct sandbox *sandbox, const struct sandbox_setup *setup, int folder,
                  struct viv_error *err) {
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return viv_fail(err, VIV_SYSTEM, "socketpair: %m");
    CLEANUP(close_fd) int control = pair[0];
    CLEANUP(close_fd) int supervisor_end = pair[1];
    CLEANUP(sandbox_cgroup) struct sandbox_cgroup cgroup = {-1, -1};
    if (io_set_nonblocking(control, err) || make_cgroup(&cgroup, sandbox, setup, err))
        return -1;
    sandbox->report = -1;
    /* Made before the fork: the child does not get *sandbox. */
    const struct supervisor_start start = {
        .settings = setup->settings,
        .tier = setup->tier,
        .filter = &setup->filter,
        .control = supervisor_end,
        .proc = setup->proc,
        .events = cgroup.events,
        .checkpoints = setup->checkpoints,
        .folder = folder,
        .user = slot_supervisor_uid(setup->settings, sandbox->slot),
        .worker_user = slot_worker_uid(setup->settings, sandbox->slot),
    };
    bool is_in_cgroup = cgroup.supervisor >= 0;
    if (is_in_cgroup)
        sandbox->pid = make_process_in(setup->tier, cgroup.supervisor);
    /* The filters of containers know no clone3(2), Linux before 5.7 no such flag of
     * it. */
    if (is_in_cgroup && sandbox->pid < 0 &&
        (errno == ENOSYS || errno == EINVAL || errno == E2BIG))
        is_in_cgroup = false;
    if (!is_in_cgroup)
        sandbox->pid = make_process(setup->tier);
    if (sandbox->pid == 0)
        supervisor_main(&start);
    if (sandbox->pid < 0) {
        viv_fail(err, errno == ENOSPC || errno == EAGAIN ? VIV_CAPACITY : VIV_SYSTEM,
                 "clone: %m");
        sandbox_clear(sandbox, setup);
        return -1;
    }
    sandbox->control = control;
    if ((cgroup.supervisor >= 0 && !is_in_cgroup &&
         cgroups_enter_supervisor(setup->cgroups, sandbox->slot, sandbox->pid, err)) ||
        release(sandbox, setup, err)) {
        sandbox_kill(sandbox);
        waitpid(sandbox->pid, NULL, 0);
        sandbox_clear(sandbox, setup);
        sandbox->control = -1;
        return -1;
    }
    sandbox->control = steal_fd(&control);
    sandbox->state = SANDBOX_STARTING;
    sandbox->started = viv_now();
    return 0;
}

int sandbox_open_channel(struct sandbox *sandbox, struct viv_error *err) {
    const struct control_message message = {.what = CONTROL_CHANNEL};
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
        return viv_fail(err, VIV_SYSTEM, "socketpair: %m");
    CLEANUP(close_fd) int client_end = pair[0];
    CLEANUP(close_fd) int supervisor_end = pair[1];
    if (io_send_message(sandbox->control, &message, sizeof message, &supervisor_end, 1,
                        err)) {
        err->code = VIV_UNAVAILABLE; /* it has just died: the next one is another */
        return -1;
    }
    return steal_fd(&client_end);
}

void sandbox_kill(struct sandbox *sandbox) {
    if (sandbox->pid > 0)
        kill(sandbox->pid, SIGKILL);
    if (sandbox->worker > 0)
        kill(sandbox->worker, SIGKILL);
}
