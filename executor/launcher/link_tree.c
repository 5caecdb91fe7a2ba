/* SPDX-License-Identifier: MIT */
#include "executor/launcher/link_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"

#define MOST_DEPTH 64
#define SOURCE     (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define TARGET     (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* A folder on the way down. */
struct folder {
    struct folder *above; /* NULL for the one in which the walk began */
    const char *name;
    int from;
    int to; /* -1 until it is needed */
    int depth;
    size_t end; /* length of its path */
};

struct walk {
    struct link_tree *tree;
    char path[PATH_MAX]; /* of the current name */
    bool inside;         /* below what was asked for, no longer on the way to it */
};

static int show_name(struct walk *walk, struct folder *folder, const char *name,
                     unsigned char type, struct viv_error *err);

static void close_dir_cleanup(DIR **stream) {
    if (*stream)
        closedir(*stream);
}

static void folder_close_cleanup(struct folder *folder) {
    close_fd_cleanup(&folder->from);
    close_fd_cleanup(&folder->to);
}

/* Makes the folder where it is shown, and those above it. */
static int make_folder(struct folder *folder, struct viv_error *err) {
    if (folder->to >= 0 || !folder->above)
        return 0;
    if (make_folder(folder->above, err))
        return -1;
    if (mkdirat(folder->above->to, folder->name, 0755) && errno != EEXIST)
        return viv_fail(err, VIV_SYSTEM, "mkdir %s: %m", folder->name);
    folder->to = openat(folder->above->to, folder->name, TARGET);
    if (folder->to < 0)
        return viv_fail(err, VIV_SYSTEM, "open the new %s: %m", folder->name);
    return 0;
}

