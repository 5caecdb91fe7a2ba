/* SPDX-License-Identifier: MIT */
/*
 * Watches what a session has on the host's disk, where no quota of the kernel bounds it:
 * four times a second while code runs, seldom between calls. Code can be faster than
 * that, by what the disk takes in between.
 */
#ifndef VIV_DISK_WATCH_H
#define VIV_DISK_WATCH_H

#include "executor/supervisor/supervisor_setup.h"

struct disk_watch {
    const struct supervisor_descriptors *own;
    uint64_t most_bytes, most_inodes;
    struct session_use accepted; /* beyond these: from before the last stop */
    viv_time look_at;            /* VIV_TIME_NEVER where the kernel bounds the use */
};

enum disk_verdict {
    DISK_HAS_ROOM,
    DISK_FULL,         /* beyond the limit, and more than at the last stop */
    DISK_FAR_TOO_FULL, /* twice the limit: one stop after the other does not help */
};

/* *own must outlive *watch. */
void disk_watch_init(struct disk_watch *watch, const struct supervisor_descriptors *own,
                     const struct settings *settings);

/* Whether the session is within its limits; true where the kernel sees to that. */
bool disk_watch_has_room(const struct disk_watch *watch);

/* Code begins to run. */
void disk_watch_begin(struct disk_watch *watch);

/* To be called at `look_at`, which it sets anew. */
enum disk_verdict disk_watch_look(struct disk_watch *watch, bool running);

/* What the session's files take now. */
uint64_t disk_watch_bytes(const struct disk_watch *watch);

#endif
