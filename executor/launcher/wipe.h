/* SPDX-License-Identifier: MIT */
/*
 * Emptying folders in a child, which is the user that wrote them: what is there is
 * hostile, and root would follow it further. The child can be ended when it takes too
 * long.
 */
#ifndef VIV_WIPE_H
#define VIV_WIPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

#define WIPE_LIMIT_MS 30000

/* Who the child becomes. It acts on files as `owner`, with the group of that number, and
 * sends signals as both: nobody who is only the owner can stop or end it. */
struct wipe_user {
    uid_t owner;
    uid_t guard; /* the owner again, or another user whom the owner cannot be */
    bool kill;   /* first of all kill every process of both */
};

/*
 * Empties the folders `paths` below the folder `parent`, which may be open as O_PATH. The
 * folders above each are none that the user can write; the last part of a path is no link
 * and belongs to the user: one of another owner is passed over, like one that is not
 * there. Without a `user` (NULL) the child stays who it is and kills nobody.
 *
 * Fails after `limit_ms`; what is left then is for another attempt. With a user, as root.
 * Reaps all children of the process that have ended: one that was ended at its limit may
 * take its time.
 */
int wipe_folders(int parent, const char *const *paths, size_t count,
                 const struct wipe_user *user, int64_t limit_ms, struct viv_error *err);

#endif
