/* SPDX-License-Identifier: MIT */
#include "executor/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "executor/control.h"

#define OPEN_FILES      256
#define STACK_SIZE      (8U << 20)
#define PENDING_SIGNALS 64

int confine_become_user(uid_t own, uid_t acting, struct viv_error *err) {
    uid_t real, effective, saved;

    /* Groups, then the group, then the user: after it the right to change groups is gone
     * in every other order. The keeper of a root executor has dropped its groups; an
     * ordinary user's namespace has setgroups denied, and its launcher's groups then mean
     * nothing inside: user_namespaces(7). */
    if (setresgid(acting, acting, acting))
        return viv_fail(err, VIV_SYSTEM, "setresgid: %m");
    if (setresuid(own, acting, own))
        return viv_fail(err, VIV_SYSTEM, "setresuid: %m");
    if (getresuid(&real, &effective, &saved) || real != own || effective != acting ||
        saved != own)
        return viv_fail(err, VIV_SYSTEM, "the user did not change");
    return 0;
}

int confine_root(int folder, struct viv_error *err) {
    if (fchdir(folder) || chroot(".") || chdir("/"))
        return viv_fail(err, VIV_SYSTEM, "change the root: %m");
    return 0;
}

static int drop_bounding_set(uint64_t kept, struct viv_error *err) {
    /* Up to the first capability that the kernel does not know. */
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++) {
        if (kept >> capability & 1)
            continue;
        if (prctl(PR_CAPBSET_DROP, capability))
            return viv_fail(err, VIV_SYSTEM, "drop capability %d: %m", capability);
    }
    return 0;
}

int confine_to_capabilities(uint64_t kept, struct viv_error *err) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {0};

    for (int i = 0; i < 2; i++)
        sets[i].effective = sets[i].permitted = (uint32_t)(kept >> (32 * i));
    if (syscall(SYS_capset, &header, sets))
        return viv_fail(err, VIV_SYSTEM, "capset: %m");
    return 0;
}

uint64_t confine_held_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {0};

    if (syscall(SYS_capget, &header, sets))
        return 0;
    return (uint64_t)sets[1].permitted << 32 | sets[0].permitted;
}

int confine_capabilities(uint64_t kept, struct viv_error *err) {
    const unsigned long secure = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
                                 SECBIT_NO_SETUID_FIXUP | SECBIT_NO_SETUID_FIXUP_LOCKED |
                                 SECBIT_KEEP_CAPS_LOCKED | SECBIT_NO_CAP_AMBIENT_RAISE |
                                 SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;

    /* The bounding set and the secure bits both need CAP_SETPCAP: before capset(2). */
    if (drop_bounding_set(kept, err))
        return -1;
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0))
        return viv_fail(err, VIV_SYSTEM, "clear ambient capabilities: %m");
    if (prctl(PR_SET_SECUREBITS, secure))
        return viv_fail(err, VIV_SYSTEM, "set secure bits: %m");
    return confine_to_capabilities(kept, err);
}

int confine_privileges(struct viv_error *err) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return viv_fail(err, VIV_SYSTEM, "set no_new_privs: %m");
    if (prctl(PR_SET_DUMPABLE, 0) || prctl(PR_GET_DUMPABLE) != 0)
        return viv_fail(err, VIV_SYSTEM, "set not dumpable: %m");
    return 0;
}

int confine_resources(uint64_t address_space, uint64_t file_size, uint64_t threads,
                      struct viv_error *err) {
    const struct {
        __rlimit_resource_t resource;
        rlim_t limit;
    } limits[] = {
        {RLIMIT_AS, CONFINE_LIMITS_ADDRESS_SPACE ? address_space : RLIM_INFINITY},
        {RLIMIT_FSIZE, file_size},
        {RLIMIT_NPROC, threads},
        {RLIMIT_NOFILE, OPEN_FILES},
        {RLIMIT_STACK, STACK_SIZE},
        {RLIMIT_SIGPENDING, PENDING_SIGNALS},
        {RLIMIT_CORE, 0},
        {RLIMIT_MEMLOCK, 0},
        {RLIMIT_MSGQUEUE, 0},
        {RLIMIT_NICE, 0},
        {RLIMIT_RTPRIO, 0},
    };

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit now;
        if (getrlimit(limits[i].resource, &now))
            return viv_fail(err, VIV_SYSTEM, "getrlimit %d: %m", (int)limits[i].resource);
        /* A limit of the host below ours stands. */
        rlim_t value = limits[i].limit < now.rlim_max ? limits[i].limit : now.rlim_max;
        struct rlimit wanted = {.rlim_cur = value, .rlim_max = value};
        if (setrlimit(limits[i].resource, &wanted))
            return viv_fail(err, VIV_SYSTEM, "setrlimit %d: %m", (int)limits[i].resource);
    }
    return 0;
}

int confine_descriptors(unsigned first, struct viv_error *err) {
    if (close_range(first, ~0U, 0) == 0)
        return 0;
    if (errno != ENOSYS)
        return viv_fail(err, VIV_SYSTEM, "close_range: %m");
    /* Linux before 5.9. */
    for (long fd = (long)first, end = sysconf(_SC_OPEN_MAX); fd < end; fd++)
        close((int)fd);
    return 0;
}
