/* SPDX-License-Identifier: MIT */
/* Attempts in a user namespace of one's own. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/launcher/probe_attempts.h"

/* Where the new root of sessions is built, too. */
#define PLACE  "/tmp"
#define SOURCE "/usr"
#define INODES 64

int attempt_user_namespace(const struct settings *settings, struct viv_error *err) {
    (void)settings;
    /* One that has no map gives the overflow id for every user. */
    if (getuid() == 65534)
        return viv_fail(err, VIV_SYSTEM, "the namespace has no users");
    return 0;
}

static int make_namespace(int kind, struct viv_error *err) {
    return unshare(kind) ? viv_fail(err, VIV_SYSTEM, "unshare: %m") : 0;
}

int attempt_mount_namespace(const struct settings *settings, struct viv_error *err) {
    (void)settings;
    return make_namespace(CLONE_NEWNS, err);
}

int attempt_pid_namespace(const struct settings *settings, struct viv_error *err) {
    int status = -1;

    (void)settings;
    if (make_namespace(CLONE_NEWPID, err))
        return -1;
    /* Only children are in it: pid_namespaces(7). */
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(getpid() == 1 ? 0 : 1);
    }
    if (child < 0)
        return viv_fail(err, VIV_SYSTEM, "fork: %m");
    if (waitpid(child, &status, 0) != child || status != 0)
        return viv_fail(err, VIV_SYSTEM, "the first process has not the number 1");
    return 0;
}

int attempt_network_namespace(const struct settings *settings, struct viv_error *err) {
    (void)settings;
    return make_namespace(CLONE_NEWNET, err);
}

int attempt_ipc_namespace(const struct settings *settings, struct viv_error *err) {
    (void)settings;
    return make_namespace(CLONE_NEWIPC, err);
}

int attempt_uts_namespace(const struct settings *settings, struct viv_error *err) {
    (void)settings;
    return make_namespace(CLONE_NEWUTS, err);
}

int attempt_cgroup_namespace(const struct settings *settings, struct viv_error *err) {
    (void)settings;
    return make_namespace(CLONE_NEWCGROUP, err);
}

/* An empty file system of INODES inodes at PLACE, which only this process sees. */
static int mount_tmpfs(struct viv_error *err) {
    if (make_namespace(CLONE_NEWNS, err))
        return -1;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return viv_fail(err, VIV_SYSTEM, "make mounts private: %m");
    if (mount("probe", PLACE, "tmpfs", MS_NOSUID | MS_NODEV, "size=1m,nr_inodes=64"))
        return viv_fail(err, VIV_SYSTEM, "mount a tmpfs: %m");
    return 0;
}

int attempt_tmpfs(const struct settings *settings, struct viv_error *err) {
    struct statfs status;

    (void)settings;
    if (mount_tmpfs(err))
        return -1;
    if (statfs(PLACE, &status) || status.f_files != INODES ||
        (unsigned long)status.f_blocks * (unsigned long)status.f_bsize != 1UL << 20)
        return viv_fail(err, VIV_SYSTEM, "the limits of the tmpfs are not kept");
    return 0;
}

int attempt_read_only_bind(const struct settings *settings, struct viv_error *err) {
    struct mount_attr attributes = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
                                                MOUNT_ATTR_NODEV};
    struct statvfs status;

    (void)settings;
    if (mount_tmpfs(err))
        return -1;
    if (mkdir(PLACE "/bind", 0700) || mount(SOURCE, PLACE "/bind", NULL, MS_BIND, NULL))
        return viv_fail(err, VIV_SYSTEM, "bind " SOURCE ": %m");
    if (mount_setattr(AT_FDCWD, PLACE "/bind", 0, &attributes, sizeof attributes))
        return viv_fail(err, VIV_SYSTEM, "mount_setattr: %m");
    if (statvfs(PLACE "/bind", &status) || !(status.f_flag & ST_RDONLY))
        return viv_fail(err, VIV_SYSTEM, "the mount is not read-only");
    return 0;
}

int attempt_root_change(const struct settings *settings, struct viv_error *err) {
    (void)settings;
    if (mount_tmpfs(err))
        return -1;
    if (chdir(PLACE))
        return viv_fail(err, VIV_SYSTEM, "chdir: %m");
    if (syscall(SYS_pivot_root, ".", ".") == 0) {
        if (umount2(".", MNT_DETACH) || chdir("/"))
            return viv_fail(err, VIV_SYSTEM, "umount2 of the old root: %m");
    } else if (mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/")) {
        return viv_fail(err, VIV_SYSTEM, "pivot_root, and MS_MOVE with chroot: %m");
    }
    if (access(SOURCE, F_OK) == 0)
        return viv_fail(err, VIV_SYSTEM, "the old root is still there");
    return 0;
}
