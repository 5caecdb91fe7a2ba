/* SPDX-License-Identifier: MIT */
/*
 * What a session's root filesystem shows, for those who make one: of mounts
 * (template_root.h) or of links (slot_tree.h). All paths are absolute ones of the host
 * and of the new root. Lists of constants.
 */
#ifndef VIV_SESSION_ROOT_H
#define VIV_SESSION_ROOT_H

#include <stdbool.h>
#include <stddef.h>

/* A file or folder of the host, shown where it exists; a link is made again as a link. */
struct session_root_shown {
    const char *path;
    bool libraries; /* of a folder no more is needed than its shared objects */
};

/* What does not exist on the host, or says too much about it. */
struct session_root_file {
    const char *path;
    const char *content;
};

struct session_root_link {
    const char *path;
    const char *target;
};

/* A character device; all of them have the major number 1, which no host changes. */
struct session_root_device {
    const char *name; /* in /dev */
    unsigned minor;
};

#define SESSION_ROOT_DEVICE_MAJOR 1

#define SESSION_ROOT_SHOWN       16
#define SESSION_ROOT_HIDDEN      10
#define SESSION_ROOT_DIRECTORIES 10
#define SESSION_ROOT_FILES       4
#define SESSION_ROOT_LINKS       1
#define SESSION_ROOT_DEVICES     5

extern const struct session_root_shown session_root_shown[SESSION_ROOT_SHOWN];

/* What is hidden again of what is shown: installers, tools, tests. */
extern const char *const session_root_hidden[SESSION_ROOT_HIDDEN];

/* Folders that are there in any case, each after the one that it is in. */
extern const char *const session_root_directories[SESSION_ROOT_DIRECTORIES];

extern const struct session_root_file session_root_files[SESSION_ROOT_FILES];
extern const struct session_root_link session_root_links[SESSION_ROOT_LINKS];
extern const struct session_root_device session_root_devices[SESSION_ROOT_DEVICES];

#endif
