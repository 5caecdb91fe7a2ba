/* SPDX-License-Identifier: MIT */
/*
 * The keeper: the process that an administrator starts and stops. It stays outside the
 * user namespace of the sandboxes, writes that namespace's map, takes connections on the
 * executor's socket, checks by peer credentials who is there, and hands them to the
 * launcher. It speaks no protocol and, once the launcher runs, has no capability but the
 * one to end it.
 */
#ifndef VIV_KEEPER_H
#define VIV_KEEPER_H

#include "common/service_notify.h"
#include "common/settings.h"

/* Whether this host has what the settings name: the user that may connect, the system
 * calls to refuse. */
int keeper_check(const struct settings *settings, struct viv_error *err);

/* Runs until SIGTERM, SIGINT or the end of the launcher. `program` is vivarium-zygote,
 * open. The service manager is told when the first sandbox is ready, and of the
 * launcher's beats; *manager is closed in all children. Returns the exit status: 0 after
 * a stop that was asked for. */
int keeper_run(const struct settings *settings, int program,
               const struct service_notify *manager);

#endif
