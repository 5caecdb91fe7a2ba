/* SPDX-License-Identifier: MIT */
/*
 * The files and directories of one cgroup (version 2), given by a descriptor of its
 * directory: cgroups(7). Knows no layout and no limits. What is here fails as a system
 * call does, with -1 and errno: callers differ in what a failure means to them.
 */
#ifndef VIV_CGROUP_FILES_H
#define VIV_CGROUP_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "common/clock.h"

/* Writes `text` to a file of the group; creates none. */
int cgroup_write(int group, const char *file, const char *text);

/* Reads the beginning of a file of the group as a text. */
int cgroup_read(int group, const char *file, char *text, size_t size);

/* Whether `word` is one of a list such as cgroup.controllers. */
bool cgroup_list_has(const char *list, const char *word);

/* The root of the whole hierarchy: the only one that may have processes and give
 * controllers to its children. */
bool cgroup_is_root(int group);

/* Whether a process is in the group itself, those of its children aside. */
bool cgroup_has_processes(int group);

/* Makes a group, or takes the one that is there, whose mode becomes `mode` whatever the
 * umask; returns a descriptor of its directory. */
int cgroup_make(int parent, const char *name, mode_t mode);

/* Calls `each` for the groups below this one until it returns something else than 0,
 * which is then the result. */
int cgroup_each_child(int group, int (*each)(int group, const char *name, void *context),
                      void *context);

/* Removes a group with all groups below it. Processes that are about to end hold them
 * for a while: tries until the deadline. One that is not there is a success. */
int cgroup_remove(int parent, const char *name, viv_time deadline);

#endif
