/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/session_folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/bytes.h"
#include "executor/control.h"

#define TMP_INODES 1024
#define SHM_SIZE   (1U << 20)
#define SHM_INODES 64
#define DISK_BLOCK 512                 /* of st_blocks: stat(3type) */
#define DEPTH_MAX  64                  /* folders that are open at a time */
#define LOOK_INTO  (S_IRUSR | S_IXUSR) /* what it takes of a folder's mode */

static const char *const in_own_root[SESSION_FOLDER_COUNT] = {
    [SESSION_HOME_FOLDER] = SESSION_HOME,
    [SESSION_TMP_FOLDER] = "/tmp",
    [SESSION_SHM_FOLDER] = "/dev/shm",
};

static const char *const in_slot[SESSION_FOLDER_COUNT] = {
    [SESSION_HOME_FOLDER] = "home",
    [SESSION_TMP_FOLDER] = "tmp",
    [SESSION_SHM_FOLDER] = "shm",
};

static int mount_own(const char *path, uint64_t size, uint64_t inodes,
                     struct viv_error *err) {
    char options[128];

    snprintf(options, sizeof options, "size=%llu,nr_inodes=%llu,mode=0700,uid=%d,gid=%d",
             (unsigned long long)size, (unsigned long long)inodes, SESSION_UID,
             SESSION_GID);
    if (mount("session", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options))
        return viv_fail(err, VIV_SYSTEM, "mount %s: %m", path);
    return 0;
}

int session_folders_mount(uint64_t disk, uint64_t inodes, struct viv_error *err) {
    if (mount_own(SESSION_HOME, disk, inodes, err) ||
        mount_own("/tmp", disk / 4, TMP_INODES, err) ||
        /* Without it multiprocessing.pool.ThreadPool does not start. */
        mount_own("/dev/shm", SHM_SIZE, SHM_INODES, err))
        return -1;
    return 0;
}

int session_folders_open(int folders[SESSION_FOLDER_COUNT], enum isolation_tier tier,
                         struct viv_error *err) {
    const char *const *paths = tier == ISOLATION_MINIMAL ? in_slot : in_own_root;

    for (int i = 0; i < SESSION_FOLDER_COUNT; i++) {
        folders[i] = open(paths[i], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (folders[i] < 0)
            return viv_fail(err, VIV_SYSTEM, "open %s: %m", paths[i]);
    }
    if (fchdir(folders[SESSION_HOME_FOLDER]))
        return viv_fail(err, VIV_SYSTEM, "enter the home: %m");
    return 0;
}

static struct session_use ask_kernel(const int folders[SESSION_FOLDER_COUNT]) {
    struct session_use use = {0};
    struct statvfs status;

    for (int i = 0; i < SESSION_FOLDER_COUNT; i++)
        if (fstatvfs(folders[i], &status) == 0) {
            use.bytes += (uint64_t)(status.f_blocks - status.f_bfree) * status.f_frsize;
            use.inodes += status.f_files - status.f_ffree;
        }
    return use;
}

/* A walk through a folder that code of the session changes meanwhile. */
struct counting {
    enum isolation_tier tier;
    struct session_use use;
    uint64_t most_inodes;
    DIR *open[DEPTH_MAX];
    int depth; /* of open folders */
};

/* For what cannot be counted: as good as too much. */
static void give_up_counting(struct counting *counting) {
    counting->use.inodes = counting->most_inodes + 1;
}

/* Opens a folder to read it. NULL for one that is gone, or is none any more: there is
 * nothing in it. */
static DIR *open_folder(struct counting *counting, int parent, const char *name) {
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);

    if (folder)
        return folder;
    if (fd >= 0)
        close(fd);
    if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR && errno != ELOOP))
        give_up_counting(counting);
    return NULL;
}

/* Code may have taken the right to look into its folder from its own user, who is ours,
 * too. A link that takes the folder's place meanwhile leads to files of this session
 * alone where it has a root of its own, and nowhere else is it followed. */
static bool reveal(const struct counting *counting, int parent, const char *name,
                   mode_t mode) {
    if ((mode & LOOK_INTO) == LOOK_INTO)
        return true;
    return counting->tier != ISOLATION_MINIMAL &&
           (fchmodat(parent, name, (mode & ~(mode_t)S_IFMT) | LOOK_INTO, 0) == 0 ||
            errno == ENOENT);
}

