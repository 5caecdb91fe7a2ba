/* SPDX-License-Identifier: MIT */
/*
 * The root filesystems of the slots in the tier `confined`, which has no mounts: one tree
 * of folders for each slot, with the host's own files in it by hard link. All of it
 * belongs to root and none of it can be written, but for five devices; what a session
 * may write is the janitor's.
 *
 * `slots` is a descriptor of the setting slot_directory. Beside the trees it has:
 *
 *     base      what all trees have in common. Where the host's files are on another file
 *               system, they are copied into it, once
 *     made-for  what the trees were made from: a later version of the host's packages, or
 *               of ours, makes them anew
 *
 * A tree or base that is there is whole: it is made as NAME.new. For one process at a
 * time, as root, of one thread; changes its umask meanwhile.
 */
#ifndef VIV_SLOT_TREE_H
#define VIV_SLOT_TREE_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/error.h"

/* The folders of a tree that a session may write, relative to the tree. */
#define SLOT_TREE_WRITABLE 3
extern const char *const slot_tree_writable[SLOT_TREE_WRITABLE];

/* Makes the tree `name` if it is not there, and the devices in it that may be made and
 * are not there: those of a tree that came with an image. */
int slot_tree_make(int slots, const char *name, struct viv_error *err);

/* The same without the devices: for a tree that is to be part of an image, which an
 * engine without privilege could not unpack with devices in it. */
int slot_tree_make_ahead(int slots, const char *name, struct viv_error *err);

/* Gives the session's user in the tree its number, which is the one of its group, too. */
int slot_tree_set_user(int slots, const char *name, uid_t uid, struct viv_error *err);

/* Whether the trees were made from something else than the host has now. Trees without
 * made-for, which an image may bring along, are taken as they are. */
bool slot_trees_are_outdated(int slots);

/* Notes that trees made from now on are made from what the host has now: for when there
 * are none of another version left. */
int slot_trees_note(int slots, struct viv_error *err);

/* Removes the tree `name`, or base. Its writable folders must be empty. One that is not
 * there is no failure. */
int slot_tree_remove(int slots, const char *name, struct viv_error *err);

#endif
