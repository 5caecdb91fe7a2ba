/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"

struct candidate {
    char *path;
    uint64_t size;
    bool too_deep;
};

struct candidates {
    const struct home_snapshot *before;
    struct candidate *items;
    size_t count;
    size_t capacity;
};

static void candidates_cleanup(struct candidates *candidates) {
    for (size_t i = 0; i < candidates->count; i++)
        free(candidates->items[i].path);
    free(candidates->items);
}

static int find(const struct home_entry *entry, void *context) {
    struct candidates *found = context;

    if (!entry->too_deep && home_snapshot_has(found->before, entry))
        return 0;
    if (found->count == found->capacity) {
        size_t capacity = found->capacity ? 2 * found->capacity : 16;
        struct candidate *items = realloc(found->items, capacity * sizeof *items);
        if (!items)
            return -1;
        found->items = items;
        found->capacity = capacity;
    }
    char *path = strdup(entry->path);
    if (!path)
        return -1;
    found->items[found->count++] = (struct candidate){
        .path = path,
        .size = entry->too_deep ? 0 : (uint64_t)entry->status->st_size,
        .too_deep = entry->too_deep,
    };
    return 0;
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const struct candidate *)a)->path,
                  ((const struct candidate *)b)->path);
}

/* Beneath the home, through no link: the path may have been replaced since it
 * was found. */
static int open_beneath(int home, const char *path) {
    const struct open_how how = {
        .flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
    };

    return (int)syscall(SYS_openat2, home, path, &how, sizeof how);
}

static int send_end(const struct collection *collection, enum session_left_out reason,
                    uint64_t size) {
    char payload[SESSION_FILE_END_SIZE];

    session_file_end_put(payload, &(struct session_file_end){reason, size});
    return collection->send(collection->context, SESSION_FILE_END,
                            (struct slice){payload, sizeof payload}, (struct slice){0});
}

/* Sends the content of an open file that had `size` bytes, and no more than that; it may
 * change while it is read. */
static int send_content(const struct collection *collection, int fd, uint64_t size,
                        char *block, uint64_t *sent, enum session_left_out *reason) {
    *sent = 0;
    *reason = SESSION_INCLUDED;
    for (;;) {
        ssize_t got = read(fd, block, SESSION_DATA_MAX);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            *reason = SESSION_UNREADABLE;
        else if (got == 0 && *sent < size)
            *reason = SESSION_CHANGED;
        if (got <= 0)
            return 0;
        if ((uint64_t)got > size - *sent) {
            *reason = SESSION_CHANGED;
            return 0;
        }
        if (collection->send(collection->context, SESSION_DATA,
                             (struct slice){block, (size_t)got}, (struct slice){0}))
            return -1;
        *sent += (uint64_t)got;
    }
}

struct progress {
    uint32_t files;
    uint64_t total;
    uint32_t left_out;
    char *block; /* SESSION_DATA_MAX bytes */
};

static int leave_out(const struct collection *collection,
                     const struct candidate *candidate, enum session_left_out reason,
                     struct progress *progress) {
    char payload[SESSION_FILE_END_SIZE];

    if (progress->left_out++ >= SESSION_LEFT_OUT_MAX)
        return 0;
    session_file_end_put(payload, &(struct session_file_end){reason, candidate->size});
    return collection->send(collection->context, SESSION_LEFT_OUT,
                            (struct slice){payload, sizeof payload},
                            (struct slice){candidate->path, strlen(candidate->path)});
}

/* Why a file cannot be in the answer, as far as it is known before it is read. */
static enum session_left_out refuse(const struct collection *collection, uint64_t size,
                                    const struct progress *progress) {
    if (size > collection->max_file_size)
        return SESSION_TOO_LARGE;
    if (progress->files >= collection->max_files)
        return SESSION_TOO_MANY;
    if (size > collection->max_total - progress->total)
        return SESSION_TOTAL_TOO_LARGE;
    return SESSION_INCLUDED;
}

static int send_file(const struct collection *collection, struct candidate *candidate,
                     struct progress *progress) {
    struct stat status;
    enum session_left_out reason;
    uint64_t sent;

    if (candidate->too_deep)
        return leave_out(collection, candidate, SESSION_TOO_DEEP, progress);
    if (strlen(candidate->path) > SESSION_NAME_MAX)
        return leave_out(collection, candidate, SESSION_NAME_REFUSED, progress);
    CLEANUP(close_fd) int fd = open_beneath(collection->home, candidate->path);
    if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode))
        return leave_out(collection, candidate, SESSION_UNREADABLE, progress);
    candidate->size = (uint64_t)status.st_size;
    reason = refuse(collection, candidate->size, progress);
    if (reason != SESSION_INCLUDED)
        return leave_out(collection, candidate, reason, progress);
    if (collection->send(collection->context, SESSION_FILE,
                         (struct slice){candidate->path, strlen(candidate->path)},
                         (struct slice){0}) ||
        send_content(collection, fd, candidate->size, progress->block, &sent, &reason))
        return -1;
    progress->files++;
    progress->total += sent;
    return send_end(collection, reason,
                    reason == SESSION_INCLUDED ? sent : candidate->size);
}

int collect_files(const struct collection *collection, uint32_t *unnamed,
                  struct viv_error *err) {
    CLEANUP(candidates) struct candidates found = {.before = collection->before};
    struct progress progress = {0};

    *unnamed = 0;
    if (home_walk(collection->home, find, &found))
        return viv_fail(err, VIV_SYSTEM, "no memory for the files of an answer");
    if (found.count == 0)
        return 0;
    qsort(found.items, found.count, sizeof *found.items, by_path);
    CLEANUP(free_ptr) char *block = viv_xmalloc(SESSION_DATA_MAX);
    progress.block = block;
    for (size_t i = 0; i < found.count; i++)
        if (send_file(collection, &found.items[i], &progress))
            return viv_fail(err, VIV_BAD_GATEWAY, "the client does not take the files");
    if (progress.left_out > SESSION_LEFT_OUT_MAX)
        *unnamed = progress.left_out - SESSION_LEFT_OUT_MAX;
    return 0;
}
