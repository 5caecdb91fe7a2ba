/* SPDX-License-Identifier: MIT */
/*
 * A worker: a fork of the zygote that joins a session's namespaces or enters its slot,
 * gives up all rights, and then runs the code of a user, call after call, until it is
 * killed.
 */
#ifndef VIV_WORKER_H
#define VIV_WORKER_H

#include <stdbool.h>

#include "executor/control.h"
#include "executor/seccomp/filter.h"

struct worker_start {
    enum isolation_tier tier;
    const struct spawn_request *request;
    const int *fds; /* of the request */
    size_t fd_count;
    struct seccomp_filter *filter; /* its last control */
    bool checkpoints; /* executor/checkpoint.h: the filter lets copies be made */
};

/* For the child of python_fork_orphan(). Never returns. */
__attribute__((noreturn)) void worker_main(const struct worker_start *start);

#endif
