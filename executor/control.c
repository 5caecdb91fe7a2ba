/* SPDX-License-Identifier: MIT */
#include "executor/control.h"

#include <linux/capability.h>
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

size_t spawn_fd_count(enum isolation_tier tier) {
    return isolation_has_namespaces(tier) ? SPAWN_CGROUP : SPAWN_FOLDER + 1;
}

#define BIT(capability) (UINT64_C(1) << (capability))

uint64_t zygote_capabilities(enum isolation_tier tier) {
    if (isolation_has_namespaces(tier))
        return BIT(CAP_SYS_ADMIN);
    if (tier == ISOLATION_CONFINED)
        return BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SYS_CHROOT) | BIT(CAP_SETPCAP);
    return 0;
}
