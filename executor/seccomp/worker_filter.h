/* SPDX-License-Identifier: MIT */
/*
 * The system calls that a worker may make. The filter is built once, in the zygote, and
 * loaded by each worker as its last control. docs/security.md has the list and its
 * reasons.
 */
#ifndef VIV_SECCOMP_WORKER_FILTER_H
#define VIV_SECCOMP_WORKER_FILTER_H

#include <stdbool.h>

#include "executor/seccomp/architecture.h"
#include "executor/seccomp/filter.h"

/* Whom kill(2) and tgkill(2) reach. */
enum kill_reach {
    KILL_IN_PID_NAMESPACE, /* single processes other than process 1 */
    KILL_SELF_ONLY,        /* the worker itself: seccomp_filter_set_pid() */
};

struct worker_filter_options {
    enum kill_reach kill;
    /* Refuses changes of a file by its path that Landlock does not govern (with any
     * version of it): mode, times, truncate(2). By a descriptor they stay. For sessions
     * that share a user. */
    bool refuse_path_modes;
    /* Refuses, with errors that make libraries write a named file instead, fallocate(2),
     * which can take disk that RLIMIT_FSIZE does not see, and files without a name
     * (O_TMPFILE). For sessions whose use of a disk is watched, not bounded. */
    bool refuse_preallocation;
    /* The setting seccomp_refuse: names, see refusals.h, of calls that fail with EPERM
     * besides those that always do; borrowed, NULL or "" for none. It can allow nothing,
     * and a call that is always refused keeps its error. What a worker itself needs is
     * not spared: without sendto or fcntl none becomes ready, without read each call ends
     * in a crash. */
    const char *refuse;
    /* Lets the clone(2) of executor/checkpoint.h through: the filter that has it decided
     * by the supervisor is loaded before this one. */
    bool copies;
};

/* Builds the allow-list. Everything else fails with EPERM or with the error that
 * libraries expect; a foreign ABI kills the process. VIV_CONFIG: a name to refuse is no
 * system call. */
int worker_filter_build(struct seccomp_filter *filter,
                        const struct worker_filter_options *options,
                        struct viv_error *err);

/* The same for a named architecture: to be looked at, not to be loaded. */
int worker_filter_build_for(const struct seccomp_architecture *architecture,
                            struct seccomp_filter *filter,
                            const struct worker_filter_options *options,
                            struct viv_error *err);

#endif
