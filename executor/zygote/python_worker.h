/* SPDX-License-Identifier: MIT */
/*
 * The embedded interpreter: started once in the zygote with all libraries, used by each
 * worker after the fork. The only module, with zygote.c and worker.c, that knows of
 * Python; the Python side is executor/runner.py.
 */
#ifndef VIV_PYTHON_WORKER_H
#define VIV_PYTHON_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/bytes.h"
#include "common/error.h"
#include "executor/worker_wire.h"

/* Starts the interpreter and imports `preload`, module names separated by commas. */
int python_start(const char *preload, struct viv_error *err);

/* fork(2) as Python needs it, with the child in the PID namespace that the caller has set
 * for its children, and with that namespace's PID 1 as its parent; in the caller's own
 * namespace with its child subreaper. Returns 0 in the child; in the caller the child as
 * the caller's PID namespace knows it, or -1 with errno. */
pid_t python_fork_orphan(void);

/* The first thing in a worker: everything that must differ between two sessions.
 * `home_is_here`: the home is the current folder and not SESSION_HOME. */
int python_begin(bool home_is_here, struct viv_error *err);

/* One call. `standard_input` with data NULL is none. Appends the claims to `claims`. */
int python_run(const struct worker_call *call, struct slice code,
               struct slice standard_input, struct buffer *claims, struct viv_error *err);

/* Writes to the memory that a call writes to. After a copy of the process was made, so
 * that the next call does not pay for it. */
void python_touch(void);

/* Lets other threads of the session run while the caller waits; the two frame a wait. */
void *python_release(void);
void python_resume(void *state);

#endif
