/* SPDX-License-Identifier: MIT */
#include "executor/launcher/cgroup_find.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"

/* One line of mountinfo, cut into what counts here. */
struct mount {
    const char *root;  /* the cgroup that is mounted */
    const char *point; /* where */
    bool writable;
};

/* Space, tab, newline and backslash are octal numbers there: proc(5). */
static void unescape(char *text) {
    char *to = text;

    for (const char *from = text; *from; from++) {
        bool escaped = from[0] == '\\' && from[1] && from[2] && from[3];
        *to++ =
            escaped
                ? (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 | (from[3] - '0'))
                : *from;
        if (escaped)
            from += 3;
    }
    *to = '\0';
}

/* Cuts a line of mountinfo up; false when it is no mount of cgroup version 2. */
static bool parse_mount(char *line, struct mount *mount) {
    /* The type stands behind a variable number of fields and a separator. */
    char *type = strstr(line, " - ");

    if (!type || strncmp(type, " - cgroup2 ", strlen(" - cgroup2 ")) != 0)
        return false;
    *type = '\0';
    for (int skipped = 0; skipped < 3; skipped++) /* two numbers, a device */
        strsep(&line, " ");
    char *root = strsep(&line, " "), *point = strsep(&line, " ");
    const char *options = strsep(&line, " ");
    if (!options)
        return false;
    unescape(root);
    unescape(point);
    bool writable = strncmp(options, "rw", 2) == 0;
    *mount = (struct mount){root, point, writable};
    return true;
}

/* The end of `path` below `root`, which begins with a slash or is empty; NULL when it is
 * elsewhere. */
static const char *path_below(const char *root, const char *path) {
    size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

    if (strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0'))
        return NULL;
    return strcmp(path + length, "/") == 0 ? "" : path + length;
}

/* The path within the hierarchy, which the caller frees, or NULL. */
static char *read_own_path(FILE *cgroup) {
    CLEANUP(free_ptr) char *line = NULL;
    size_t size = 0;

    while (getline(&line, &size, cgroup) > 0)
        if (strncmp(line, "0::/", strlen("0::/")) == 0)
            return viv_xstrndup(line + strlen("0::"),
                                strcspn(line + strlen("0::"), "\n"));
    return NULL;
}

char *cgroup_find(FILE *cgroup, FILE *mountinfo, struct viv_error *err) {
    CLEANUP(free_ptr) char *own = read_own_path(cgroup);
    CLEANUP(free_ptr) char *line = NULL;
    CLEANUP(free_ptr) char *found = NULL;
    size_t size = 0;
    struct mount mount;

    if (!own)
        return viv_fail_null(err, VIV_UNAVAILABLE, "this kernel has no cgroup version 2");
    /* Moved there after its namespace was made: cgroup_namespaces(7). */
    if (strncmp(own, "/..", strlen("/..")) == 0)
        return viv_fail_null(err, VIV_UNAVAILABLE,
                             "the cgroup is outside of the cgroup namespace");
    while (getline(&line, &size, mountinfo) > 0) {
        if (!parse_mount(line, &mount))
            continue;
        const char *rest = path_below(mount.root, own);
        if (!rest || (found && !mount.writable))
            continue;
        free(found);
        if (asprintf(&found, "%s%s", mount.point, rest) < 0)
            abort();
        if (mount.writable)
            break;
    }
    if (!found)
        return viv_fail_null(err, VIV_UNAVAILABLE,
                             "no mount of cgroup version 2 shows the own cgroup");
    return steal_ptr(&found);
}

int cgroup_open_own(char **path, struct viv_error *err) {
    CLEANUP(close_file) FILE *cgroup = fopen("/proc/self/cgroup", "re");
    CLEANUP(close_file) FILE *mountinfo = fopen("/proc/self/mountinfo", "re");
    struct statfs status;

    *path = NULL;
    if (!cgroup || !mountinfo)
        return viv_fail(err, VIV_UNAVAILABLE, "/proc does not tell of cgroups: %m");
    CLEANUP(free_ptr) char *found = cgroup_find(cgroup, mountinfo, err);
    if (!found)
        return -1;
    CLEANUP(close_fd) int group = open(found, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (group < 0 || fstatfs(group, &status))
        return viv_fail(err, VIV_UNAVAILABLE, "open %s: %m", found);
    /* Something else may be mounted over it. */
    if (status.f_type != CGROUP2_SUPER_MAGIC)
        return viv_fail(err, VIV_UNAVAILABLE, "%s is no cgroup", found);
    *path = steal_ptr(&found);
    return steal_fd(&group);
}
