/* SPDX-License-Identifier: MIT */
/*
 * vivarium-zygote: the warm interpreter that workers are forked from. Started by the
 * launcher in a root like that of the sessions, with the capabilities that forking them
 * takes, an environment of our own and its socket as descriptor 3. It runs no code of a
 * user and has one thread.
 *
 *     vivarium-zygote PRELOAD LOG_LEVEL TIER REFUSED_SYSTEM_CALLS CHECKPOINTS
 */
#include <errno.h>
#include <linux/capability.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/io.h"
#include "common/log.h"
#include "executor/seccomp/worker_filter.h"
#include "executor/zygote/python_worker.h"
#include "executor/zygote/worker.h"

#define LAUNCHER 3 /* descriptor */

struct zygote {
    enum isolation_tier tier;
    struct seccomp_filter filter; /* of the workers */
    bool checkpoints;             /* executor/checkpoint.h */
};

/* Makes its capabilities effective, or only permitted. */
static int set_effective(enum isolation_tier tier, bool effective,
                         struct viv_error *err) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {0};

    sets[0].permitted = (uint32_t)zygote_capabilities(tier);
    sets[0].effective = effective ? sets[0].permitted : 0;
    if (syscall(SYS_capset, &header, sets))
        return viv_fail(err, VIV_SYSTEM, "capset: %m");
    return 0;
}

/* While libraries are imported, nothing is effective. */
static int drop_until_needed(enum isolation_tier tier, struct viv_error *err) {
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
        return viv_fail(err, VIV_SYSTEM, "clear ambient capabilities: %m");
    return set_effective(tier, false, err);
}

/* Returns 0 in the worker; in the zygote the worker's process, or -1 with errno. */
static pid_t fork_worker(const struct zygote *self, const int *fds,
                         struct viv_error *err) {
    if (set_effective(self->tier, true, err))
        return -1;
    /* For children only: setns(2). */
    bool failed = isolation_has_namespaces(self->tier) &&
                  setns(fds[SPAWN_NAMESPACES + NAMESPACE_PID], CLONE_NEWPID);
    pid_t worker = failed ? -1 : python_fork_orphan();
    int error = errno;
    if (worker != 0 && set_effective(self->tier, false, err))
        return -1;
    errno = error;
    return worker;
}

static bool is_fd_count(enum isolation_tier tier, size_t count) {
    size_t needed = spawn_fd_count(tier);

    return count == needed || (needed == SPAWN_CGROUP && count == SPAWN_FD_MAX);
}

static void serve_one(struct zygote *self) {
    struct spawn_request request;
    struct viv_error err;
    int fds[SPAWN_FD_MAX];
    size_t fd_count;
    ssize_t got = io_receive_message(LAUNCHER, &request, sizeof request, fds,
                                     SPAWN_FD_MAX, &fd_count, &err);

    if (got == 0)
        _exit(EXIT_SUCCESS); /* the launcher is gone */
    if (got != sizeof request || !is_fd_count(self->tier, fd_count)) {
        viv_log_failure(VIV_LOG_ERROR, "zygote_ends", "a message that is no request",
                        NULL);
        _exit(EXIT_FAILURE);
    }
    pid_t worker = fork_worker(self, fds, &err);
    if (worker == 0)
        worker_main(&(struct worker_start){.tier = self->tier,
                                           .request = &request,
                                           .fds = fds,
                                           .fd_count = fd_count,
                                           .filter = &self->filter,
                                           .checkpoints = self->checkpoints});
    struct spawn_reply reply = {.sandbox = request.sandbox,
                                .failed = worker < 0 ? errno : 0,
                                .worker = worker > 0 ? worker : 0};
    for (size_t i = 0; i < fd_count; i++)
        close(fds[i]);
    if (io_send_message(LAUNCHER, &reply, sizeof reply, NULL, 0, &err))
        _exit(EXIT_FAILURE);
}

/* What the libraries have freed lies in lists that the first large malloc(3) puts in
 * order. Done here it writes to these pages once; in a worker it would copy each of
 * them. */
static void settle_heap(void) {
    malloc_trim(0);
    void *volatile large = malloc(100 * 1024); /* volatile, or the compiler drops both */
    free(large);
}

static int prepare(struct zygote *self, const char *preload, const char *refuse,
                   struct viv_error *err) {
    const struct worker_filter_options options = {
        .kill =
            isolation_has_namespaces(self->tier) ? KILL_IN_PID_NAMESPACE : KILL_SELF_ONLY,
        .refuse_path_modes = self->tier == ISOLATION_MINIMAL,
        .refuse_preallocation = !isolation_has_namespaces(self->tier),
        .refuse = refuse,
        .copies = self->checkpoints,
    };

    if (drop_until_needed(self->tier, err) ||
        worker_filter_build(&self->filter, &options, err) || python_start(preload, err))
        return -1;
    settle_heap();
    return 0;
}

int main(int argument_count, char **arguments) {
    const struct spawn_reply ready = {0};
    struct zygote self = {0};
    struct viv_error err;
    int tier = argument_count == 6 ? isolation_of_name(arguments[3]) : -1;

    if (argument_count == 2 && strcmp(arguments[1], "--version") == 0) {
        puts("vivarium-zygote " PACKAGE_VERSION);
        return EXIT_SUCCESS;
    }
    if (tier < 0) {
        fprintf(stderr, "vivarium-zygote is started by vivarium-executor.\n");
        return EXIT_FAILURE;
    }
    self.tier = (enum isolation_tier)tier;
    self.checkpoints = strcmp(arguments[5], "on") == 0;
    int level = viv_log_level_of(arguments[2]);
    if (level >= 0)
        viv_log_set_level((enum viv_log_level)level);
    if (prepare(&self, arguments[1], arguments[4], &err)) {
        viv_log_failure(VIV_LOG_ERROR, "zygote_not_started", err.message, NULL);
        return EXIT_FAILURE;
    }
    if (io_send_message(LAUNCHER, &ready, sizeof ready, NULL, 0, &err))
        return EXIT_FAILURE;
    for (;;)
        serve_one(&self);
}
