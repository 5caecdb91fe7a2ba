/* SPDX-License-Identifier: MIT */
/*
 * The attempts that probe.h makes, one for each control. Each changes the calling
 * process, which has one thread and is thrown away, and looks whether the change is
 * there. A control that the kernel does not have fails with VIV_NOT_FOUND.
 */
#ifndef VIV_PROBE_ATTEMPTS_H
#define VIV_PROBE_ATTEMPTS_H

#include "common/error.h"
#include "common/settings.h"

typedef int probe_attempt(const struct settings *settings, struct viv_error *err);

/* In a user namespace that is mapped (probe_namespaces.c). */
probe_attempt attempt_user_namespace, attempt_mount_namespace, attempt_pid_namespace,
    attempt_network_namespace, attempt_ipc_namespace, attempt_uts_namespace,
    attempt_cgroup_namespace, attempt_tmpfs, attempt_read_only_bind, attempt_root_change;

/* As the process that was started (probe_confinement.c). */
probe_attempt attempt_capabilities, attempt_chroot, attempt_change_of_user,
    attempt_bounding_set, attempt_slot_directory, attempt_slot_programs, attempt_landlock,
    attempt_no_new_privs, attempt_not_dumpable, attempt_resource_limits, attempt_seccomp,
    attempt_oom_score;

/* The same (probe_checkpoints.c). */
probe_attempt attempt_checkpoints;

#endif
