/* SPDX-License-Identifier: MIT */
/*
 * Where the cgroup (version 2) of this process is in the file system. Version 1 is not
 * looked at: cgroups(7), proc(5). Allocates; any thread.
 */
#ifndef VIV_CGROUP_FIND_H
#define VIV_CGROUP_FIND_H

#include <stdio.h>

#include "common/error.h"

/* The path, which the caller frees, from what /proc/self/cgroup and /proc/self/mountinfo
 * say. Fails with VIV_UNAVAILABLE where no mount shows it. */
char *cgroup_find(FILE *cgroup, FILE *mountinfo, struct viv_error *err);

/* Opens the cgroup of this process; *path, which the caller frees, is for messages and
 * NULL on failure. Returns a descriptor of the directory, or -1. */
int cgroup_open_own(char **path, struct viv_error *err);

#endif
