/* SPDX-License-Identifier: MIT */
/*
 * A lock beside a socket in the file system, so that two services that start at once do
 * not take it from each other. Any thread.
 */
#ifndef VIV_PATH_LOCK_H
#define VIV_PATH_LOCK_H

#include "common/clock.h"
#include "common/error.h"

/* Locks the file `path`.lock, mode 0600, which is made if it is not there and stays: were
 * it removed, two could hold locks on two files of the name. Waits until `deadline` for
 * one that holds it, then fails with VIV_SYSTEM. Returns a descriptor, the caller's, that
 * holds the lock until it is closed, however the process ends: flock(2). */
int path_lock_take(const char *path, viv_time deadline, struct viv_error *err);

#endif
