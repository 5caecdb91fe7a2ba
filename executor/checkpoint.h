/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints: a worker that waits for its next call is copied by clone(2), and the copy
 * is parked. When the worker is lost, its session goes on from the copy.
 *
 * The worker's code is still refused every process. Two system calls of it are not
 * decided by its filter but wait for the supervisor, which holds the listener of a filter
 * of its own (seccomp_unotify(2)): a clone with exactly the flags below, which is let
 * through once, when the supervisor has asked for a copy and the main thread of the live
 * worker makes it; and the one by which the copy parks, which is not answered until the
 * copy is needed. So a copy that waits is held by the kernel, and nothing that the
 * session owns can wake it, or pass for it.
 *
 *     supervisor   CHECKPOINT                         worker_wire.h
 *     worker       clone(CHECKPOINT_CLONE_FLAGS)      let through
 *     copy         getppid(CHECKPOINT_PARK)           held: the copy is whole
 *     worker       COPIED                             takes calls again
 *     ...
 *     supervisor   a new channel put in the place of the copy's, then the answer 0
 *     copy         RESTORED                           takes calls
 */
#ifndef VIV_CHECKPOINT_H
#define VIV_CHECKPOINT_H

#include <sched.h>
#include <signal.h>
#include <stdint.h>

/* The copy is a child of the worker's parent. */
#define CHECKPOINT_CLONE_FLAGS                                                           \
    (CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD)

/* The first argument of getppid(2), which takes none. */
#define CHECKPOINT_PARK UINT64_C(0x7061726b43504956)

#endif
