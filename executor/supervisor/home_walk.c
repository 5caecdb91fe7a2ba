/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/home_walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/clock.h"

#define TICK      (20 * VIV_MS) /* at most between two values of a file system's clock */
#define TURNS_MAX 4000000       /* where the home is a folder of a large file system */

/* The folders that are open above the current place. */
struct walk {
    DIR *open[HOME_DEPTH_MAX + 1];
    size_t ends[HOME_DEPTH_MAX + 1]; /* length of the path of each folder */
    int depth;                       /* of the innermost open folder */
    char path[PATH_MAX];
};

static bool passed_over(const char *name) {
    return name[0] == '.' || strcmp(name, "__pycache__") == 0;
}

static int enter(struct walk *walk, int parent, const char *name, size_t end) {
    int fd = openat(parent, name,
                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);

    if (!folder) {
        if (fd >= 0)
            close(fd);
        return -1;
    }
    walk->depth++;
    walk->open[walk->depth] = folder;
    walk->ends[walk->depth] = end;
    return 0;
}

static void leave(struct walk *walk) {
    closedir(walk->open[walk->depth]);
    walk->depth--;
}

/* Appends the name to the path of the current folder; returns the length. There is room:
 * see may_enter(). */
static size_t extend_path(struct walk *walk, const char *name) {
    size_t end = walk->ends[walk->depth];
    size_t length = strnlen(name, NAME_MAX);

    if (end > 0)
        walk->path[end++] = '/';
    memcpy(walk->path + end, name, length);
    walk->path[end + length] = '\0';
    return end + length;
}

/* Whether a folder with a path of that length may be entered from the current one. */
static bool may_enter(const struct walk *walk, size_t length) {
    return walk->depth < HOME_DEPTH_MAX &&
           length + strlen("/") + NAME_MAX < sizeof walk->path;
}

/* One name of the current folder. */
static int visit(struct walk *walk, const char *name,
                 int (*each)(const struct home_entry *, void *), void *context) {
    int folder = dirfd(walk->open[walk->depth]);
    struct stat status;
    struct home_entry entry = {
        .path = walk->path, .status = &status, .folder = folder, .name = name};

    if (passed_over(name) || fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW))
        return 0;
    size_t end = extend_path(walk, name);
    if (S_ISREG(status.st_mode))
        return each(&entry, context);
    if (!S_ISDIR(status.st_mode))
        return 0;
    if (may_enter(walk, end)) {
        enter(walk, folder, name, end);
        return 0;
    }
    entry.too_deep = true;
    return each(&entry, context);
}

/* A home has no more names than inodes, and each is read, entered and left once, beside
 * "." and ".." of each folder. Code that moves folders while they are walked could show
 * them again and again; it hides what comes later from itself. */
static uint64_t most_turns(int home) {
    struct statvfs status;

    if (fstatvfs(home, &status) || status.f_files == 0 || status.f_files > TURNS_MAX / 4)
        return TURNS_MAX;
    return 4 * ((uint64_t)status.f_files + 1);
}

/* Most homes are empty at most calls; this sees it without opening a stream. */
static bool is_empty(int home) {
    _Alignas(struct dirent64) char entries[4 * sizeof(struct dirent64)];
    ssize_t size =
        lseek(home, 0, SEEK_SET) ? -1 : getdents64(home, entries, sizeof entries);

    for (ssize_t at = 0; at < size;) {
        const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return false;
        at += entry->d_reclen;
    }
    /* A name that did not fit would come now, or still not fit. */
    return size > 0 && getdents64(home, entries, sizeof entries) == 0;
}

int home_walk(int home, int (*each)(const struct home_entry *, void *), void *context) {
    struct walk walk = {.depth = -1};
    int result = 0;

    if (is_empty(home))
        return 0;
    uint64_t turns = most_turns(home);
    if (enter(&walk, home, ".", 0))
        return 0;
    while (walk.depth >= 0 && result == 0 && turns-- > 0) {
        struct dirent *found = readdir(walk.open[walk.depth]);
        if (found)
            result = visit(&walk, found->d_name, each, context);
        else
            leave(&walk);
    }
    while (walk.depth >= 0)
        leave(&walk);
    return result;
}

