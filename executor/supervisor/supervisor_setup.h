/* SPDX-License-Identifier: MIT */
/*
 * The inside of a sandbox, made by its supervisor before anything else runs there.
 */
#ifndef VIV_SUPERVISOR_SETUP_H
#define VIV_SUPERVISOR_SETUP_H

#include "common/settings.h"
#include "executor/control.h"
#include "executor/seccomp/filter.h"
#include "executor/supervisor/session_folders.h"

/* What a supervisor is told by the launcher that it is forked from. */
struct supervisor_start {
    const struct settings *settings;
    enum isolation_tier tier;
    const struct seccomp_filter *filter; /* for itself */
    int control;                         /* its end of the launcher's socket */
    int proc;                            /* /proc of the host, for the namespaces */
    int events;       /* of the worker's cgroup, session_cgroup.h; -1: there is none */
    bool checkpoints; /* executor/checkpoint.h */
    /* Without namespaces: */
    int folder;        /* of the slot */
    uid_t user;        /* in ISOLATION_CONFINED its own, */
    uid_t worker_user; /* and its worker's */
};

struct supervisor_descriptors {
    enum isolation_tier tier; /* tells which of these there are */
    bool checkpoints;         /* workers offer them */
    int control;              /* to the launcher */
    int folders[SESSION_FOLDER_COUNT];
    int events;                      /* of the worker's cgroup, or -1 */
    int namespaces[NAMESPACE_COUNT]; /* of this session, for its workers to join */
};

/* Makes the session's namespaces its own, or enters its slot, becomes its user, keeps the
 * descriptors named above and no other, and gives up all rights but that to read the
 * session's own files. SIGCHLD is blocked then, and has a handler. A failure means that
 * the sandbox must not be used. */
int supervisor_set_up(struct supervisor_descriptors *descriptors,
                      const struct supervisor_start *start, struct viv_error *err);

#endif
