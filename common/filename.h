/* SPDX-License-Identifier: MIT */
/*
 * Names of files of a session, relative to its working directory: the same rules for
 * those that a client sends and for those that come out of a sandbox. Knows no file
 * system: what a name stands for there is decided beneath the working directory, by
 * descriptor. Any thread.
 *
 * A name is 1 to 8 components divided by "/", each 1 to 255 bytes (NAME_MAX of
 * path_resolution(7) file systems), in UTF-8. Refused: an absolute or empty name, an
 * empty component, "." and "..", a backslash, and control characters (Unicode's Cc: C0,
 * DEL and C1, so NUL too).
 */
#ifndef VIV_FILENAME_H
#define VIV_FILENAME_H

#include <stdbool.h>

#include "common/bytes.h"

#define FILENAME_COMPONENT_MAX 255
#define FILENAME_DEPTH_MAX     8

/* NULL when the name is allowed; otherwise why not, in words that fit behind "name: ". */
const char *filename_refusal(struct slice name);

/* Whether `folder` is a folder on the way to `name`: "a/b" is one of "a/b/c", not of
 * "a/bc". */
bool filename_is_folder_of(struct slice folder, struct slice name);

#endif
