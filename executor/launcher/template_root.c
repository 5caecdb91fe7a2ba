/* SPDX-License-Identifier: MIT */
#include "executor/launcher/template_root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "executor/session_root.h"

/* sys/mount.h and linux/mount.h define the same names and cannot both be included here:
 * glibc 2.36 has mount(2)'s flags as an enumeration. */
int mount(const char *source, const char *target, const char *type, unsigned long flags,
          const void *data);
int umount2(const char *target, int flags);

#define DETACH       2      /* MNT_DETACH */
#define ROOT         "/tmp" /* of the host; hidden while the new root is built on it */
#define EMPTY_FOLDER ROOT "/.empty"
#define EMPTY_FILE   ROOT "/.nothing"

/* Writes ROOT and `path` into `to`. */
static int inside(char to[PATH_MAX], const char *path, struct viv_error *err) {
    int length = snprintf(to, PATH_MAX, "%s%s", ROOT, path);

    if (length < 0 || length >= PATH_MAX)
        return viv_fail(err, VIV_SYSTEM, "%s is too long", path);
    return 0;
}

static int make_directory(const char *path, struct viv_error *err) {
    if (mkdir(path, 0755) && errno != EEXIST)
        return viv_fail(err, VIV_SYSTEM, "mkdir %s: %m", path);
    return 0;
}

