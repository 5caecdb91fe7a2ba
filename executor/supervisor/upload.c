/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/filename.h"

void upload_init(struct upload *upload, int home) {
    *upload = (struct upload){.home = home, .staging = -1, .file = -1};
}

static void refuse(struct upload *upload, uint32_t file, int error) {
    bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
    bool in_the_way = error == ENOTDIR || error == EISDIR || error == ELOOP ||
                      error == EEXIST || error == ENOTEMPTY ||
                      /* a folder that its session may not write to */
                      error == EACCES;

    if (upload->failed)
        return;
    upload->failed = true;
    upload->refused.file = file;
    upload->refused.reason = full         ? SESSION_NO_ROOM
                             : in_the_way ? SESSION_IN_THE_WAY
                                          : SESSION_NOT_WRITTEN;
}

void upload_refuse_for_room(struct upload *upload) {
    refuse(upload, upload->count - 1, ENOSPC);
}

/* The folder that files are written to: in the home, for a rename stays within one file
 * system, under a name that is not there yet. */
static int make_staging(struct upload *upload) {
    uint64_t random;

    if (getrandom(&random, sizeof random, 0) != sizeof random)
        return -1;
    snprintf(upload->staging_name, sizeof upload->staging_name, ".upload-%016llx",
             (unsigned long long)random);
    if (mkdirat(upload->home, upload->staging_name, 0700))
        return -1;
    upload->staging = openat(upload->home, upload->staging_name,
                             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return upload->staging < 0 ? -1 : 0;
}

static void staged_name(char name[16], uint32_t index) {
    snprintf(name, 16, "%u", index);
}

void upload_open(struct upload *upload, struct slice name) {
    char staged[16];

    close_and_clear(&upload->file);
    if (upload->failed)
        return;
    uint32_t index = upload->count++;
    upload->names = viv_xrealloc(upload->names, upload->count * sizeof *upload->names);
    upload->names[index] = viv_xstrndup(name.data, name.size);
    if (filename_refusal(name)) {
        refuse(upload, index, EINVAL);
        return;
    }
    if (upload->staging < 0 && make_staging(upload)) {
        refuse(upload, index, errno);
        return;
    }
    staged_name(staged, index);
    upload->file = openat(upload->staging, staged,
                          O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (upload->file < 0)
        refuse(upload, index, errno);
}

void upload_write(struct upload *upload, struct slice data) {
    while (!upload->failed && data.size > 0) {
        ssize_t written = write(upload->file, data.data, data.size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            refuse(upload, upload->count - 1, errno);
            return;
        }
        data.data += written;
        data.size -= (size_t)written;
    }
}

/* Folders that a commit made, to take them away again when it fails. */
struct made {
    char **paths;
    size_t count;
};

static void remember(struct made *made, const char *path) {
    made->paths = viv_xrealloc(made->paths, (made->count + 1) * sizeof *made->paths);
    made->paths[made->count++] = viv_xstrdup(path);
}

static void made_cleanup(struct made *made) {
    for (size_t i = 0; i < made->count; i++)
        free(made->paths[i]);
    free(made->paths);
}

/* Opens a folder, after making it if `made` is there to remember it under `path`. */
static int enter(int parent, const char *name, const char *path, struct made *made) {
    if (made && mkdirat(parent, name, 0755) == 0)
        remember(made, path);
    else if (made && errno != EEXIST)
        return -1;
    return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Opens the folder that holds `path`, making the folders on the way; *last is the name in
 * it. Returns -1 with errno. `made` may be NULL: then nothing is made. */
static int open_parent(int home, char *path, struct made *made, const char **last) {
    CLEANUP(close_fd) int folder = fcntl(home, F_DUPFD_CLOEXEC, 0);
    char *component = path;

    for (char *slash; folder >= 0 && (slash = strchr(component, '/'));
         component = slash + 1) {
        *slash = '\0';
        int next = enter(folder, component, path, made);
        int error = errno;
        *slash = '/';
        close(folder);
        folder = next;
        errno = error;
    }
    *last = component;
    return steal_fd(&folder);
}

/* Makes the folders of a file and checks that nothing stands in its way. */
static int prepare(struct upload *upload, uint32_t index, struct made *made) {
    struct stat status;
    const char *last;
    CLEANUP(close_fd)
    int folder = open_parent(upload->home, upload->names[index], made, &last);

    if (folder < 0)
        return -1;
    if (fstatat(folder, last, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    return 0;
}

static int put_in_place(struct upload *upload, uint32_t index) {
    char staged[16];
    const char *last;
    CLEANUP(close_fd)
    int folder = open_parent(upload->home, upload->names[index], NULL, &last);

    staged_name(staged, index);
    return folder < 0 ? -1 : renameat(upload->staging, staged, folder, last);
}

int upload_commit(struct upload *upload) {
    CLEANUP(made) struct made made = {0};

    close_and_clear(&upload->file);
    /* All that can fail in a home that nobody else changes is done before the first
     * rename. */
    for (uint32_t i = 0; i < upload->count && !upload->failed; i++)
        if (prepare(upload, i, &made))
            refuse(upload, i, errno);
    for (uint32_t i = 0; i < upload->count && !upload->failed; i++)
        if (put_in_place(upload, i))
            refuse(upload, i, errno);
    if (!upload->failed)
        return 0;
    for (size_t i = made.count; i-- > 0;)
        unlinkat(upload->home, made.paths[i], AT_REMOVEDIR);
    return -1;
}

void upload_clear(struct upload *upload) {
    char staged[16];

    close_and_clear(&upload->file);
    for (uint32_t i = 0; i < upload->count; i++) {
        staged_name(staged, i);
        if (upload->staging >= 0)
            unlinkat(upload->staging, staged, 0);
        free(upload->names[i]);
    }
    free(upload->names);
    if (upload->staging >= 0) {
        close(upload->staging);
        unlinkat(upload->home, upload->staging_name, AT_REMOVEDIR);
    }
    upload_init(upload, upload->home);
}
