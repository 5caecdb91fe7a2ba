/* SPDX-License-Identifier: MIT */
/*
 * The same tree of files at a second place: folders are made, regular files and symbolic
 * links get a second name; where the file system allows none, a copy with the same time
 * of modification. For trees that no hostile process can change.
 */
#ifndef VIV_LINK_TREE_H
#define VIV_LINK_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct link_tree {
    /* The rules for files of the host: passes over what not everybody may read, what more
     * than its owner may write, programs that change the user, and folders that would be
     * empty. Without it everything is taken. */
    bool host;
    bool libraries;            /* of a folder: only names with ".so" in them */
    const char *const *hidden; /* paths that are passed over, absolute ones */
    size_t hidden_count;
    bool copied; /* set when something was copied */
};

/*
 * Shows what `path` is (absolute, but relative to the folder `from`) at the same path
 * below the folder `to`, with the folders above it. A path that is not there is no
 * failure. The modes of new folders are 0755 without the umask. Where a folder is there
 * already, what it lacks is added to it.
 */
int link_tree_show(struct link_tree *tree, int from, const char *path, int to,
                   struct viv_error *err);

#endif
