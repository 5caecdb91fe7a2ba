/* SPDX-License-Identifier: MIT */
/*
 * The socket that the web server connects to. FastCGI has no authentication: at a unix
 * socket only owner and group may connect, at an address of TCP only those that are
 * named. One thread opens and closes it; any number accept.
 */
#ifndef VIV_LISTENER_H
#define VIV_LISTENER_H

#include <stdbool.h>

#include "common/clock.h"
#include "common/error.h"
#include "fcgi-app/client_address.h"

struct listener {
    int fd;
    int lock;                    /* of PATH.lock, held as long as we listen; TCP: -1 */
    char *path;                  /* of a unix socket; TCP: NULL */
    bool kept;                   /* it outlives us: who started us has it, too */
    struct networks allowed;     /* TCP: who may connect */
    bool exposed;                /* other hosts could connect */
    _Atomic viv_time complained; /* of one that may not */
};

/* Says with VIV_CONFIG what is wrong with the form of the two settings. */
int listener_check(const char *address, const char *web_servers, struct viv_error *err);

/*
 * Listens at `address`. "unix:PATH" gets mode 0660; a socket that nobody accepts at any
 * more is replaced; where somebody does, or holds the lock, it fails with VIV_SYSTEM.
 * `given`, a descriptor or -1, is ours from here on: if it listens at PATH, and who
 * connects there comes to it, it is used, and kept. "tcp:127.0.0.1:9000" and
 * "tcp:[::1]:9000" let `web_servers` connect, networks as networks_parse() reads them.
 * Fails with VIV_CONFIG as listener_check(). To be called before the first thread: it
 * sets the umask for a moment.
 */
int listener_open(struct listener *listener, const char *address, const char *web_servers,
                  int given, struct viv_error *err);

/* The next connection, or -1 with the errno of accept4(2); that is ECONNABORTED for one
 * that may not connect, which is closed and logged. */
int listener_accept(struct listener *listener);

/* Removes the name of a unix socket that is not kept, and nothing that a thread which
 * still accepts may look at: for a process that ends without waiting for them. */
void listener_unlink(const struct listener *listener);

/* Removes the socket, unless it is kept. The zero value with descriptors of -1 is
 * allowed. */
void listener_close(struct listener *listener);

#endif
