/* SPDX-License-Identifier: MIT */
/*
 * The inside of a sandbox, made by its supervisor before anything else runs there.
 */
#ifndef VIV_SUPERVISOR_SETUP_H
#define VIV_SUPERVISOR_SETUP_H

#include "common/settings.h"
#include "executor/control.h"
#include "executor/supervisor/session_mounts.h"

struct supervisor_descriptors {
    int control; /* to the launcher */
    int home;    /* SESSION_HOME */
    int mounts
        [SESSION_MOUNT_COUNT]; /* of session_mount_points, to ask for their use only */
    int namespaces[NAMESPACE_COUNT]; /* of this session, for its workers to join */
};

/* Waits for the ids to be mapped, becomes the session's user, mounts its file systems,
 * keeps the descriptors named above and no other, and gives up all rights but that to
 * read the session's own files. A failure means that the sandbox must not be used. */
int supervisor_set_up(struct supervisor_descriptors *descriptors,
                      const struct settings *settings, int proc, int control,
                      struct viv_error *err);

#endif
