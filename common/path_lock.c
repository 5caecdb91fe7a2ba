/* SPDX-License-Identifier: MIT */
#include "common/path_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"

#define LOOK_AGAIN_MS 10

int path_lock_take(const char *path, viv_time deadline, struct viv_error *err) {
    const struct timespec pause = {.tv_nsec = LOOK_AGAIN_MS * VIV_MS};
    char name[PATH_MAX];

    if (snprintf(name, sizeof name, "%s.lock", path) >= (int)sizeof name)
        return viv_fail(err, VIV_SYSTEM, "the name of a lock is too long: %s.lock", path);
    CLEANUP(close_fd)
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return viv_fail(err, VIV_SYSTEM, "open %s: %m", name);
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK)
            return viv_fail(err, VIV_SYSTEM, "lock %s: %m", name);
        if (viv_now() >= deadline)
            return viv_fail(err, VIV_SYSTEM, "%s is locked by another process", name);
        nanosleep(&pause, NULL);
    }
    return steal_fd(&fd);
}