/* One name of a folder; true if it is a folder, too, that can be looked into. */
static bool count(struct counting *counting, int folder, const char *name) {
    struct stat status;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return false;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW)) {
        if (errno != ENOENT)
            give_up_counting(counting);
        return false;
    }
    counting->use.inodes++;
    if (!S_ISDIR(status.st_mode)) {
        /* Each of its names will be found. */
        if (status.st_nlink > 0)
            counting->use.bytes +=
                (uint64_t)status.st_blocks * DISK_BLOCK / (uint64_t)status.st_nlink;
        return false;
    }
    counting->use.bytes += (uint64_t)status.st_blocks * DISK_BLOCK;
    if (reveal(counting, folder, name, status.st_mode))
        return true;
    give_up_counting(counting);
    return false;
}

static bool is_done(const struct counting *counting) {
    return counting->use.inodes > counting->most_inodes;
}

/* ---- far down, where descriptors do not reach: one folder is open, and back up goes by
 * its "..", to the place where it was left ---- */

struct level {
    dev_t device;
    ino_t inode;
    long place; /* telldir(3) */
};

struct descent {
    DIR *folder;
    struct level *above;
    size_t depth, capacity;
};

static void go_down(struct counting *counting, struct descent *descent,
                    const char *name) {
    struct stat status;
    long place = telldir(descent->folder);
    DIR *below = open_folder(counting, dirfd(descent->folder), name);

    if (!below)
        return;
    if (descent->depth == descent->capacity) {
        descent->capacity = descent->capacity ? 2 * descent->capacity : 64;
        descent->above =
            viv_xrealloc(descent->above, descent->capacity * sizeof *descent->above);
    }
    if (fstat(dirfd(descent->folder), &status))
        give_up_counting(counting);
    descent->above[descent->depth++] =
        (struct level){status.st_dev, status.st_ino, place};
    closedir(descent->folder);
    descent->folder = below;
}

/* Returns false at the top, or when code has moved the folder elsewhere. */
static bool go_up(struct counting *counting, struct descent *descent) {
    struct stat status;

    if (descent->depth == 0)
        return false;
    const struct level *level = &descent->above[--descent->depth];
    DIR *above = open_folder(counting, dirfd(descent->folder), "..");
    if (!above)
        return false;
    closedir(descent->folder);
    descent->folder = above;
    if (fstat(dirfd(above), &status) || status.st_dev != level->device ||
        status.st_ino != level->inode) {
        give_up_counting(counting);
        return false;
    }
    seekdir(above, level->place);
    return true;
}

static void count_deep(struct counting *counting, DIR *folder) {
    struct descent descent = {.folder = folder};

    while (!is_done(counting)) {
        struct dirent *found = readdir(descent.folder);
        if (found && count(counting, dirfd(descent.folder), found->d_name))
            go_down(counting, &descent, found->d_name);
        else if (!found && !go_up(counting, &descent))
            break;
    }
    closedir(descent.folder);
    free(descent.above);
}

/* ---- from the top ---- */

static void enter(struct counting *counting, int parent, const char *name) {
    DIR *folder = open_folder(counting, parent, name);

    if (folder && counting->depth == DEPTH_MAX)
        count_deep(counting, folder);
    else if (folder)
        counting->open[counting->depth++] = folder;
}

static void count_all(struct counting *counting, int folder) {
    struct stat status;

    if (fstat(folder, &status) == 0 && (status.st_mode & LOOK_INTO) != LOOK_INTO &&
        fchmod(folder, (status.st_mode & ~(mode_t)S_IFMT) | LOOK_INTO))
        give_up_counting(counting);
    enter(counting, folder, ".");
    while (counting->depth > 0) {
        DIR *innermost = counting->open[counting->depth - 1];
        struct dirent *found = is_done(counting) ? NULL : readdir(innermost);
        if (!found)
            closedir(counting->open[--counting->depth]);
        else if (count(counting, dirfd(innermost), found->d_name))
            enter(counting, dirfd(innermost), found->d_name);
    }
}

struct session_use session_folders_use(const int folders[SESSION_FOLDER_COUNT],
                                       enum isolation_tier tier, uint64_t most_inodes) {
    struct counting counting = {.tier = tier, .most_inodes = most_inodes};

    if (isolation_has_namespaces(tier))
        return ask_kernel(folders);
    for (int i = 0; i < SESSION_FOLDER_COUNT; i++)
        count_all(&counting, folders[i]);
    return counting.use;
}
