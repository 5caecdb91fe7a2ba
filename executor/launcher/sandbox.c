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
#include "executor/control.h"
#include "executor/supervisor/supervisor.h"
#include "executor/launcher/user_namespace.h"

/* Like fork(2), into new namespaces. The child is C only and uses nothing that glibc
 * prepares at a fork. */
static pid_t fork_into_namespaces(void) {
    unsigned long flags = SIGCHLD;

    for (int i = 0; i < NAMESPACE_COUNT; i++)
        flags |= (unsigned long)namespace_kinds[i].flag;
    return (pid_t)syscall(SYS_clone, flags, NULL, NULL, NULL, NULL);
}

/* Lets the supervisor go on, in a user namespace that has its map. */
static int release(struct sandbox *sandbox, const struct sandbox_setup *setup,
                   struct viv_error *err) {
    const struct control_message mapped = {.what = CONTROL_MAPPED};
    uint32_t outer_id = setup->ordinary ? ORDINARY_ID : FIRST_SESSION_ID + sandbox->slot;

    if (user_namespace_map_session(setup->proc, sandbox->pid, outer_id, setup->ordinary,
                                   err))
        return -1;
    return io_send_message(sandbox->control, &mapped, sizeof mapped, NULL, 0, err);
}

int sandbox_start(struct sandbox *sandbox, const struct sandbox_setup *setup,
                  struct viv_error *err) {
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return viv_fail(err, VIV_SYSTEM, "socketpair: %m");
    CLEANUP(close_fd) int control = pair[0];
    CLEANUP(close_fd) int supervisor_end = pair[1];
    if (io_set_nonblocking(control, err))
        return -1;
    sandbox->pid = fork_into_namespaces();
    if (sandbox->pid < 0)
        return viv_fail(err,
                        errno == ENOSPC || errno == EAGAIN ? VIV_CAPACITY : VIV_SYSTEM,
                        "clone into new namespaces: %m");
    if (sandbox->pid == 0)
        supervisor_main(setup->settings, setup->proc, supervisor_end);
    sandbox->control = control;
    if (release(sandbox, setup, err)) {
        sandbox_kill(sandbox);
        waitpid(sandbox->pid, NULL, 0);
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

void sandbox_kill(struct sandbox *sandbox) { kill(sandbox->pid, SIGKILL); }
