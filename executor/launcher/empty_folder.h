/* SPDX-License-Identifier: MIT */
/*
 * Removal of everything below a folder, as its owner may have left it: deep trees,
 * folders without any permission, links to elsewhere, names of any bytes, and files that
 * appear meanwhile.
 */
#ifndef VIV_EMPTY_FOLDER_H
#define VIV_EMPTY_FOLDER_H

#include "common/error.h"

/*
 * Removes everything below `folder`, a descriptor that was opened for reading and stays
 * the caller's. Follows no link and leaves the folder by no way; holds two descriptors
 * more at any depth. For the user who owns what is there.
 *
 * Fails when something cannot be removed, and when files keep appearing or folders are
 * moved away again and again. Who lets others write there meanwhile also limits the time.
 * No message names a file.
 */
int empty_folder(int folder, struct viv_error *err);

#endif
