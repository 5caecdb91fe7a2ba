/* SPDX-License-Identifier: MIT */
/*
 * Reading and writing descriptors with deadlines, and messages with descriptors over a
 * SOCK_SEQPACKET socket. Knows no protocol. Any thread; blocks no longer than its
 * deadline.
 */
#ifndef VIV_IO_H
#define VIV_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "common/clock.h"
#include "common/error.h"

/* Waits until fd is readable (or writable) or at its end. Fails with VIV_TIMED_OUT at the
 * deadline. */
int io_wait(int fd, bool for_writing, viv_time deadline, struct viv_error *err);

/* Writes all of the vectors to a socket, and uses them up; no SIGPIPE. Fails with
 * VIV_TIMED_OUT at the deadline, a part may be written then, and with VIV_BAD_GATEWAY
 * when the other end is gone. */
int io_write_full(int fd, struct iovec *vectors, int count, viv_time deadline,
                  struct viv_error *err);

/* For everybody who has the same open file, too (fcntl(2)). */
int io_set_nonblocking(int fd, struct viv_error *err);

#define IO_FDS_MAX 16

/* Sends one message of a SOCK_SEQPACKET socket with `fd_count` descriptors, which stay
 * the caller's. Does not block: a full socket is a failure (VIV_UNAVAILABLE). */
int io_send_message(int fd, const void *data, size_t size, const int *fds,
                    size_t fd_count, struct viv_error *err);

/*
 * Receives one message. At most `size` bytes and `fds_max` descriptors (close-on-exec,
 * the caller's); a longer message or more descriptors fail with VIV_BAD_GATEWAY and leave
 * none open. Returns the bytes received, 0 at end of file, -1 on failure: VIV_UNAVAILABLE
 * when a non-blocking socket has nothing, VIV_CAPACITY when the process has no room for
 * the descriptors, which are then lost; `data` has the message.
 */
ssize_t io_receive_message(int fd, void *data, size_t size, int *fds, size_t fds_max,
                           size_t *fd_count, struct viv_error *err);

#endif
