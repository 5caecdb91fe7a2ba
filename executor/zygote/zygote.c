/* SPDX-License-Identifier: MIT */
/*
 * vivarium-zygote: the warm interpreter that workers are forked from. Started by the
 * launcher in the template root, with one capability, an environment of our own and its
 * socket as descriptor 3. It runs no code of a user and has one thread.
 *
 *     vivarium-zygote PRELOAD LOG_LEVEL
 */
#include <errno.h>
#include <linux/capability.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/io.h"
#include "common/log.h"
#include "executor/seccomp/worker_filter.h"
#include "executor/zygote/python_worker.h"
#include "executor/zygote/worker.h"

#define LAUNCHER 3 /* descriptor */

/* Makes the one capability effective, or only permitted. */
static int set_effective(bool effective, struct viv_error *err) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {0};

    sets[0].permitted = 1U << CAP_SYS_ADMIN;
    sets[0].effective = effective ? sets[0].permitted : 0;
    if (syscall(SYS_capset, &header, sets))
        return viv_fail(err, VIV_SYSTEM, "capset: %m");
    return 0;
}

/* While libraries are imported, nothing is effective. */
static int drop_until_needed(struct viv_error *err) {
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
        return viv_fail(err, VIV_SYSTEM, "clear ambient capabilities: %m");
    return set_effective(false, err);
}

/* Returns 0 in the worker; in the zygote 1, or -1 with errno. */
static int fork_worker(const int fds[SPAWN_FD_COUNT], struct viv_error *err) {
    if (set_effective(true, err))
        return -1;
    /* For children only: setns(2). */
    int result = setns(fds[NAMESPACE_PID], CLONE_NEWPID) ? -1 : python_fork_orphan();
    int error = errno;
    if (result != 0 && set_effective(false, err))
        return -1;
    errno = error;
    return result;
}

static void serve_one(const struct seccomp_filter *filter) {
    struct spawn_request request;
    struct viv_error err;
    int fds[SPAWN_FD_COUNT];
    size_t fd_count;
    ssize_t got = io_receive_message(LAUNCHER, &request, sizeof request, fds,
                                     SPAWN_FD_COUNT, &fd_count, &err);

    if (got == 0)
        _exit(EXIT_SUCCESS); /* the launcher is gone */
    if (got != sizeof request || fd_count != SPAWN_FD_COUNT) {
        viv_log_failure(VIV_LOG_ERROR, "zygote_ends", "a message that is no request",
                        NULL);
        _exit(EXIT_FAILURE);
    }
    int result = fork_worker(fds, &err);
    if (result == 0)
        worker_main(&request, fds, filter);
    struct spawn_reply reply = {.sandbox = request.sandbox,
                                .failed = result < 0 ? errno : 0};
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

int main(int argument_count, char **arguments) {
    const struct worker_filter_options options = {.kill = KILL_IN_PID_NAMESPACE};
    const struct spawn_reply ready = {0};
    struct seccomp_filter filter;
    struct viv_error err;

    if (argument_count != 3) {
        fprintf(stderr, "vivarium-zygote is started by vivarium-executor.\n");
        return EXIT_FAILURE;
    }
    int level = viv_log_level_of(arguments[2]);
    if (level >= 0)
        viv_log_set_level((enum viv_log_level)level);
    if (drop_until_needed(&err) || worker_filter_build(&filter, &options, &err) ||
        python_start(arguments[1], &err)) {
        viv_log_failure(VIV_LOG_ERROR, "zygote_not_started", err.message, NULL);
        return EXIT_FAILURE;
    }
    settle_heap();
    if (io_send_message(LAUNCHER, &ready, sizeof ready, NULL, 0, &err))
        return EXIT_FAILURE;
    for (;;)
        serve_one(&filter);
}
