/* SPDX-License-Identifier: MIT */
#include "executor/zygote/self_test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"

static int has_no_capability(struct viv_error *err) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {0};

    if (syscall(SYS_capget, &header, sets))
        return viv_fail(err, VIV_SYSTEM, "self-test: capget: %m");
    for (int i = 0; i < 2; i++)
        if (sets[i].effective || sets[i].permitted || sets[i].inheritable)
            return viv_fail(err, VIV_SYSTEM, "self-test: a capability is left");
    return 0;
}

/* Each of these fails with EPERM by the filter; without it with another error or not. */
static int has_filter(struct viv_error *err) {
    if (prctl(PR_GET_SECCOMP) >= 0 || errno != EPERM)
        return viv_fail(err, VIV_SYSTEM, "self-test: seccomp is not on");
    CLEANUP(close_fd) int inet = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (inet >= 0 || errno != EPERM)
        return viv_fail(err, VIV_SYSTEM, "self-test: a socket can be made");
    if (unshare(0) == 0 || errno != EPERM)
        return viv_fail(err, VIV_SYSTEM, "self-test: unshare(2) is possible");
    if (syscall(SYS_execve, "", NULL, NULL) == 0 || errno != EPERM)
        return viv_fail(err, VIV_SYSTEM, "self-test: execve(2) is possible");
    return 0;
}

static int cannot_open(const char *path, int flags, struct viv_error *err) {
    CLEANUP(close_fd) int fd = open(path, flags | O_CLOEXEC, 0600);

    return fd < 0 ? 0 : viv_fail(err, VIV_SYSTEM, "self-test: %s can be opened", path);
}

static int has_own_root(struct viv_error *err) {
    struct stat status;

    if (getuid() == 0 || geteuid() == 0)
        return viv_fail(err, VIV_SYSTEM, "self-test: the user is root");
    if (stat("/usr/bin", &status) == 0)
        return viv_fail(err, VIV_SYSTEM, "self-test: the host's /usr/bin is there");
    if (cannot_open("/self-test", O_WRONLY | O_CREAT, err) ||
        cannot_open("/etc/passwd", O_WRONLY, err))
        return -1;
    return cannot_open("/proc/self/status", O_RDONLY, err);
}

static int is_held_by_landlock(struct viv_error *err) {
    if (cannot_open("/", O_RDONLY | O_DIRECTORY, err) ||
        cannot_open("/etc/passwd", O_RDONLY, err) ||
        cannot_open("/proc/self/status", O_RDONLY, err))
        return -1;
    return cannot_open("../self-test", O_WRONLY | O_CREAT, err);
}

int self_test(enum isolation_tier tier, struct viv_error *err) {
    if (has_no_capability(err) || has_filter(err))
        return -1;
    return tier == ISOLATION_MINIMAL ? is_held_by_landlock(err) : has_own_root(err);
}
