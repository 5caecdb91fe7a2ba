/* SPDX-License-Identifier: MIT */
/*
 * The supervisor of a session: PID 1 of its PID namespace, small, C, one thread. It
 * mounts the session's own file systems, asks for a worker, takes calls from the session
 * channel, pumps and caps the worker's output, keeps the deadline, collects files, and
 * asks for a new worker when one is gone. It does not trust its worker. It knows no HTTP
 * and no Python.
 *
 * It ends with the launcher: by the parent-death signal, by end of file on the control
 * socket, or by being killed; and the kernel then ends all that is in its PID namespace.
 */
#ifndef VIV_SUPERVISOR_H
#define VIV_SUPERVISOR_H

#include "common/settings.h"

/* For the process that was just cloned into the session's namespaces. `control` is its
 * end of the launcher's socket. Never returns. */
__attribute__((noreturn)) void supervisor_main(const struct settings *settings, int proc,
                                               int control);

#endif
