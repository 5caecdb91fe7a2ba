/* SPDX-License-Identifier: MIT */
#include "executor/launcher/sandbox.h"

#include <errno.h>
#include <sched.h>
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

/* Like fork(2), into new namespaces if there are to be any. The child is C only and uses
 * nothing that glibc prepares at a fork. */
static pid_t make_process(enum isolation_tier tier) {
    unsigned long flags = SIGCHLD;

    for (int i = 0; i < NAMESPACE_COUNT && isolation_has_namespaces(tier); i++)
        flags |= (unsigned long)namespace_kinds[i].flag;
    return (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
}

static bool has_cgroups(const struct sandbox_setup *setup) {
    return setup->cgroups && setup->cgroups->subtree >= 0;
}

/* *events is where kills for memory are counted, if anywhere. */
static int make_cgroups(const struct sandbox *sandbox, const struct sandbox_setup *setup,
                        int *events, struct viv_error *err) {
    const struct cgroup_limits limits = cgroups_limits(setup->settings);

    if (!has_cgroups(setup))
        return 0;
    if (cgroups_make(setup->cgroups, sandbox->slot, &limits, err))
        return -1;
    *events = cgroups_open_worker_events(setup->cgroups, sandbox->slot, err);
    if (*events >= 0 || err->code == VIV_UNAVAILABLE)
        return 0;
    sandbox_clear(sandbox, setup);
    return -1;
}

void sandbox_clear(const struct sandbox *sandbox, const struct sandbox_setup *setup) {
    struct viv_error err;

    if (has_cgroups(setup) && cgroups_remove(setup->cgroups, sandbox->slot, &err))
        viv_log_failure(VIV_LOG_WARNING, "cgroup_left", err.message, "slot=%u",
                        sandbox->slot);
}

/* Lets the supervisor go on, if it has a user namespace with its map. */
static int release(struct sandbox *sandbox, const struct sandbox_setup *setup,
                   struct viv_error *err) {
    const struct control_message go = {.what = CONTROL_GO};
    uint32_t outer_id = setup->ordinary ? ORDINARY_ID : FIRST_SESSION_ID + sandbox->slot;

    if (has_cgroups(setup) &&
        cgroups_enter_supervisor(setup->cgroups, sandbox->slot, sandbox->pid, err))
        return -1;
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
    CLEANUP(close_fd) int events = -1;
    if (io_set_nonblocking(control, err) || make_cgroups(sandbox, setup, &events, err))
        return -1;
    sandbox->report = -1;
    /* Made before the fork: the child does not get *sandbox. */
    const struct supervisor_start start = {
        .settings = setup->settings,
        .tier = setup->tier,
        .filter = &setup->filter,
        .control = supervisor_end,
        .proc = setup->proc,
        .events = events,
        .folder = folder,
        .user = slot_supervisor_uid(setup->settings, sandbox->slot),
        .worker_user = slot_worker_uid(setup->settings, sandbox->slot),
    };
    sandbox->pid = make_process(setup->tier);
    if (sandbox->pid < 0) {
        viv_fail(err, errno == ENOSPC || errno == EAGAIN ? VIV_CAPACITY : VIV_SYSTEM,
                 "clone: %m");
        sandbox_clear(sandbox, setup);
        return -1;
    }
    if (sandbox->pid == 0)
        supervisor_main(&start);
    sandbox->control = control;
    if (release(sandbox, setup, err)) {
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
                        err))
        return -1;
    return steal_fd(&client_end);
}

void sandbox_kill(struct sandbox *sandbox) {
    if (sandbox->pid > 0)
        kill(sandbox->pid, SIGKILL);
    if (sandbox->report >= 0 && sandbox->worker > 0)
        kill(sandbox->worker, SIGKILL);
}
