/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/session_mounts.h"

#include <stdio.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include "executor/control.h"

#define TMP_INODES 1024
#define SHM_SIZE   (1U << 20)
#define SHM_INODES 64

const char *const session_mount_points[SESSION_MOUNT_COUNT] = {SESSION_HOME, "/tmp",
                                                               "/dev/shm"};

static int mount_own(const char *path, uint64_t size, uint64_t inodes,
                     struct viv_error *err) {
    char options[128];

    snprintf(options, sizeof options, "size=%llu,nr_inodes=%llu,mode=0700,uid=%d,gid=%d",
             (unsigned long long)size, (unsigned long long)inodes, SESSION_UID,
             SESSION_GID);
    if (mount("session", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options))
        return viv_fail(err, VIV_SYSTEM, "mount %s: %m", path);
    return 0;
}

int session_mounts_make(const struct session_mounts *sizes, struct viv_error *err) {
    if (mount_own(SESSION_HOME, sizes->disk, sizes->inodes, err) ||
        mount_own("/tmp", sizes->disk / 4, TMP_INODES, err) ||
        /* Without it multiprocessing.pool.ThreadPool does not start. */
        mount_own("/dev/shm", SHM_SIZE, SHM_INODES, err))
        return -1;
    return 0;
}

uint64_t session_mounts_used(const int mounts[SESSION_MOUNT_COUNT]) {
    struct statvfs status;
    uint64_t used = 0;

    for (int i = 0; i < SESSION_MOUNT_COUNT; i++)
        if (fstatvfs(mounts[i], &status) == 0)
            used += (status.f_blocks - status.f_bfree) * status.f_frsize;
    return used;
}
