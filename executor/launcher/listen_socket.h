/* SPDX-License-Identifier: MIT */
/* The socket of vivarium-executor in the file system. */
#ifndef VIV_LISTEN_SOCKET_H
#define VIV_LISTEN_SOCKET_H

#include <sys/types.h>

#include "common/error.h"

/* Binds a SOCK_SEQPACKET socket at `path`, mode 0600, owned by `owner` where this process
 * may give it away. A socket that nobody listens on any more is replaced; one that
 * answers is a failure. `path`.lock is made beside it and stays: of two that start at
 * once one waits there for the other. */
int listen_socket_open(const char *path, uid_t owner, struct viv_error *err);

#endif
