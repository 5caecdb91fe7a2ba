/* SPDX-License-Identifier: MIT */
/*
 * The launcher as the keeper sees it: a child that gets its namespaces, or its slots, its
 * root and its user, gives up all other rights, and then runs launcher.h. Of the keeper's
 * one thread.
 */
#ifndef VIV_LAUNCHER_PROCESS_H
#define VIV_LAUNCHER_PROCESS_H

#include <stddef.h>
#include <sys/types.h>

#include "executor/launcher/launcher.h"

struct launcher_process {
    pid_t pid;
    int socket; /* SOCK_SEQPACKET to it; its end asks the launcher to end */
};

/* Starts it. Of *start the members `keeper`, `proc` and `folder` are set here. `unwanted`
 * are `count` descriptors that it must not have. On failure there may be a child, which
 * the caller ends and reaps if process->pid is set. */
int launcher_process_start(struct launcher_process *process,
                           const struct launcher_start *start, const int unwanted[],
                           size_t count, struct viv_error *err);

/* Tries the whole set-up of the tier in a launcher that makes one sandbox, without a
 * worker, and ends. Fails with what does not work here. Leaves no process. */
int launcher_process_try(const struct launcher_start *start, const int unwanted[],
                         size_t count, struct viv_error *err);

#endif
