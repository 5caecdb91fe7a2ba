/* SPDX-License-Identifier: MIT */
/*
 * The folders of the slots as the janitor keeps them: which there are, whose they are,
 * and what is done to one before a session gets it. For the janitor's process alone,
 * which has the umask 0.
 */
#ifndef VIV_SLOT_FOLDERS_H
#define VIV_SLOT_FOLDERS_H

#include <stdint.h>

#include "common/error.h"
#include "common/settings.h"
#include "executor/isolation.h"

struct slot_folders {
    const struct settings *settings;
    enum isolation_tier tier; /* confined or minimal */
    int slots;                /* slot_directory, open for reading */
};

/* Makes the folder `path` of all slots, and the one that it is in, where they are not
 * there. Returns -1 with errno. */
int slot_folders_make(const char *path);

/* Removes what an earlier executor left: in `confined` trees that were made from other
 * packages, in `minimal` all folders of sessions. */
int slot_folders_start(struct slot_folders *folders, struct viv_error *err);

/* In `confined`: makes the trees of all slots and of the zygote, as far as they are not
 * there, without what is made for each session. */
int slot_folders_make_ahead(const struct slot_folders *folders, struct viv_error *err);

/* Prepares a slot, or the zygote's folder, as janitor.h says. Returns the folder's
 * descriptor, which is the caller's, or -1. */
int slot_folders_prepare(struct slot_folders *folders, uint32_t slot,
                         struct viv_error *err);

/* When nothing of a session runs any more: removes what sessions have left, all that can
 * be removed. */
int slot_folders_end(const struct slot_folders *folders, struct viv_error *err);

#endif
