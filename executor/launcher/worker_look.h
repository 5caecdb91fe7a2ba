/* SPDX-License-Identifier: MIT */
/*
 * What the host's /proc says of the worker of a session in namespaces, before a copy is
 * made of it: nothing that the session owns has a part in that. `proc` is a descriptor of
 * the host's /proc.
 */
#ifndef VIV_WORKER_LOOK_H
#define VIV_WORKER_LOOK_H

#include <stdint.h>
#include <sys/types.h>

#include "executor/control.h"

#define LOOK_FDS_MAX 1024 /* more than a worker may have */

/* How it was when no code of a user had run in it. */
struct fresh_worker {
    uint64_t fds[LOOK_FDS_MAX / 64]; /* a bit for each descriptor that is open */
    uint64_t anonymous;              /* bytes, swapped ones too */
};

/* Looks at the fresh worker look->worker, a child of `supervisor`. */
void worker_look_fresh(int proc, pid_t supervisor, const struct control_look *look,
                       struct fresh_worker *fresh);

/* Kills all children of `supervisor` but the worker and its copy, and fills in the rest
 * of *look. */
void worker_look(int proc, pid_t supervisor, const struct fresh_worker *fresh,
                 struct control_look *look);

#endif
