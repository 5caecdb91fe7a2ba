/* SPDX-License-Identifier: MIT */
/*
 * The fork behind python_fork_orphan(). It knows nothing of Python: what an interpreter
 * does before and after a fork is the caller's.
 */
#ifndef VIV_FORK_ORPHAN_H
#define VIV_FORK_ORPHAN_H

#include <sys/types.h>

/* As python_fork_orphan(). The caller is a process with one thread, and it is the same
 * one each time. */
pid_t fork_orphan(void);

#endif
