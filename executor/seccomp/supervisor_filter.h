/* SPDX-License-Identifier: MIT */
/*
 * The system calls that the supervisor of a sandbox makes once it is set up. It takes
 * frames from a worker that runs anything; a fault in it must not be worth more than what
 * it does anyway: no program, no process, no socket, no executable memory, no mapped
 * file, no right. docs/security.md has the list and its reasons.
 */
#ifndef VIV_SECCOMP_SUPERVISOR_FILTER_H
#define VIV_SECCOMP_SUPERVISOR_FILTER_H

#include <stdbool.h>

#include "executor/seccomp/architecture.h"
#include "executor/seccomp/filter.h"

/* Builds the allow-list, once in the launcher: a supervisor is a fork of it. Everything
 * else fails with EPERM; a foreign ABI kills the process. Outside of a PID namespace of
 * its own it signals nobody but itself. */
int supervisor_filter_build(struct seccomp_filter *filter, bool in_pid_namespace,
                            struct viv_error *err);

/* The same for a named architecture: to be looked at, not to be loaded. */
int supervisor_filter_build_for(const struct seccomp_architecture *architecture,
                                struct seccomp_filter *filter, bool in_pid_namespace,
                                struct viv_error *err);

/* Puts the calling process's id where the filter needs it, and loads it as
 * seccomp_filter_load(). Does nothing in a build with AddressSanitizer, which needs calls
 * of its own at any time. */
int supervisor_filter_load(struct seccomp_filter *filter, struct viv_error *err);

#endif