/* A copy that differs from the file in its owner and number only. */
static int copy_file(const struct folder *folder, const char *name,
                     struct viv_error *err) {
    CLEANUP(close_fd)
    int from = openat(folder->from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    CLEANUP(close_fd)
    int to = openat(folder->to, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    struct stat status;
    ssize_t sent;

    if (from < 0 || to < 0 || fstat(from, &status))
        return viv_fail(err, VIV_SYSTEM, "copy %s: %m", name);
    do
        sent = sendfile(to, from, NULL, 1 << 30);
    while (sent > 0);
    /* Python compares the time of a source with the one in its compiled file. */
    const struct timespec times[2] = {status.st_atim, status.st_mtim};
    if (sent < 0 || fchmod(to, status.st_mode & 0755) || futimens(to, times))
        return viv_fail(err, VIV_SYSTEM, "copy %s: %m", name);
    return 0;
}

static bool may_be_shown(const struct stat *status) {
    return S_ISREG(status->st_mode) && status->st_mode & S_IROTH &&
           !(status->st_mode & (S_IWGRP | S_IWOTH | S_ISUID | S_ISGID));
}

/* Gives the name's inode a second name; 1 where the file system allows none. */
static int add_name(struct folder *folder, const char *name, struct viv_error *err) {
    if (make_folder(folder, err))
        return -1;
    if (linkat(folder->from, name, folder->to, name, 0) == 0 || errno == EEXIST)
        return 0;
    /* Another file system; one without links; or more links than it allows. */
    if (errno == EXDEV || errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK)
        return 1;
    return viv_fail(err, VIV_SYSTEM, "link %s: %m", name);
}

static int show_file(struct walk *walk, struct folder *folder, const char *name,
                     struct viv_error *err) {
    struct stat status;

    if (walk->tree->host) {
        if (fstatat(folder->from, name, &status, AT_SYMLINK_NOFOLLOW))
            return viv_fail(err, VIV_SYSTEM, "stat %s: %m", name);
        if (!may_be_shown(&status))
            return 0;
    }
    int not_linked = add_name(folder, name, err);
    if (not_linked <= 0)
        return not_linked;
    walk->tree->copied = true;
    return copy_file(folder, name, err);
}

/* A link has a second name like a file: the fewer inodes, the faster. */
static int show_link(struct folder *folder, const char *name, struct viv_error *err) {
    char content[PATH_MAX];
    int not_linked = add_name(folder, name, err);

    if (not_linked <= 0)
        return not_linked;
    ssize_t length = readlinkat(folder->from, name, content, sizeof content - 1);
    if (length < 0)
        return viv_fail(err, VIV_SYSTEM, "readlink %s: %m", name);
    content[length] = '\0';
    if (symlinkat(content, folder->to, name))
        return viv_fail(err, VIV_SYSTEM, "symlink %s: %m", name);
    return 0;
}

/* All that is in a folder. */
static int show_content(struct walk *walk, struct folder *folder, struct viv_error *err) {
    /* A stream of its own: it moves the place in its descriptor, and closes it. */
    int fd = openat(folder->from, ".", SOURCE);
    CLEANUP(close_dir) DIR *stream = fd < 0 ? NULL : fdopendir(fd);
    struct dirent *entry;

    if (!stream) {
        close_fd_cleanup(&fd);
        return viv_fail(err, VIV_SYSTEM, "open a folder: %m");
    }
    while (errno = 0, entry = readdir(stream)) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (show_name(walk, folder, entry->d_name, entry->d_type, err))
            return -1;
    }
    return errno ? viv_fail(err, VIV_SYSTEM, "read a folder: %m") : 0;
}

/* Opens a folder below another one; 1 when it is not to be shown. */
static int open_folder(const struct walk *walk, struct folder *folder,
                       struct viv_error *err) {
    struct stat status;

    if (folder->depth > MOST_DEPTH)
        return viv_fail(err, VIV_SYSTEM, "%s is too deep", walk->path);
    folder->from = openat(folder->above->from, folder->name, SOURCE);
    if (folder->from < 0 || fstat(folder->from, &status))
        return viv_fail(err, VIV_SYSTEM, "open %s: %m", walk->path);
    return walk->tree->host && (!(status.st_mode & S_IXOTH) || status.st_mode & S_IWOTH);
}

static int show_folder(struct walk *walk, struct folder *above, const char *name,
                       struct viv_error *err) {
    CLEANUP(folder_close)
    struct folder folder = {.above = above,
                            .name = name,
                            .from = -1,
                            .to = -1,
                            .depth = above->depth + 1,
                            .end = strlen(walk->path)};
    int passed_over = open_folder(walk, &folder, err);

    if (passed_over)
        return passed_over < 0 ? -1 : 0;
    if (!walk->tree->host && make_folder(&folder, err))
        return -1;
    walk->inside = true;
    return show_content(walk, &folder, err);
}

static bool is_hidden(const struct walk *walk) {
    for (size_t i = 0; i < walk->tree->hidden_count; i++)
        if (strcmp(walk->path, walk->tree->hidden[i]) == 0)
            return true;
    return false;
}

/* Sets the path to that of a name in the folder. */
static int set_path(struct walk *walk, const struct folder *folder, const char *name,
                    struct viv_error *err) {
    size_t room = sizeof walk->path - folder->end;

    if ((size_t)snprintf(walk->path + folder->end, room, "/%s", name) < room)
        return 0;
    return viv_fail(err, VIV_SYSTEM, "the path of %s is too long", name);
}

static int show_name(struct walk *walk, struct folder *folder, const char *name,
                     unsigned char type, struct viv_error *err) {
    struct stat status;

    if (set_path(walk, folder, name, err))
        return -1;
    if (is_hidden(walk))
        return 0;
    if (type == DT_UNKNOWN) {
        if (fstatat(folder->from, name, &status, AT_SYMLINK_NOFOLLOW))
            return errno == ENOENT ? 0 : viv_fail(err, VIV_SYSTEM, "stat %s: %m", name);
        type = IFTODT(status.st_mode);
    }
    if (type == DT_DIR)
        return show_folder(walk, folder, name, err);
    if (walk->tree->libraries && walk->inside && !strstr(name, ".so"))
        return 0;
    if (type == DT_LNK)
        return show_link(folder, name, err);
    return type == DT_REG ? show_file(walk, folder, name, err) : 0;
}

/* Follows the first part of the path down to the name that is its rest. */
static int show_below(struct walk *walk, struct folder *folder, char *path,
                      struct viv_error *err) {
    char *slash = strchr(path, '/');

    if (!slash)
        return show_name(walk, folder, path, DT_UNKNOWN, err);
    *slash = '\0';
    if (set_path(walk, folder, path, err))
        return -1;
    CLEANUP(folder_close)
    struct folder below = {.above = folder,
                           .name = path,
                           .from = openat(folder->from, path, SOURCE),
                           .to = -1,
                           .depth = folder->depth + 1,
                           .end = strlen(walk->path)};
    if (below.from < 0)
        return errno == ENOENT || errno == ENOTDIR
                   ? 0
                   : viv_fail(err, VIV_SYSTEM, "open %s: %m", walk->path);
    return show_below(walk, &below, slash + 1, err);
}

int link_tree_show(struct link_tree *tree, int from, const char *path, int to,
                   struct viv_error *err) {
    struct walk walk = {.tree = tree};
    struct folder top = {.from = from, .to = to};
    char parts[PATH_MAX];

    if ((size_t)snprintf(parts, sizeof parts, "%s", path + 1) >= sizeof parts)
        return viv_fail(err, VIV_SYSTEM, "%s is too long", path);
    return *parts ? show_below(&walk, &top, parts, err) : show_content(&walk, &top, err);
}
