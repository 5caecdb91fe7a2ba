/* SPDX-License-Identifier: MIT */
#include "executor/launcher/cgroup_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"

#define RETRY_NS  (2 * 1000 * 1000)
#define DEPTH_MAX 4 /* of groups below one that is removed */

/* close(2) keeps no errno. */
static int close_with(int fd, int result) {
    int error = errno;

    close(fd);
    errno = error;
    return result;
}

int cgroup_write(int group, const char *file, const char *text) {
    int fd = openat(group, file, O_WRONLY | O_TRUNC | O_CLOEXEC);
    size_t size = strlen(text);

    if (fd < 0)
        return -1;
    /* Taken as a whole or not at all. */
    return close_with(fd, write(fd, text, size) == (ssize_t)size ? 0 : -1);
}

int cgroup_read(int group, const char *file, char *text, size_t size) {
    int fd = openat(group, file, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -1;
    ssize_t got = read(fd, text, size - 1);
    text[got > 0 ? got : 0] = '\0';
    return close_with(fd, got < 0 ? -1 : 0);
}

bool cgroup_list_has(const char *list, const char *word) {
    size_t length = strlen(word);

    for (;;) {
        list += strspn(list, " \n");
        size_t found = strcspn(list, " \n");
        if (found == 0)
            return false;
        if (found == length && memcmp(list, word, length) == 0)
            return true;
        list += found;
    }
}

/* The type of the root cannot be changed, so that it has no file for it. */
bool cgroup_is_root(int group) {
    return faccessat(group, "cgroup.type", F_OK, 0) != 0 &&
           faccessat(group, "cgroup.procs", F_OK, 0) == 0;
}

bool cgroup_has_processes(int group) {
    char text[32];

    return cgroup_read(group, "cgroup.procs", text, sizeof text) == 0 && text[0];
}

int cgroup_make(int parent, const char *name, mode_t mode) {
    if (mkdirat(parent, name, mode) && errno != EEXIST)
        return -1;
    int group = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (group < 0)
        return -1;
    if (fchmod(group, mode)) {
        close_with(group, -1);
        return -1;
    }
    return group;
}

int cgroup_each_child(int group, int (*each)(int group, const char *name, void *context),
                      void *context) {
    /* A copy by dup(2) would share its offset with the caller's descriptor. */
    int own = openat(group, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = own < 0 ? NULL : fdopendir(own);
    const struct dirent *entry;
    int result = 0;

    if (!directory)
        return own < 0 ? -1 : close_with(own, -1);
    while (result == 0 && (entry = readdir(directory)))
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            result = each(group, entry->d_name, context);
    int error = errno;
    closedir(directory);
    errno = error;
    return result;
}

struct removal {
    viv_time deadline;
    int depth;
};

static int remove_group(int parent, const char *name, void *context) {
    const struct timespec pause = {.tv_nsec = RETRY_NS};
    const struct removal *removal = context;
    struct removal below = {removal->deadline, removal->depth + 1};
    int group = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    if (group < 0)
        return errno == ENOENT ? 0 : -1;
    int result = 0;
    if (removal->depth < DEPTH_MAX)
        result = cgroup_each_child(group, remove_group, &below);
    if (close_with(group, result))
        return -1;
    while (unlinkat(parent, name, AT_REMOVEDIR) && errno != ENOENT) {
        if (errno != EBUSY || viv_now() >= removal->deadline)
            return -1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

int cgroup_remove(int parent, const char *name, viv_time deadline) {
    return remove_group(parent, name, &(struct removal){.deadline = deadline});
}
