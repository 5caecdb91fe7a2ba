/* SPDX-License-Identifier: MIT */
#include "executor/launcher/listen_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/path_lock.h"

#define BACKLOG       256
#define LOCK_LIMIT_MS 5000

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
    /* Until it listens: of two that start at once the second would take the new socket of
     * the first for an old one. */
    CLEANUP(close_fd) int lock = path_lock_take(path, viv_after_ms(LOCK_LIMIT_MS), err);
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
