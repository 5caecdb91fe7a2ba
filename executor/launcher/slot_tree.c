/* SPDX-License-Identifier: MIT */
#include "executor/launcher/slot_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "executor/control.h"
#include "executor/launcher/empty_folder.h"
#include "executor/launcher/link_tree.h"
#include "executor/session_root.h"

#define BASE     "base"
#define MADE_FOR "made-for"
#define PACKAGES "/var/lib/dpkg/status" /* written at every change of a package */
#define FOLDER   (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

const char *const slot_tree_writable[SLOT_TREE_WRITABLE] = {&SESSION_HOME[1], "tmp",
                                                            "dev/shm"};

/* ---- pieces ---- */

static int write_file(int folder, const char *path, const char *content,
                      struct viv_error *err) {
    CLEANUP(close_fd)
    int fd = openat(folder, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    size_t size = strlen(content);

    if (fd < 0 || write(fd, content, size) != (ssize_t)size)
        return viv_fail(err, VIV_SYSTEM, "write %s: %m", path);
    return 0;
}

/* Puts a file of that content there in one step, over what was there. */
static int replace_file(int folder, const char *path, const char *content,
                        struct viv_error *err) {
    char fresh[NAME_MAX + 1];

    snprintf(fresh, sizeof fresh, "%s.new", path);
    unlinkat(folder, fresh, 0);
    if (write_file(folder, fresh, content, err))
        return -1;
    if (renameat(folder, fresh, folder, path))
        return viv_fail(err, VIV_SYSTEM, "rename %s: %m", path);
    return 0;
}

/* Whether the file has exactly that content. */
static bool has_content(int folder, const char *path, const char *content) {
    CLEANUP(close_fd) int fd = openat(folder, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    char found[PATH_MAX];
    size_t size = strlen(content);

    return fd >= 0 && size < sizeof found &&
           read(fd, found, sizeof found) == (ssize_t)size &&
           memcmp(found, content, size) == 0;
}

static bool is_there(int folder, const char *path) {
    struct stat status;

    return fstatat(folder, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static int make_devices(int tree, struct viv_error *err) {
    char path[64];

    for (size_t i = 0; i < SESSION_ROOT_DEVICES; i++) {
        const struct session_root_device *device = &session_root_devices[i];
        snprintf(path, sizeof path, "dev/%s", device->name);
        /* EPERM: without CAP_MKNOD a session has none. */
        if (!is_there(tree, path) &&
            mknodat(tree, path, S_IFCHR | 0666,
                    makedev(SESSION_ROOT_DEVICE_MAJOR, device->minor)) &&
            errno != EPERM)
            return viv_fail(err, VIV_SYSTEM, "mknod %s: %m", path);
    }
    return 0;
}

/* ---- what they are made of ---- */

/* Whole seconds: an image keeps no more of a time. */
static void fingerprint(char *text, size_t size) {
    struct stat packages = {0};

    if (stat(PACKAGES, &packages))
        packages = (struct stat){0};
    snprintf(text, size, "vivarium %s\n%s\n%s\npackages %lld %lld\n", PACKAGE_VERSION,
             VIVARIUM_PYTHON_DIRECTORY, VIVARIUM_LIBRARY_DIRECTORY,
             (long long)packages.st_size, (long long)packages.st_mtim.tv_sec);
}

bool slot_trees_are_outdated(int slots) {
    char now[PATH_MAX];

    fingerprint(now, sizeof now);
    return is_there(slots, MADE_FOR) && !has_content(slots, MADE_FOR, now);
}

int slot_trees_note(int slots, struct viv_error *err) {
    char now[PATH_MAX];

    fingerprint(now, sizeof now);
    if (has_content(slots, MADE_FOR, now))
        return 0;
    return replace_file(slots, MADE_FOR, now, err);
}

/* ---- trees ---- */

int slot_tree_remove(int slots, const char *name, struct viv_error *err) {
    CLEANUP(close_fd)
    int tree = openat(slots, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (tree < 0 && errno == ENOENT)
        return 0;
    if (tree < 0)
        return viv_fail(err, VIV_SYSTEM, "open %s: %m", name);
    if (empty_folder(tree, err))
        return -1;
    if (unlinkat(slots, name, AT_REMOVEDIR))
        return viv_fail(err, VIV_SYSTEM, "remove %s: %m", name);
    return 0;
}

static int fill_base(int base, struct viv_error *err) {
    CLEANUP(close_fd) int host = open("/", FOLDER);
    bool copied = false;

    if (host < 0)
        return viv_fail(err, VIV_SYSTEM, "open /: %m");
    for (size_t i = 0; i < SESSION_ROOT_SHOWN; i++) {
        struct link_tree shown = {.host = true,
                                  .libraries = session_root_shown[i].libraries,
                                  .hidden = session_root_hidden,
                                  .hidden_count = SESSION_ROOT_HIDDEN};
        if (link_tree_show(&shown, host, session_root_shown[i].path, base, err))
            return -1;
        copied = copied || shown.copied;
    }
    for (size_t i = 0; i < SESSION_ROOT_FILES; i++)
        if (write_file(base, &session_root_files[i].path[1],
                       session_root_files[i].content, err))
            return -1;
    for (size_t i = 0; i < SESSION_ROOT_LINKS; i++)
        if (symlinkat(session_root_links[i].target, base, &session_root_links[i].path[1]))
            return viv_fail(err, VIV_SYSTEM, "symlink: %m");
    /* Otherwise a base could be there after a crash with copies that are not whole. */
    CLEANUP(close_fd)
    int opened = copied ? openat(base, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (copied && (opened < 0 || syncfs(opened)))
        return viv_fail(err, VIV_SYSTEM, "write the copies out: %m");
    return 0;
}

static int make_directories(int tree, struct viv_error *err) {
    for (size_t i = 0; i < SESSION_ROOT_DIRECTORIES; i++)
        if (mkdirat(tree, &session_root_directories[i][1], 0755) && errno != EEXIST)
            return viv_fail(err, VIV_SYSTEM, "mkdir %s: %m", session_root_directories[i]);
    return 0;
}

/* Makes a folder NAME.new, lets `fill` fill it, and renames it. */
static int make_whole(int slots, const char *name,
                      int (*fill)(int slots, int tree, struct viv_error *err),
                      struct viv_error *err) {
    char fresh[NAME_MAX + 1];

    snprintf(fresh, sizeof fresh, "%s.new", name);
    if (slot_tree_remove(slots, fresh, err))
        return -1;
    if (mkdirat(slots, fresh, 0755))
        return viv_fail(err, VIV_SYSTEM, "mkdir %s: %m", fresh);
    CLEANUP(close_fd) int tree = openat(slots, fresh, FOLDER);
    if (tree < 0)
        return viv_fail(err, VIV_SYSTEM, "open %s: %m", fresh);
    if (make_directories(tree, err) || fill(slots, tree, err)) {
        slot_tree_remove(slots, fresh, NULL);
        return -1;
    }
    if (renameat(slots, fresh, slots, name))
        return viv_fail(err, VIV_SYSTEM, "rename %s: %m", fresh);
    return 0;
}

static int fill_as_base(int slots, int tree, struct viv_error *err) {
    (void)slots;
    return fill_base(tree, err);
}

static int fill_from_base(int slots, int tree, struct viv_error *err) {
    CLEANUP(close_fd) int base = openat(slots, BASE, FOLDER);
    struct link_tree all = {0};

    if (base < 0)
        return viv_fail(err, VIV_SYSTEM, "open " BASE ": %m");
    return link_tree_show(&all, base, "/", tree, err);
}

static int make_tree(int slots, const char *name, struct viv_error *err) {
    if (!is_there(slots, name)) {
        if (!is_there(slots, BASE) && make_whole(slots, BASE, fill_as_base, err))
            return -1;
        if (make_whole(slots, name, fill_from_base, err))
            return -1;
    }
    return 0;
}

static int add_devices(int slots, const char *name, struct viv_error *err) {
    CLEANUP(close_fd) int tree = openat(slots, name, FOLDER);

    if (tree < 0)
        return viv_fail(err, VIV_SYSTEM, "open %s: %m", name);
    return make_devices(tree, err);
}

int slot_tree_make_ahead(int slots, const char *name, struct viv_error *err) {
    mode_t mask = umask(0);
    int result = make_tree(slots, name, err);

    umask(mask);
    return result;
}

int slot_tree_make(int slots, const char *name, struct viv_error *err) {
    mode_t mask = umask(0);
    int result = make_tree(slots, name, err) ? -1 : add_devices(slots, name, err);

    umask(mask);
    return result;
}

static int set_user(int tree, uid_t uid, struct viv_error *err) {
    char user[128], group[64];

    snprintf(user, sizeof user, "earth:x:%u:%u::%s:/nonexistent\n", (unsigned)uid,
             (unsigned)uid, SESSION_HOME);
    snprintf(group, sizeof group, "earth:x:%u:\n", (unsigned)uid);
    if (!has_content(tree, "etc/passwd", user) &&
        replace_file(tree, "etc/passwd", user, err))
        return -1;
    if (!has_content(tree, "etc/group", group) &&
        replace_file(tree, "etc/group", group, err))
        return -1;
    return 0;
}

int slot_tree_set_user(int slots, const char *name, uid_t uid, struct viv_error *err) {
    CLEANUP(close_fd) int tree = openat(slots, name, FOLDER);

    if (tree < 0)
        return viv_fail(err, VIV_SYSTEM, "open %s: %m", name);
    mode_t mask = umask(0);
    int result = set_user(tree, uid, err);
    umask(mask);
    return result;
}
