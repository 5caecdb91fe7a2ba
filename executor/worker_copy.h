/* SPDX-License-Identifier: MIT */
/*
 * The worker's part in a checkpoint, executor/checkpoint.h: it offers the supervisor to
 * decide, and makes a copy of itself when it is told to.
 */
#ifndef VIV_WORKER_COPY_H
#define VIV_WORKER_COPY_H

#include <stddef.h>

#include "common/error.h"
#include "executor/raw_fork.h"

/* Loads the filter and sends its listener along with a message through a unix socket.
 * Once, before the list of allowed system calls, which refuses sendmsg(2). */
int worker_copy_offer(int channel, const void *message, size_t size,
                      struct viv_error *err);

enum worker_copy {
    WORKER_COPY_FAILED, /* in the worker: there is no copy */
    WORKER_COPY_MADE,   /* in the worker: it parks, or has parked already */
    WORKER_COPY_WOKEN,  /* in the copy: the worker is gone, this one takes its place */
};

/* Makes a copy of the calling process, which has one thread. The copy closes `channel`,
 * so that the end of the process is seen by it, and until it is woken does nothing more.
 * No code of a user runs, no handler of fork(2) either: there was no other thread that
 * could hold a lock. */
enum worker_copy worker_copy_make(const struct raw_fork *thread, int channel);

#endif
