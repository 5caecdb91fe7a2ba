/* SPDX-License-Identifier: MIT */
/* One sandbox without a worker, to see whether sandboxes can be made here. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/io.h"
#include "executor/control.h"
#include "executor/launcher/launcher.h"
#include "executor/launcher/sandbox.h"
#include "executor/launcher/slots.h"
#include "executor/seccomp/supervisor_filter.h"

#define SET_UP_LIMIT_MS 20000

/* What a supervisor sends along with its demand for a worker. To be held until it has
 * been ended: with the last copy of them closed it would see a worker that ended, and log
 * it. */
struct demand {
    int fds[SPAWN_FD_MAX];
    size_t fd_count;
};

/* A supervisor that is set up asks for a worker first of all. */
static int wait_for_set_up(int control, struct demand *demand, struct viv_error *err) {
    struct control_message message;

    if (io_wait(control, false, viv_after_ms(SET_UP_LIMIT_MS), err))
        return -1;
    ssize_t got = io_receive_message(control, &message, sizeof message, demand->fds,
                                     SPAWN_FD_MAX, &demand->fd_count, err);
    if (got < 0)
        return -1;
    return got == sizeof message && message.what == CONTROL_SPAWN
               ? 0
               : viv_fail(err, VIV_SYSTEM,
                          "a sandbox could not be set up: the log has the reason");
}

int launcher_try(const struct launcher_start *start, struct viv_error *err) {
    struct sandbox_setup setup = {
        .settings = start->settings,
        .tier = start->tier,
        .proc = start->proc,
        .ordinary = start->ordinary,
        .checkpoints = !start->no_checkpoints[0],
        .cgroups = start->cgroups,
    };
    struct sandbox sandbox = {.number = 1};
    struct demand demand = {.fd_count = 0};
    CLEANUP(close_fd) int folder = -1;

    if (supervisor_filter_build(&setup.filter, isolation_has_namespaces(start->tier),
                                err))
        return -1;
    if (!isolation_has_namespaces(start->tier)) {
        folder = slots_ask(start->janitor, sandbox.slot, err);
        if (folder < 0)
            return -1;
    }
    if (sandbox_start(&sandbox, &setup, folder, err))
        return -1;
    int failed = wait_for_set_up(sandbox.control, &demand, err);
    sandbox_kill(&sandbox);
    while (waitpid(sandbox.pid, NULL, 0) < 0 && errno == EINTR)
        ;
    for (size_t i = 0; i < demand.fd_count; i++)
        close(demand.fds[i]);
    close(sandbox.control);
    sandbox_clear(&sandbox, &setup);
    seccomp_filter_clear(&setup.filter);
    return failed;
}