/* Saturates: code of the session may set any time. */
static int64_t nanoseconds(const struct timespec *time) {
    int64_t value;

    if (__builtin_mul_overflow((int64_t)time->tv_sec, VIV_SECOND, &value) ||
        __builtin_add_overflow(value, (int64_t)time->tv_nsec, &value))
        return time->tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return value;
}

/* FNV-1a. A session that builds a collision hides a file from itself. */
static uint64_t hash_path(const char *path) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *path; path++)
        hash = (hash ^ (unsigned char)*path) * UINT64_C(0x100000001b3);
    return hash;
}

static struct home_mark mark_of(const struct home_entry *entry) {
    const struct stat *status = entry->status;

    return (struct home_mark){
        .path_hash = hash_path(entry->path),
        .inode = status->st_ino,
        .size = (uint64_t)status->st_size,
        .changed = nanoseconds(&status->st_ctim),
        .modified = nanoseconds(&status->st_mtim),
    };
}

struct taking {
    struct home_snapshot *snapshot;
    size_t capacity;
    int64_t now; /* by the clock of the file system: a write of this tick has this time */
};

/* Makes the modification time one that no write of the same tick can produce. */
static int64_t set_apart(const struct home_entry *entry) {
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, entry->status->st_mtim};

    if (times[1].tv_nsec > 0) {
        times[1].tv_nsec--;
    } else {
        times[1].tv_sec--;
        times[1].tv_nsec = VIV_SECOND - 1;
    }
    if (utimensat(entry->folder, entry->name, times, AT_SYMLINK_NOFOLLOW))
        return nanoseconds(&entry->status->st_mtim);
    return nanoseconds(&times[1]);
}

static int take(const struct home_entry *entry, void *context) {
    struct taking *taking = context;
    struct home_snapshot *snapshot = taking->snapshot;
    struct stat now;

    if (entry->too_deep)
        return 0;
    if (snapshot->count == taking->capacity) {
        size_t capacity = taking->capacity ? 2 * taking->capacity : 64;
        struct home_mark *marks = realloc(snapshot->marks, capacity * sizeof *marks);
        if (!marks)
            return -1;
        snapshot->marks = marks;
        taking->capacity = capacity;
    }
    struct home_mark mark = mark_of(entry);
    if (mark.modified >= taking->now && mark.modified - taking->now <= TICK) {
        mark.modified = set_apart(entry);
        if (fstatat(entry->folder, entry->name, &now, AT_SYMLINK_NOFOLLOW) == 0)
            mark.changed = nanoseconds(&now.st_ctim);
    }
    snapshot->marks[snapshot->count++] = mark;
    return 0;
}

static int by_hash(const void *a, const void *b) {
    const struct home_mark *left = a, *right = b;

    return (left->path_hash > right->path_hash) - (left->path_hash < right->path_hash);
}

int home_snapshot_take(struct home_snapshot *snapshot, int home, struct viv_error *err) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    struct taking taking = {.snapshot = snapshot, .now = nanoseconds(&now)};
    *snapshot = (struct home_snapshot){0};
    if (home_walk(home, take, &taking)) {
        home_snapshot_clear(snapshot);
        return viv_fail(err, VIV_SYSTEM, "no memory for a snapshot");
    }
    if (snapshot->count > 1)
        qsort(snapshot->marks, snapshot->count, sizeof *snapshot->marks, by_hash);
    return 0;
}

bool home_snapshot_has(const struct home_snapshot *snapshot,
                       const struct home_entry *entry) {
    struct home_mark now = mark_of(entry);

    if (snapshot->count == 0)
        return false;
    const struct home_mark *then =
        bsearch(&now, snapshot->marks, snapshot->count, sizeof now, by_hash);
    return then && then->inode == now.inode && then->size == now.size &&
           then->changed == now.changed && then->modified == now.modified;
}

void home_snapshot_clear(struct home_snapshot *snapshot) {
    free(snapshot->marks);
    *snapshot = (struct home_snapshot){0};
}
