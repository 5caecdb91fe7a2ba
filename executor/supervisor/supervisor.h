/* SPDX-License-Identifier: MIT */
/*
 * The supervisor of a session: small, C, one thread; PID 1 where the session has a PID
 * namespace. It makes the inside of the sandbox, asks for a worker, takes calls from the
 * session channel, pumps and caps the worker's output, keeps the deadline, collects
 * files, and asks for a new worker when one is gone. It does not trust its worker. It
 * knows no HTTP and no Python.
 *
 * It ends with the launcher: by the parent-death signal, by end of file on the control
 * socket, or by being killed; and the kernel then ends all that is in its PID namespace,
 * or the launcher its worker.
 */
#ifndef VIV_SUPERVISOR_H
#define VIV_SUPERVISOR_H

#include "executor/supervisor/supervisor_setup.h"

/* For the process that was just made. Never returns. */
__attribute__((noreturn)) void supervisor_main(const struct supervisor_start *start);

#endif
