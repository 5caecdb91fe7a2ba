/* SPDX-License-Identifier: MIT */
/*
 * The unix socket that the web server connects to. FastCGI has no authentication, so it
 * is never a network address, and only owner and group may connect. One thread.
 */
#ifndef VIV_LISTENER_H
#define VIV_LISTENER_H

#include "common/error.h"

struct listener {
    int fd;
    int lock; /* of PATH.lock, held as long as we listen */
    char *path;
};

/*
 * Listens at `address`, "unix:PATH", with mode 0660. A socket that nobody accepts at any
 * more is replaced; where somebody does, or holds the lock, it fails with VIV_SYSTEM, and
 * with VIV_CONFIG for an address of another form. To be called before the first thread:
 * it sets the umask for a moment.
 */
int listener_open(struct listener *listener, const char *address, struct viv_error *err);

/* Removes the socket. The zero value with descriptors of -1 is allowed. */
void listener_close(struct listener *listener);

#endif
