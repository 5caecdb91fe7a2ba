/* SPDX-License-Identifier: MIT */
/* The file systems that a session can write to: its own, in memory, gone with it. */
#ifndef VIV_SESSION_MOUNTS_H
#define VIV_SESSION_MOUNTS_H

#include <stdint.h>

#include "common/error.h"

struct session_mounts {
    uint64_t disk;   /* bytes of /home/earth */
    uint64_t inodes; /* of /home/earth */
};

/* The mount points, for those who look at the file systems. */
#define SESSION_MOUNT_COUNT 3
extern const char *const session_mount_points[SESSION_MOUNT_COUNT];

/* Mounts /home/earth, /tmp (a quarter of its size) and /dev/shm. For a process in the
 * session's mount and user namespace, as the session's user. */
int session_mounts_make(const struct session_mounts *sizes, struct viv_error *err);

/* Bytes of the host's memory that the files of a session take, open or not. `mounts` are
 * descriptors of the mount points. */
uint64_t session_mounts_used(const int mounts[SESSION_MOUNT_COUNT]);

#endif
