/* SPDX-License-Identifier: MIT */
/*
 * The folders that a session may write to, and how much is in them. With namespaces they
 * are file systems of its own in memory, whose size the kernel bounds. In a slot they are
 * folders on the host's disk, which nothing bounds but a look from time to time.
 */
#ifndef VIV_SESSION_FOLDERS_H
#define VIV_SESSION_FOLDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "executor/isolation.h"

enum {
    SESSION_HOME_FOLDER,
    SESSION_TMP_FOLDER,
    SESSION_SHM_FOLDER,
    SESSION_FOLDER_COUNT
};

/* Mounts them, for a process in the session's namespaces: a home with that size in bytes
 * and so many inodes, a /tmp with a quarter of it, a small /dev/shm. */
int session_folders_mount(uint64_t disk, uint64_t inodes, struct viv_error *err);

/* Opens them, in the session's root, or in ISOLATION_MINIMAL in the slot's folder, which
 * is the current one then. The home becomes the current folder. */
int session_folders_open(int folders[SESSION_FOLDER_COUNT], enum isolation_tier tier,
                         struct viv_error *err);

struct session_use {
    uint64_t bytes; /* as the disk or the memory holds them */
    uint64_t inodes;
};

/* What is in them. Where they are mounts, the kernel is asked; otherwise all names are
 * looked at, as many as `most_inodes`, and one more means more than these, or that there
 * are some that cannot be looked at. Folders that their owner may not read are changed so
 * that he may. */
struct session_use session_folders_use(const int folders[SESSION_FOLDER_COUNT],
                                       enum isolation_tier tier, uint64_t most_inodes);

#endif
