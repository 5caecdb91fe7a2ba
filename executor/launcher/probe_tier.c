/* SPDX-License-Identifier: MIT */
/* Which tier follows from what works. */
#include <stdio.h>
#include <string.h>

#include "executor/launcher/probe.h"

#define ROW(name) (1U << (name))

static const unsigned everywhere = ROW(PROBE_NO_NEW_PRIVS) | ROW(PROBE_NOT_DUMPABLE) |
                                   ROW(PROBE_RESOURCE_LIMITS) | ROW(PROBE_SECCOMP);

static const unsigned in_namespaces =
    ROW(PROBE_USER_NAMESPACE) | ROW(PROBE_MOUNT_NAMESPACE) | ROW(PROBE_PID_NAMESPACE) |
    ROW(PROBE_NETWORK_NAMESPACE) | ROW(PROBE_IPC_NAMESPACE) | ROW(PROBE_UTS_NAMESPACE) |
    ROW(PROBE_CGROUP_NAMESPACE) | ROW(PROBE_TMPFS) | ROW(PROBE_READ_ONLY_BIND) |
    ROW(PROBE_ROOT_CHANGE) | ROW(PROBE_WHOLE_SANDBOX);

static const unsigned controllers =
    ROW(PROBE_MEMORY_CONTROLLER) | ROW(PROBE_PIDS_CONTROLLER) | ROW(PROBE_CPU_CONTROLLER);

static const unsigned as_root = ROW(PROBE_CAPABILITIES) | ROW(PROBE_CHROOT) |
                                ROW(PROBE_CHANGE_OF_USER) | ROW(PROBE_BOUNDING_SET) |
                                ROW(PROBE_SLOT_DIRECTORY) | ROW(PROBE_SLOT_PROGRAMS);

static const unsigned as_anybody = ROW(PROBE_SLOT_DIRECTORY) | ROW(PROBE_LANDLOCK);

/* What each tier needs besides `everywhere`. */
static unsigned needs(enum isolation_tier tier) {
    switch (tier) {
    case ISOLATION_FULL:
        return in_namespaces | controllers;
    case ISOLATION_ISOLATED:
        return in_namespaces;
    case ISOLATION_CONFINED:
        return as_root;
    default:
        return as_anybody;
    }
}

static unsigned working_rows(const struct probe_report *report) {
    unsigned working = 0;

    for (unsigned i = 0; i < PROBE_CONTROL_COUNT; i++)
        if (report->controls[i].state == PROBE_WORKS ||
            (i == PROBE_WHOLE_SANDBOX && report->controls[i].state == PROBE_ABSENT))
            working |= ROW(i);
    return working;
}

/* Appends as much of a text as there is room for. */
static void append(struct probe_report *report, const char *first, const char *second) {
    size_t length = strlen(report->weaker);

    snprintf(report->weaker + length, sizeof report->weaker - length, "%s%s", first,
             second);
}

/* Says why the rows `missing` do not work: neighbours with one reason together, and
 * nothing of those that another one keeps from being tried. */
static void tell(struct probe_report *report, unsigned missing) {
    const struct probe_control *before = NULL;

    for (unsigned i = 0; i < PROBE_CONTROL_COUNT; i++) {
        const struct probe_control *control = &report->controls[i];
        if (!(missing & ROW(i)))
            continue;
        if (before && strcmp(before->reason, control->reason) == 0) {
            append(report, ", ", control->name);
        } else {
            if (before)
                append(report, ": ", before->reason);
            append(report, *report->weaker ? "; " : "", control->name);
        }
        before = control;
    }
    if (before)
        append(report, ": ", before->reason);
}

/* Landlock and the kernel's choice of whom to kill are good in every tier. */
static void mark(struct probe_report *report, unsigned missing) {
    const unsigned welcome =
        ROW(PROBE_LANDLOCK) | ROW(PROBE_OOM_SCORE) | ROW(PROBE_CHECKPOINTS);

    for (unsigned i = 0; i < PROBE_CONTROL_COUNT; i++)
        report->controls[i].matters =
            (missing | welcome) & ROW(i) && report->controls[i].state != PROBE_WORKS;
}

void probe_conclude(struct probe_report *report) {
    const unsigned working = working_rows(report);
    unsigned missing = 0;

    *report->weaker = '\0';
    report->usable = true;
    for (int tier = ISOLATION_FULL; tier >= ISOLATION_MINIMAL; tier--) {
        unsigned lacking = (needs(tier) | everywhere) & ~working;
        if (lacking == 0) {
            report->tier = tier;
            break;
        }
        /* Control groups are no reason where namespaces are missing. */
        if (tier != ISOLATION_FULL || !(lacking & in_namespaces))
            missing |= lacking;
        report->usable = tier > ISOLATION_MINIMAL;
    }
    /* Where there is no user namespace, nothing inside of it was tried. */
    if (missing & ROW(PROBE_USER_NAMESPACE))
        missing &= ~in_namespaces | ROW(PROBE_USER_NAMESPACE);
    mark(report, missing);
    tell(report, missing);
}
