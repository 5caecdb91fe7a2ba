/* SPDX-License-Identifier: MIT */
/*
 * Limits of memory, processes and processor time for each sandbox, by cgroups of version
 * 2: cgroups(7). Below the cgroup that the keeper was started in:
 *
 *     viv.PID                 PID is the keeper's; the launcher may make groups in it
 *         viv.main            keeper, launcher, zygote
 *         s-SLOT              the limits of one sandbox
 *             supervisor
 *             worker          a kill for memory ends all of it, and nothing else
 *
 * Processes are in the leaves only: a group that gives controllers to its children may
 * have none of its own.
 *
 * The keeper makes the subtree while it is outside of all namespaces, its children
 * inherit it; the launcher reaches it by the descriptor alone. What a process does once
 * it is in its group is in executor/session_cgroup.h. Knows no sandboxes, no tiers and no
 * clients. One thread.
 */
#ifndef VIV_CGROUPS_H
#define VIV_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/settings.h"

enum cgroup_controller_kind { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_KINDS };

struct cgroup_controller {
    bool enabled;     /* for the groups of sandboxes */
    bool added;       /* to what the keeper's first cgroup gives to its children, by us */
    char reason[192]; /* why it is not enabled, for people; or "" */
};

struct cgroups {
    int own;       /* directory of the cgroup that the keeper was started in; or -1 */
    int subtree;   /* directory of viv.PID; -1: no cgroups are used */
    char name[32]; /* viv.PID */
    struct cgroup_controller controllers[CGROUP_KINDS];
};

struct cgroup_limits {
    uint64_t memory; /* bytes; files of the session included */
    uint64_t pids;
    uint64_t cpus; /* processors' worth of time, 0: no limit */
};

/* Those of an executor that uses none; the zero value would be other descriptors. */
static inline struct cgroups cgroups_none(void) {
    return (struct cgroups){.own = -1, .subtree = -1};
}

static inline bool cgroups_used(const struct cgroups *cgroups) {
    return cgroups->subtree >= 0;
}

/* The name of a controller as the kernel spells it; a constant. */
const char *cgroup_controller_name(enum cgroup_controller_kind kind);

/* ---- the keeper's ---- */

/*
 * Makes the subtree, moves the calling process into it and enables the controllers that
 * can be had. The caller has no child yet, for children would stay where it was; as root
 * it has its capabilities. `launcher` is the group, outside of namespaces, that the
 * launcher will have; used by root only. Fails with VIV_UNAVAILABLE, and everything is as
 * before, when none can be had: then, too, each controller has its reason.
 */
int cgroups_open(struct cgroups *cgroups, gid_t launcher, struct viv_error *err);

/*
 * The steps of cgroups_open(). The first takes over `own`, a descriptor of the caller's
 * cgroup, and moves the caller; whatever becomes of it and of the next ones,
 * cgroups_close() is the way back. The second returns whether a controller is enabled.
 */
int cgroups_enter(struct cgroups *cgroups, int own, struct viv_error *err);
bool cgroups_enable(struct cgroups *cgroups);
int cgroups_delegate(struct cgroups *cgroups, gid_t launcher, struct viv_error *err);

/*
 * Moves the caller, who is the one that opened them, back and removes every group, also
 * those that the launcher has left. Needs no capability. Waits some seconds for processes
 * that are ending; fails when others stay: then the groups stay, too. Does nothing where
 * no cgroups are used.
 */
int cgroups_close(struct cgroups *cgroups, struct viv_error *err);

/* ---- the launcher's ---- */

/* Closes what only the keeper needs. */
void cgroups_become_launcher(struct cgroups *cgroups);

/* What the settings give to a session, whose worker may have a copy
 * (executor/checkpoint.h). */
struct cgroup_limits cgroups_limits(const struct settings *settings, bool checkpoints);

/* Makes the groups of a slot, with those limits whose controller is enabled. On failure
 * nothing is left. */
int cgroups_make(const struct cgroups *cgroups, uint32_t slot,
                 const struct cgroup_limits *limits, struct viv_error *err);

/* Opens a supervisor's group, for it to be born there: CLONE_INTO_CGROUP of clone(2),
 * since Linux 5.7. Returns a descriptor of the directory, or -1. */
int cgroups_open_supervisor(const struct cgroups *cgroups, uint32_t slot,
                            struct viv_error *err);

/* Moves a supervisor, which has not begun its work, into its group: where clone3(2) is
 * not there, or a container's filter hides it. The kernel may take some milliseconds, as
 * for every move: it waits until no process of the host is in the middle of a fork. */
int cgroups_enter_supervisor(const struct cgroups *cgroups, uint32_t slot, pid_t pid,
                             struct viv_error *err);

/* Opens the way into a worker's group, for session_cgroup_enter(): the kernel looks at
 * the rights of who has opened it (since Linux 5.16, and in later versions of older
 * ones). Returns a descriptor, or -1. */
int cgroups_open_worker_procs(const struct cgroups *cgroups, uint32_t slot,
                              struct viv_error *err);

/* Opens what session_cgroup_oom_kills() reads; fails with VIV_UNAVAILABLE where the
 * memory controller is not enabled. Returns a descriptor, or -1. */
int cgroups_open_worker_events(const struct cgroups *cgroups, uint32_t slot,
                               struct viv_error *err);

/* Kills all processes of a slot; false where the kernel has no such call (Linux before
 * 5.14). */
bool cgroups_kill(const struct cgroups *cgroups, uint32_t slot);

/* Removes the groups of a slot, whose processes have ended; waits some milliseconds for
 * the kernel to have forgotten them. On failure they stay: cgroups_make() takes them
 * again, and cgroups_close() removes them. */
int cgroups_remove(const struct cgroups *cgroups, uint32_t slot, struct viv_error *err);

#endif
