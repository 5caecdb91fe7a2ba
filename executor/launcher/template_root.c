/* SPDX-License-Identifier: MIT */
#include "executor/launcher/template_root.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "executor/control.h"

/* sys/mount.h and linux/mount.h define the same names and cannot both be included here:
 * glibc 2.36 has mount(2)'s flags as an enumeration. */
int mount(const char *source, const char *target, const char *type, unsigned long flags,
          const void *data);
int umount2(const char *target, int flags);

#define DETACH       2      /* MNT_DETACH */
#define ROOT         "/tmp" /* of the host; hidden while the new root is built on it */
#define EMPTY_FOLDER ROOT "/.empty"
#define EMPTY_FILE   ROOT "/.nothing"

/* What is shown of the host, read-only, where it exists. A link is made again as
 * a link. */
static const char *const shown[] = {
    "/lib",
    "/lib64",
    "/usr/lib64",
    "/usr/lib/ld-linux-aarch64.so.1",
    VIVARIUM_LIBRARY_DIRECTORY,
    VIVARIUM_PYTHON_DIRECTORY,
    "/usr/lib/python3",
    ("/etc/" VIVARIUM_PYTHON),
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/matplotlibrc",
    "/etc/mime.types",
    "/usr/share/matplotlib",
    "/usr/share/fonts",
    "/usr/share/zoneinfo",
};

/* What of it is hidden again: installers, tools, tests. */
static const char *const hidden[] = {
    VIVARIUM_PYTHON_DIRECTORY "/ensurepip",
    VIVARIUM_PYTHON_DIRECTORY "/idlelib",
    VIVARIUM_PYTHON_DIRECTORY "/venv",
    "/usr/lib/python3/dist-packages/pip",
    "/usr/lib/python3/dist-packages/setuptools",
    "/usr/lib/python3/dist-packages/pkg_resources",
    "/usr/lib/python3/dist-packages/_distutils_hack",
    "/usr/lib/python3/dist-packages/wheel",
    /* It would run setuptools at every start of Python. */
    "/usr/lib/python3/dist-packages/distutils-precedence.pth",
    VIVARIUM_LIBRARY_DIRECTORY "/security",
};

static const char *const devices[] = {"null", "zero", "full", "random", "urandom"};

static const char *const directories[] = {"/usr", "/usr/lib", "/usr/share", "/etc",
                                          "/dev", "/dev/shm", "/home",      SESSION_HOME,
                                          "/tmp", "/proc",    "/.empty"};

static const struct {
    const char *path;
    const char *content;
} generated[] = {
    {"/etc/passwd", "earth:x:1000:1000::" SESSION_HOME ":/nonexistent\n"},
    {"/etc/group", "earth:x:1000:\n"},
    {"/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
    {"/etc/hosts", "127.0.0.1 localhost\n"},
    {"/.nothing", ""},
};

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

static int show_link(const char *source, const char *target, struct viv_error *err) {
    char content[PATH_MAX];
    ssize_t length = readlink(source, content, sizeof content - 1);

    if (length < 0)
        return viv_fail(err, VIV_SYSTEM, "readlink %s: %m", source);
    content[length] = '\0';
    if (symlink(content, target))
        return viv_fail(err, VIV_SYSTEM, "symlink %s: %m", target);
    return 0;
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
    /* A device takes what is written to it all the same; its inode, the host's, stays as it is. */
    return mount_read_only(target, MOUNT_ATTR_NOEXEC, err);
}

static int fill_root(struct viv_error *err) {
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof directories / sizeof *directories; i++)
        if (inside(path, directories[i], err) || make_directory(path, err))
            return -1;
    for (size_t i = 0; i < sizeof generated / sizeof *generated; i++)
        if (inside(path, generated[i].path, err) ||
            write_file(path, generated[i].content, err))
            return -1;
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
        if (show(shown[i], err))
            return -1;
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        if (hide(hidden[i], err))
            return -1;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (show_device(devices[i], err))
            return -1;
    return symlink("/usr/share/zoneinfo/UTC", ROOT "/etc/localtime")
               ? viv_fail(err, VIV_SYSTEM, "symlink localtime: %m")
               : 0;
}

int template_root_enter(struct viv_error *err) {
    mode_t mask = umask(022);

    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return viv_fail(err, VIV_SYSTEM, "make mounts private: %m");
    if (mount("vivarium", ROOT, "tmpfs", MS_NOSUID | MS_NODEV,
              "size=1m,nr_inodes=1k,mode=755"))
        return viv_fail(err, VIV_SYSTEM, "mount the root: %m");
    if (fill_root(err))
        return -1;
    /* What is bound elsewhere needs its name no longer. */
    if (rmdir(EMPTY_FOLDER) || unlink(EMPTY_FILE))
        return viv_fail(err, VIV_SYSTEM, "remove a name: %m");
    if (mount_read_only(ROOT, MOUNT_ATTR_NODEV, err))
        return -1;
    umask(mask);
    if (chdir(ROOT) || syscall(SYS_pivot_root, ".", ".") || umount2(".", DETACH) ||
        chdir("/"))
        return viv_fail(err, VIV_SYSTEM, "pivot_root: %m");
    return 0;
}
