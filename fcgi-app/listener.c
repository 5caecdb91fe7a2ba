/* SPDX-License-Identifier: MIT */
#include "fcgi-app/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"

#define SCHEME  "unix:"
#define BACKLOG 1024 /* net.core.somaxconn may be less */

static int lock_path(const char *path, struct viv_error *err) {
    char lock[sizeof((struct sockaddr_un *)NULL)->sun_path + sizeof ".lock"];

    snprintf(lock, sizeof lock, "%s.lock", path);
    CLEANUP(close_fd)
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return viv_fail(err, VIV_SYSTEM, "open %s: %m", lock);
    /* flock(2): gone with its holder, however that ends. The file stays, so that two can
     * never hold locks on two files of this name. */
    if (flock(fd, LOCK_EX | LOCK_NB))
        return viv_fail(err, VIV_SYSTEM, "%s is locked: another one listens there", lock);
    return steal_fd(&fd);
}

/* Removes the socket of one that has ended. The lock keeps out our own kind only,
 * so ask. */
static int remove_stale(const struct sockaddr_un *address, struct viv_error *err) {
    struct stat status;
    CLEANUP(close_fd)
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (lstat(address->sun_path, &status))
        return errno == ENOENT ? 0
                               : viv_fail(err, VIV_SYSTEM, "%s: %m", address->sun_path);
    if (!S_ISSOCK(status.st_mode))
        return viv_fail(err, VIV_SYSTEM, "%s is there and no socket", address->sun_path);
    if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ||
        errno != ECONNREFUSED)
        return viv_fail(err, VIV_SYSTEM, "somebody listens at %s", address->sun_path);
    if (unlink(address->sun_path))
        return viv_fail(err, VIV_SYSTEM, "unlink %s: %m", address->sun_path);
    return 0;
}

static int listen_at(const struct sockaddr_un *address, struct viv_error *err) {
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return viv_fail(err, VIV_SYSTEM, "socket: %m");
    /* bind(2) makes the socket with the mode that the umask leaves: so it is
     * never wider. */
    mode_t old = umask(0117);
    int failed = bind(fd, (const struct sockaddr *)address, sizeof *address);
    umask(old);
    if (failed)
        return viv_fail(err, VIV_SYSTEM, "bind %s: %m", address->sun_path);
    if (listen(fd, BACKLOG)) {
        unlink(address->sun_path);
        return viv_fail(err, VIV_SYSTEM, "listen %s: %m", address->sun_path);
    }
    return steal_fd(&fd);
}

int listener_open(struct listener *listener, const char *address, struct viv_error *err) {
    struct sockaddr_un socket_address = {.sun_family = AF_UNIX};

    *listener = (struct listener){.fd = -1, .lock = -1};
    if (strncmp(address, SCHEME, sizeof SCHEME - 1) != 0)
        return viv_fail(err, VIV_CONFIG, "listen: not of the form unix:PATH");
    const char *path = address + sizeof SCHEME - 1;
    if (*path == '\0' || strlen(path) >= sizeof socket_address.sun_path)
        return viv_fail(err, VIV_CONFIG, "listen: a path of 1 to %zu bytes",
                        sizeof socket_address.sun_path - 1);
    strcpy(socket_address.sun_path, path);
    CLEANUP(close_fd) int lock = lock_path(path, err);
    if (lock < 0 || remove_stale(&socket_address, err))
        return -1;
    listener->fd = listen_at(&socket_address, err);
    if (listener->fd < 0)
        return -1;
    listener->lock = steal_fd(&lock);
    listener->path = viv_xstrdup(path);
    return 0;
}

void listener_close(struct listener *listener) {
    if (listener->path)
        unlink(listener->path);
    free(listener->path);
    listener->path = NULL;
    close_and_clear(&listener->fd);
    close_and_clear(&listener->lock);
}
