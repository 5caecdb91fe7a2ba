/* SPDX-License-Identifier: MIT */
/*
 * The filter whose listener decides the two system calls of executor/checkpoint.h. It
 * leaves all others to the worker's list, which is loaded after it and lets these two
 * through: of two filters the stricter answer counts, and to wait for the listener is
 * stricter than to allow (seccomp(2)).
 */
#ifndef VIV_SECCOMP_CHECKPOINT_FILTER_H
#define VIV_SECCOMP_CHECKPOINT_FILTER_H

#include <linux/filter.h>

#include "common/error.h"

#define CHECKPOINT_FILTER_SIZE 15 /* instructions */

/* Writes its program. */
void checkpoint_filter_write(struct sock_filter to[CHECKPOINT_FILTER_SIZE]);

/* Loads it into the calling process, which has one thread and no_new_privs; returns the
 * listener, the caller's. Fails where the kernel or a container refuses it, and where
 * another filter of the process has a listener already. */
int checkpoint_filter_load(struct viv_error *err);

#endif
