/* SPDX-License-Identifier: MIT */
#include "executor/control.h"

#include <sched.h>

const struct namespace_kind namespace_kinds[NAMESPACE_COUNT] = {
    [NAMESPACE_USER] = {"self/ns/user", CLONE_NEWUSER},
    [NAMESPACE_PID] = {"self/ns/pid", CLONE_NEWPID},
    [NAMESPACE_MOUNT] = {"self/ns/mnt", CLONE_NEWNS},
    [NAMESPACE_NETWORK] = {"self/ns/net", CLONE_NEWNET},
    [NAMESPACE_IPC] = {"self/ns/ipc", CLONE_NEWIPC},
    [NAMESPACE_UTS] = {"self/ns/uts", CLONE_NEWUTS},
    [NAMESPACE_CGROUP] = {"self/ns/cgroup", CLONE_NEWCGROUP},
};
