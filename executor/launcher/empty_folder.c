/* SPDX-License-Identifier: MIT */
#include "executor/launcher/empty_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"

#define MOST_PASSES   32 /* over one folder in which files keep appearing */
#define MOST_RESTARTS 32 /* after a folder on the way up was moved away */
#define FIRST_ROOM    64
#define OWNER_ALL     (S_IRUSR | S_IWUSR | S_IXUSR)
#define FOLDER_FLAGS  (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/* A folder on the way down, to know it again on the way up. */
struct place {
    dev_t device;
    ino_t inode;
    int passes; /* that found something, one after the other */
};

struct walk {
    int top; /* borrowed */
    int current;
    struct place *places; /* places[0] is the top, places[depth] the current folder */
    size_t depth;
    size_t room;
    int restarts;
};

static void walk_end_cleanup(struct walk *walk) {
    close_fd_cleanup(&walk->current);
    free(walk->places);
}

/* Notes the folder as the current one and makes sure that its owner may empty it. */
static int arrive(struct walk *walk, struct viv_error *err) {
    struct stat status;

    if (fstat(walk->current, &status))
        return viv_fail(err, VIV_SYSTEM, "stat a folder: %m");
    if ((status.st_mode & OWNER_ALL) != OWNER_ALL && fchmod(walk->current, OWNER_ALL))
        return viv_fail(err, VIV_SYSTEM, "change the mode of a folder: %m");
    if (walk->depth == walk->room) {
        walk->room *= 2;
        walk->places = viv_xrealloc(walk->places, walk->room * sizeof *walk->places);
    }
    walk->places[walk->depth] =
        (struct place){.device = status.st_dev, .inode = status.st_ino};
    return 0;
}

static int start(struct walk *walk, struct viv_error *err) {
    close_and_clear(&walk->current);
    walk->depth = 0;
    if (fchmod(walk->top, OWNER_ALL))
        return viv_fail(err, VIV_SYSTEM, "change the mode of a folder: %m");
    walk->current = openat(walk->top, ".", FOLDER_FLAGS);
    if (walk->current < 0)
        return viv_fail(err, VIV_SYSTEM, "open a folder: %m");
    return arrive(walk, err);
}

/* Opens a folder in the current one, also one that its owner may not read. -1 with errno
 * on failure. */
static int open_below(int folder, const char *name) {
    int fd = openat(folder, name, FOLDER_FLAGS);

    if (fd >= 0 || errno != EACCES)
        return fd;
    /* Not through a link that has taken its place. */
    if (fchmodat(folder, name, OWNER_ALL, AT_SYMLINK_NOFOLLOW))
        return -1;
    return openat(folder, name, FOLDER_FLAGS);
}

static int descend(struct walk *walk, const char *name, struct viv_error *err) {
    int fd = open_below(walk->current, name);

    if (fd < 0) {
        /* Gone, or no folder any more: the next pass sees what is there now. */
        if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
            return 0;
        return viv_fail(err, VIV_SYSTEM, "open a folder: %m");
    }
    close(walk->current);
    walk->current = fd;
    walk->depth++;
    return arrive(walk, err);
}

/* The way up is "..", which is somewhere else when the folder was moved. */
static int ascend(struct walk *walk, struct viv_error *err) {
    struct place above = walk->places[walk->depth - 1];
    CLEANUP(close_fd) int fd = openat(walk->current, "..", FOLDER_FLAGS);
    struct stat status;

    if (fd < 0 || fstat(fd, &status) || status.st_dev != above.device ||
        status.st_ino != above.inode) {
        if (++walk->restarts > MOST_RESTARTS)
            return viv_fail(err, VIV_SYSTEM, "folders are moved again and again");
        return start(walk, err);
    }
    close(walk->current);
    walk->current = steal_fd(&fd);
    walk->depth--;
    walk->places[walk->depth].passes = 0;
    return 0;
}

static bool is_self_or_parent(const char *name) {
    return name[0] == '.' && (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

/* Removes one name. 1 for a folder that is not empty, which has to be entered. */
static int remove_name(int folder, const struct dirent64 *entry, struct viv_error *err) {
    bool is_folder = entry->d_type == DT_DIR;

    /* The type is not known on some file systems, and may be another one by now. */
    if (!is_folder && unlinkat(folder, entry->d_name, 0)) {
        if (errno == ENOENT)
            return 0;
        if (errno != EISDIR)
            return viv_fail(err, VIV_SYSTEM, "remove a file: %m");
        is_folder = true;
    }
    if (!is_folder || unlinkat(folder, entry->d_name, AT_REMOVEDIR) == 0 ||
        errno == ENOENT)
        return 0;
    if (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR)
        return 1;
    return viv_fail(err, VIV_SYSTEM, "remove a folder: %m");
}

/* One pass over the current folder, up to the first folder in it that has to be entered,
 * which is entered. Returns how many names were seen. */
static int pass(struct walk *walk, struct viv_error *err) {
    _Alignas(struct dirent64) char entries[16384];
    int seen = 0;

    if (lseek(walk->current, 0, SEEK_SET))
        return viv_fail(err, VIV_SYSTEM, "read a folder: %m");
    for (;;) {
        ssize_t size = getdents64(walk->current, entries, sizeof entries);
        if (size < 0)
            return viv_fail(err, VIV_SYSTEM, "read a folder: %m");
        if (size == 0)
            return seen;
        for (ssize_t at = 0; at < size;) {
            const struct dirent64 *entry = (const struct dirent64 *)(entries + at);
            at += entry->d_reclen;
            if (is_self_or_parent(entry->d_name))
                continue;
            int full = remove_name(walk->current, entry, err);
            if (full < 0)
                return -1;
            seen++;
            if (full)
                return descend(walk, entry->d_name, err) ? -1 : seen;
        }
    }
}

/* Each pass begins at the front: what was there is removed, and a place in a folder means
 * nothing after removals on every file system. */
int empty_folder(int folder, struct viv_error *err) {
    CLEANUP(walk_end)
    struct walk walk = {.top = folder,
                        .current = -1,
                        .places = viv_xcalloc(FIRST_ROOM, sizeof *walk.places),
                        .room = FIRST_ROOM};

    if (start(&walk, err))
        return -1;
    for (;;) {
        size_t depth = walk.depth;
        struct place *place = &walk.places[depth];
        if (place->passes > MOST_PASSES)
            return viv_fail(err, VIV_SYSTEM, "files keep appearing");
        place->passes++;
        int seen = pass(&walk, err);
        if (seen < 0)
            return -1;
        if (seen > 0)
            continue;
        if (depth == 0)
            return 0;
        if (ascend(&walk, err))
            return -1;
    }
}
