/* SPDX-License-Identifier: MIT */
#include "executor/launcher/user_namespace.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "executor/confine.h"
#include "executor/control.h"

static int write_below(int directory, const char *path, const char *text,
                       struct viv_error *err) {
    CLEANUP(close_fd) int fd = openat(directory, path, O_WRONLY | O_CLOEXEC);
    size_t size = strlen(text);

    if (fd < 0)
        return viv_fail(err, VIV_SYSTEM, "open /proc/%s: %m", path);
    /* A map is one write: user_namespaces(7). */
    if (write(fd, text, size) != (ssize_t)size)
        return viv_fail(err, VIV_SYSTEM, "write /proc/%s: %m", path);
    return 0;
}

static int write_maps(int proc, pid_t pid, const char *uid_map, const char *gid_map,
                      bool deny_setgroups, struct viv_error *err) {
    char path[64];

    /* Without privilege over the parent's groups, setgroups(2) must be denied before the
     * map of groups may be written: user_namespaces(7). */
    if (deny_setgroups) {
        snprintf(path, sizeof path, "%d/setgroups", (int)pid);
        if (write_below(proc, path, "deny", err))
            return -1;
    }
    snprintf(path, sizeof path, "%d/gid_map", (int)pid);
    if (write_below(proc, path, gid_map, err))
        return -1;
    snprintf(path, sizeof path, "%d/uid_map", (int)pid);
    return write_below(proc, path, uid_map, err);
}

int user_namespace_enter_outer(int parent, bool ordinary, struct viv_error *err) {
    char byte = 0;
    size_t fd_count;

    if (unshare(CLONE_NEWUSER))
        return viv_fail(err, VIV_SYSTEM, "unshare a user namespace: %m");
    if (io_send_message(parent, &byte, 1, NULL, 0, err) ||
        io_receive_message(parent, &byte, 1, NULL, 0, &fd_count, err) != 1)
        return viv_fail(err, VIV_SYSTEM, "the user namespace was not mapped");
    return ordinary ? 0 : confine_become_user(0, 0, err);
}

int user_namespace_map_outer(pid_t pid, uint64_t uid_base, struct viv_error *err) {
    CLEANUP(close_fd) int proc = open("/proc", O_DIRECTORY | O_PATH | O_CLOEXEC);
    char uid_map[64], gid_map[64];

    if (proc < 0)
        return viv_fail(err, VIV_SYSTEM, "open /proc: %m");
    if (geteuid() == 0) {
        snprintf(uid_map, sizeof uid_map, "0 %llu %u\n", (unsigned long long)uid_base,
                 OUTER_IDS);
        return write_maps(proc, pid, uid_map, uid_map, false, err);
    }
    snprintf(uid_map, sizeof uid_map, "%u %u 1\n", ORDINARY_ID, (unsigned)geteuid());
    snprintf(gid_map, sizeof gid_map, "%u %u 1\n", ORDINARY_ID, (unsigned)getegid());
    return write_maps(proc, pid, uid_map, gid_map, true, err);
}

int user_namespace_map_session(int proc, pid_t pid, uint32_t outer_id, bool ordinary,
                               struct viv_error *err) {
    char map[64];

    snprintf(map, sizeof map, "%d %u 1\n", SESSION_UID, outer_id);
    return write_maps(proc, pid, map, map, ordinary, err);
}
