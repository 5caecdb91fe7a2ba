/* SPDX-License-Identifier: MIT */
/*
 * What this host, or the container around us, lets us do to keep sessions apart. Each
 * control is tried for real, in a child that is thrown away, for a call that exists may
 * still be refused by a filter, by AppArmor or by a setting of the kernel. Leaves nothing
 * behind. Called before anything was given up and before the first thread.
 */
#ifndef VIV_PROBE_H
#define VIV_PROBE_H

#include <stdbool.h>

#include "common/settings.h"
#include "executor/isolation.h"
#include "executor/launcher/cgroups.h"

/* The rows of the report. */
enum probe_row {
    /* namespaces; those after the first are tried inside of it */
    PROBE_USER_NAMESPACE,
    PROBE_MOUNT_NAMESPACE,
    PROBE_PID_NAMESPACE,
    PROBE_NETWORK_NAMESPACE,
    PROBE_IPC_NAMESPACE,
    PROBE_UTS_NAMESPACE,
    PROBE_CGROUP_NAMESPACE,
    PROBE_TMPFS,
    PROBE_READ_ONLY_BIND,
    PROBE_ROOT_CHANGE,
    /* control groups: probe_set_controllers() */
    PROBE_MEMORY_CONTROLLER,
    PROBE_PIDS_CONTROLLER,
    PROBE_CPU_CONTROLLER,
    /* what takes their place */
    PROBE_CAPABILITIES,
    PROBE_CHROOT,
    PROBE_CHANGE_OF_USER,
    PROBE_BOUNDING_SET,
    PROBE_SLOT_DIRECTORY,
    PROBE_SLOT_PROGRAMS,
    PROBE_LANDLOCK,
    /* what every tier needs */
    PROBE_NO_NEW_PRIVS,
    PROBE_NOT_DUMPABLE,
    PROBE_RESOURCE_LIMITS,
    PROBE_SECCOMP,
    PROBE_OOM_SCORE,   /* and these nobody needs */
    PROBE_CHECKPOINTS, /* executor/checkpoint.h */
    /* all of it at once: by who can make a sandbox; while it is absent, nothing
     * follows */
    PROBE_WHOLE_SANDBOX,
    PROBE_CONTROL_COUNT
};

enum probe_state {
    PROBE_WORKS,
    PROBE_REFUSED, /* it is there, and not for us */
    PROBE_ABSENT   /* it is not there, or could not be tried */
};

#define PROBE_REASON_SIZE 160

struct probe_control {
    const char *name;
    const char *needed_for; /* names of tiers, or what it is good for */
    const char *remedy;     /* what may help, parts divided by "; " */
    enum probe_state state;
    bool matters;                   /* if it worked, sessions would be better apart */
    char reason[PROBE_REASON_SIZE]; /* why it does not work, "" where it does */
};

struct probe_report {
    struct probe_control controls[PROBE_CONTROL_COUNT];
    int landlock_abi;
    enum isolation_tier tier; /* the best one, if any */
    bool usable;              /* false: not even the weakest one */
    char weaker[512];         /* why it is not a better one, parts divided by "; " */
};

/* Tries everything. Some dozen forks, some milliseconds each; one that hangs is given up
 * after 10 seconds. */
void probe_host(const struct settings *settings, struct probe_report *report);

/* Takes the rows of the controllers from control groups that were opened, or could not be
 * opened, and concludes again. Until then they are absent. */
void probe_set_controllers(struct probe_report *report, const struct cgroups *cgroups);

/* Notes what somebody else has found of a control. */
void probe_set(struct probe_report *report, enum probe_row row, enum probe_state state,
               const char *reason);

/* Finds tier, usable, weaker and what matters from the rows, again. */
void probe_conclude(struct probe_report *report);

#endif
