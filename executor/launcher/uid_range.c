/* SPDX-License-Identifier: MIT */
#include "executor/launcher/uid_range.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

#define SETTING "slot_uid_base: "

struct range {
    uint64_t first;
    uint64_t end; /* the number after the last one */
};

static bool contains(const struct range *range, uint64_t id) {
    return id >= range->first && id < range->end;
}

static void close_dir_cleanup(DIR **stream) {
    if (*stream)
        closedir(*stream);
}

/* How far the numbers from `id` on are mapped: the number after the last of them, `id`
 * itself if that one is not. */
static uint64_t mapped_until(FILE *map, uint64_t id) {
    uint64_t inside, outside, count;

    if (fseek(map, 0, SEEK_SET))
        return id;
    while (fscanf(map, "%" SCNu64 " %" SCNu64 " %" SCNu64, &inside, &outside, &count) ==
           3)
        if (id >= inside && id - inside < count)
            return inside + count;
    return id;
}

/* Rootless containers have few numbers, and setresuid(2) to another one fails. */
static int check_map(const char *path, const struct range *range, struct viv_error *err) {
    CLEANUP(close_file) FILE *map = fopen(path, "re");
    uint64_t at = range->first;

    if (!map)
        return viv_fail(err, VIV_SYSTEM, "open %s: %m", path);
    while (at < range->end) {
        uint64_t next = mapped_until(map, at);
        if (next == at)
            return viv_fail(err, VIV_CONFIG,
                            SETTING "%" PRIu64 " is not mapped into this user "
                                    "namespace; choose numbers that are in %s",
                            at, path);
        at = next;
    }
    return 0;
}

static int check_names(const struct range *range, struct viv_error *err) {
    for (uint64_t id = range->first; id < range->end; id++) {
        const struct passwd *user = getpwuid((uid_t)id);
        if (user)
            return viv_fail(err, VIV_CONFIG,
                            SETTING "%" PRIu64 " is the user %s; choose numbers that "
                                    "nobody has",
                            id, user->pw_name);
        const struct group *group = getgrgid((gid_t)id);
        if (group)
            return viv_fail(err, VIV_CONFIG,
                            SETTING "%" PRIu64 " is the group %s; choose numbers that "
                                    "nobody has",
                            id, group->gr_name);
    }
    return 0;
}

/* Lines of subuid(5): name:first:count. */
static int check_delegated(const char *path, const struct range *range,
                           struct viv_error *err) {
    CLEANUP(close_file) FILE *file = fopen(path, "re");
    CLEANUP(free_ptr) char *line = NULL;
    size_t room = 0;
    uint64_t first, count;

    if (!file)
        return errno == ENOENT ? 0 : viv_fail(err, VIV_SYSTEM, "open %s: %m", path);
    while (getline(&line, &room, file) >= 0) {
        if (sscanf(line, "%*[^:]:%" SCNu64 ":%" SCNu64, &first, &count) != 2)
            continue;
        if (first < range->end && (first >= range->first || range->first - first < count))
            return viv_fail(err, VIV_CONFIG,
                            SETTING "%s gives %" PRIu64 " numbers from %" PRIu64
                                    " on to a user; choose other ones",
                            path, count, first);
    }
    return 0;
}

/* A process that has ended and is not reaped yet: the init of some containers never does.
 * It holds nothing. */
static bool is_zombie(int proc, const char *pid) {
    char path[32], text[512];

    snprintf(path, sizeof path, "%.20s/stat", pid);
    CLEANUP(close_fd) int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    /* The name before it may have parentheses of its own: proc(5). */
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' && (end[2] == 'Z' || end[2] == 'X');
}

static int check_processes(const struct range *range, struct viv_error *err) {
    CLEANUP(close_dir) DIR *proc = opendir("/proc");
    const struct dirent *entry;
    struct stat status;

    if (!proc)
        return viv_fail(err, VIV_SYSTEM, "open /proc: %m");
    while ((entry = readdir(proc))) {
        /* The folder belongs to the process's effective user: proc(5). */
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
            fstatat(dirfd(proc), entry->d_name, &status, 0))
            continue;
        bool is_user = contains(range, status.st_uid);
        if ((is_user || contains(range, status.st_gid)) &&
            !is_zombie(dirfd(proc), entry->d_name))
            return viv_fail(err, VIV_CONFIG,
                            SETTING "the process %s runs as %s %u; end it, or choose "
                                    "other numbers",
                            entry->d_name, is_user ? "user" : "group",
                            is_user ? status.st_uid : status.st_gid);
    }
    return 0;
}

int uid_range_check(uint64_t first, uint64_t count, struct viv_error *err) {
    const struct range range = {first, first + count};

    if (check_map("/proc/self/uid_map", &range, err) ||
        check_map("/proc/self/gid_map", &range, err) || check_names(&range, err) ||
        check_delegated("/etc/subuid", &range, err) ||
        check_delegated("/etc/subgid", &range, err))
        return -1;
    return check_processes(&range, err);
}
