/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/session_folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "executor/control.h"

#define TMP_INODES 1024
#define SHM_SIZE   (1U << 20)
#define SHM_INODES 64
#define DISK_BLOCK 512 /* of st_blocks: stat(3type) */
#define DEPTH_MAX  128 /* folders below one another: each is a descriptor meanwhile */
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

static void enter(struct counting *counting, int parent, const char *name) {
    /* Deeper than anybody needs, and deeper than descriptors reach. */
    if (counting->depth == DEPTH_MAX) {
        give_up_counting(counting);
        return;
    }
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);
    if (folder) {
        counting->open[counting->depth++] = folder;
        return;
    }
    if (fd >= 0)
        close(fd);
    /* One that is gone, or is none any more, has nothing in it. */
    if (fd >= 0 || (errno != ENOENT && errno != ENOTDIR && errno != ELOOP))
        give_up_counting(counting);
}

/* Code may have taken the right to look into its folder from its own user, who is ours, too.
 * A link that takes the folder's place meanwhile leads to files of this session alone where
 * it has a root of its own, and nowhere else is it followed. */
static bool reveal(const struct counting *counting, int parent, const char *name,
                   mode_t mode) {
    if ((mode & LOOK_INTO) == LOOK_INTO)
        return true;
    return counting->tier != ISOLATION_MINIMAL &&
           (fchmodat(parent, name, (mode & ~(mode_t)S_IFMT) | LOOK_INTO, 0) == 0 ||
            errno == ENOENT);
}

/* One name of the innermost folder. */
static void count(struct counting *counting, const char *name) {
    int folder = dirfd(counting->open[counting->depth - 1]);
    struct stat status;

    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW)) {
        if (errno != ENOENT)
            give_up_counting(counting);
        return;
    }
    counting->use.inodes++;
    if (S_ISDIR(status.st_mode)) {
        counting->use.bytes += (uint64_t)status.st_blocks * DISK_BLOCK;
        if (reveal(counting, folder, name, status.st_mode))
            enter(counting, folder, name);
        else
            give_up_counting(counting);
    } else if (status.st_nlink > 0) {
        /* Each of its names will be found. */
        counting->use.bytes +=
            (uint64_t)status.st_blocks * DISK_BLOCK / (uint64_t)status.st_nlink;
    }
}

static void count_all(struct counting *counting, int folder) {
    struct stat status;

    if (fstat(folder, &status) == 0 && (status.st_mode & LOOK_INTO) != LOOK_INTO &&
        fchmod(folder, (status.st_mode & ~(mode_t)S_IFMT) | LOOK_INTO))
        give_up_counting(counting);
    enter(counting, folder, ".");
    while (counting->depth > 0) {
        struct dirent *found = counting->use.inodes > counting->most_inodes
                                   ? NULL
                                   : readdir(counting->open[counting->depth - 1]);
        if (found)
            count(counting, found->d_name);
        else
            closedir(counting->open[--counting->depth]);
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