/* The folders above a path inside the new root. */
static int make_parents(char *path, struct viv_error *err) {
    for (char *slash = path + strlen(ROOT "/"); (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        int failed = make_directory(path, err);
        *slash = '/';
        if (failed)
            return -1;
    }
    return 0;
}

static int write_file(const char *path, const char *content, struct viv_error *err) {
    CLEANUP(close_fd) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    size_t size = strlen(content);

    if (fd < 0 || write(fd, content, size) != (ssize_t)size)
        return viv_fail(err, VIV_SYSTEM, "write %s: %m", path);
    return 0;
}

static int mount_read_only(const char *path, uint64_t more, struct viv_error *err) {
    struct mount_attr attributes = {.attr_set =
                                        MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | more};

    if (syscall(SYS_mount_setattr, AT_FDCWD, path, 0, &attributes, sizeof attributes) ==
        0)
        return 0;
    return viv_fail(err, VIV_SYSTEM, "make %s read-only: %m", path);
}

/* Not recursive: what is mounted below on the host does not appear. */
static int bind_read_only(const char *source, const char *target, uint64_t more,
                          struct viv_error *err) {
    if (mount(source, target, NULL, MS_BIND, NULL))
        return viv_fail(err, VIV_SYSTEM, "bind %s: %m", source);
    return mount_read_only(target, more, err);
}

static int make_link(const char *content, const char *path, struct viv_error *err) {
    if (symlink(content, path))
        return viv_fail(err, VIV_SYSTEM, "symlink %s: %m", path);
    return 0;
}

static int show_link(const char *source, const char *target, struct viv_error *err) {
    char content[PATH_MAX];
    ssize_t length = readlink(source, content, sizeof content - 1);

    if (length < 0)
        return viv_fail(err, VIV_SYSTEM, "readlink %s: %m", source);
    content[length] = '\0';
    return make_link(content, target, err);
}

static int show(const char *source, struct viv_error *err) {
    char target[PATH_MAX];
    struct stat status;

    if (lstat(source, &status))
        return errno == ENOENT ? 0 : viv_fail(err, VIV_SYSTEM, "stat %s: %m", source);
    if (inside(target, source, err) || make_parents(target, err))
        return -1;
    if (S_ISLNK(status.st_mode))
        return show_link(source, target, err);
    if (S_ISDIR(status.st_mode) ? make_directory(target, err)
                                : write_file(target, "", err))
        return -1;
    return bind_read_only(source, target, MOUNT_ATTR_NODEV, err);
}

static int hide(const char *path, struct viv_error *err) {
    char target[PATH_MAX];
    struct stat status;

    if (inside(target, path, err))
        return -1;
    if (lstat(target, &status) || S_ISLNK(status.st_mode))
        return 0;
    return bind_read_only(S_ISDIR(status.st_mode) ? EMPTY_FOLDER : EMPTY_FILE, target,
                          MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, err);
}

static int show_device(const char *name, struct viv_error *err) {
    char source[64], target[PATH_MAX];

    snprintf(source, sizeof source, "/dev/%s", name);
    if (inside(target, source, err) || write_file(target, "", err))
        return -1;
    if (mount(source, target, NULL, MS_BIND, NULL))
        return viv_fail(err, VIV_SYSTEM, "bind %s: %m", source);
    /* A device takes what is written to it all the same; its inode, the host's, stays as
     * it is. */
    return mount_read_only(target, MOUNT_ATTR_NOEXEC, err);
}

/* What the lists say that is not of the host. */
static int fill_root(struct viv_error *err) {
    char path[PATH_MAX];

    for (size_t i = 0; i < SESSION_ROOT_DIRECTORIES; i++)
        if (inside(path, session_root_directories[i], err) || make_directory(path, err))
            return -1;
    for (size_t i = 0; i < SESSION_ROOT_FILES; i++)
        if (inside(path, session_root_files[i].path, err) ||
            write_file(path, session_root_files[i].content, err))
            return -1;
    for (size_t i = 0; i < SESSION_ROOT_LINKS; i++)
        if (inside(path, session_root_links[i].path, err) ||
            make_link(session_root_links[i].target, path, err))
            return -1;
    return 0;
}

static int show_host(struct viv_error *err) {
    /* They are bound over what is hidden, and need their names no longer then. */
    if (make_directory(EMPTY_FOLDER, err) || write_file(EMPTY_FILE, "", err))
        return -1;
    for (size_t i = 0; i < SESSION_ROOT_SHOWN; i++)
        if (show(session_root_shown[i].path, err))
            return -1;
    for (size_t i = 0; i < SESSION_ROOT_HIDDEN; i++)
        if (hide(session_root_hidden[i], err))
            return -1;
    if (rmdir(EMPTY_FOLDER) || unlink(EMPTY_FILE))
        return viv_fail(err, VIV_SYSTEM, "remove a name: %m");
    for (size_t i = 0; i < SESSION_ROOT_DEVICES; i++)
        if (show_device(session_root_devices[i].name, err))
            return -1;
    return 0;
}

/* Makes ROOT, which is the working directory, the root. */
static int change_root(struct viv_error *err) {
    if (syscall(SYS_pivot_root, ".", ".") == 0)
        return umount2(".", DETACH) || chdir("/")
                   ? viv_fail(err, VIV_SYSTEM, "leave the old root: %m")
                   : 0;
    if (errno != EPERM)
        return viv_fail(err, VIV_SYSTEM, "pivot_root: %m");
    /* The filter that containers commonly have allows mount(2) to who has CAP_SYS_ADMIN,
     * but not pivot_root(2) to anybody. The old root then stays below the new one, where
     * no path leads to it, and the kernel does not take the process for one that is
     * confined by chroot(2), which might make no user namespace: user_namespaces(7). */
    if (mount(".", "/", NULL, MS_MOVE, NULL) || chroot(".") || chdir("/"))
        return viv_fail(err, VIV_SYSTEM, "move the root: %m");
    return 0;
}

int template_root_enter(struct viv_error *err) {
    mode_t mask = umask(022);

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return viv_fail(err, VIV_SYSTEM, "make mounts private: %m");
    if (mount("vivarium", ROOT, "tmpfs", MS_NOSUID | MS_NODEV,
              "size=1m,nr_inodes=1k,mode=755"))
        return viv_fail(err, VIV_SYSTEM, "mount the root: %m");
    if (fill_root(err) || show_host(err))
        return -1;
    if (mount_read_only(ROOT, MOUNT_ATTR_NODEV, err))
        return -1;
    umask(mask);
    if (chdir(ROOT))
        return viv_fail(err, VIV_SYSTEM, "enter the root: %m");
    return change_root(err);
}
