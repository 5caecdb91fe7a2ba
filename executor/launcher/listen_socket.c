/* SPDX-License-Identifier: MIT */
#include "executor/launcher/listen_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"

#define BACKLOG 256

/* Two that start at once must not take the same old socket away: the second would take the
 * new one of the first. The file stays, so that they always mean the same one. It is open
 * to nobody else, who could hold the lock. */
static int lock_start(const char *path, struct viv_error *err) {
    char lock[sizeof((struct sockaddr_un *)NULL)->sun_path + sizeof ".lock"];

    snprintf(lock, sizeof lock, "%s.lock", path);
    CLEANUP(close_fd)
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return viv_fail(err, VIV_SYSTEM, "open %s: %m", lock);
    if (flock(fd, LOCK_EX))
        return viv_fail(err, VIV_SYSTEM, "lock %s: %m", lock);
    return steal_fd(&fd);
}

/* Removes a socket that nobody listens on any more, and nothing else: connect(2) refuses
 * with the same error where there is no socket at all. */
static int remove_stale(const struct sockaddr_un *address, struct viv_error *err) {
    CLEANUP(close_fd)
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct stat status;

    if (fd < 0)
        return viv_fail(err, VIV_SYSTEM, "socket: %m");
    /* EAGAIN: it lives, and its queue of connections is full. */
    if (connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ||
        errno == EAGAIN)
        return viv_fail(err, VIV_SYSTEM, "another vivarium-executor serves %s",
                        address->sun_path);
    if (errno == ECONNREFUSED && lstat(address->sun_path, &status) == 0 &&
        S_ISSOCK(status.st_mode) && unlink(address->sun_path))
        return viv_fail(err, VIV_SYSTEM, "remove %s: %m", address->sun_path);
    return 0;
}

int listen_socket_open(const char *path, uid_t owner, struct viv_error *err) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof address.sun_path)
        return viv_fail(err, VIV_CONFIG, "the path of the socket is too long: %s", path);
    strcpy(address.sun_path, path);
    CLEANUP(close_fd) int lock = lock_start(path, err); /* until it listens */
    if (lock < 0 || remove_stale(&address, err))
        return -1;
    CLEANUP(close_fd)
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return viv_fail(err, VIV_SYSTEM, "socket: %m");
    mode_t mask = umask(0177);
    int failed = bind(fd, (const struct sockaddr *)&address, sizeof address);
    umask(mask);
    if (failed)
        return viv_fail(err, VIV_SYSTEM, "bind %s: %m", path);
    if ((owner != geteuid() && lchown(path, owner, (gid_t)-1)) || listen(fd, BACKLOG)) {
        viv_fail(err, VIV_SYSTEM, "listen on %s: %m", path);
        unlink(path);
        return -1;
    }
    return steal_fd(&fd);
}
