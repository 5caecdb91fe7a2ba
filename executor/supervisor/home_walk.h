/* SPDX-License-Identifier: MIT */
/*
 * The regular files of a session's home, found by descriptor: never through a link, never
 * by a path from outside, iteratively, in bounded depth. What a session can leave there
 * is hostile: names of any bytes, deep trees, FIFOs, files that change while they are
 * looked at.
 *
 * Passed over: symbolic links, FIFOs, sockets, devices, `__pycache__`, names that begin
 * with a dot. For the supervisor; one thread.
 */
#ifndef VIV_HOME_WALK_H
#define VIV_HOME_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "common/error.h"

#define HOME_DEPTH_MAX 64 /* folders above a file */

struct home_entry {
    const char *path; /* relative to the home; borrowed during the call */
    const struct stat *status;
    int folder;       /* that holds it */
    const char *name; /* in that folder */
    bool too_deep;    /* a folder that was not entered for its depth or long path */
};

/* Calls `each` for every entry; a return other than 0 ends the walk and is its
 * result. The work is bounded by the number of inodes, also where code moves folders
 * meanwhile. */
int home_walk(int home, int (*each)(const struct home_entry *entry, void *context),
              void *context);

/* What was there before a call: enough to tell a file that is new or changed. */
struct home_mark {
    uint64_t path_hash;
    uint64_t inode;
    uint64_t size;
    int64_t changed; /* nanoseconds: of the inode, which no code in the session can set */
    int64_t modified;
};

struct home_snapshot {
    struct home_mark *marks; /* sorted by path_hash */
    size_t count;
};

/* Takes a snapshot. The time stamps of a file system are coarse: a file that was
 * written in this very tick gets a modification time that is a nanosecond older, so
 * that a later write within the same tick still differs. */
int home_snapshot_take(struct home_snapshot *snapshot, int home, struct viv_error *err);

/* Whether the file is in the snapshot as it is now. */
bool home_snapshot_has(const struct home_snapshot *snapshot,
                       const struct home_entry *entry);

void home_snapshot_clear(struct home_snapshot *snapshot);

#endif
