/* SPDX-License-Identifier: MIT */
/*
 * What the processes of a session do with descriptors of their own cgroup, which the
 * launcher has opened: launcher/cgroups.h. Knows no groups and no limits.
 */
#ifndef VIV_SESSION_CGROUP_H
#define VIV_SESSION_CGROUP_H

#include <stdint.h>

#include "common/error.h"

/* Moves the calling process; `procs` is the cgroup.procs of the group. Memory that it has
 * touched before stays with the group that it came from, so this comes first. */
int session_cgroup_enter(int procs, struct viv_error *err);

/* How many processes of the group the kernel has killed for memory, ever; `events` is its
 * memory.events, read anew at each call. A kill for memory is counted before the process
 * gets the signal. */
int session_cgroup_oom_kills(int events, uint64_t *kills, struct viv_error *err);

#endif
