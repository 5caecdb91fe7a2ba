/* SPDX-License-Identifier: MIT */
#include "common/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int io_wait(int fd, bool for_writing, viv_time deadline, struct viv_error *err) {
    struct pollfd waited = {.fd = fd, .events = for_writing ? POLLOUT : POLLIN};

    for (;;) {
        int ready = poll(&waited, 1, viv_poll_timeout(deadline));
        if (ready > 0)
            return 0;
        if (ready == 0 && viv_now() >= deadline)
            return viv_fail(err, VIV_TIMED_OUT, "deadline passed");
        if (ready < 0 && errno != EINTR)
            return viv_fail(err, VIV_SYSTEM, "poll: %m");
    }
}

/* Drops `count` written bytes from the front of the vectors. */
static void advance(struct iovec **vectors, int *vector_count, size_t count) {
    while (*vector_count > 0 && count >= (*vectors)->iov_len) {
        count -= (*vectors)->iov_len;
        ++*vectors;
        --*vector_count;
    }
    if (*vector_count > 0) {
        (*vectors)->iov_base = (char *)(*vectors)->iov_base + count;
        (*vectors)->iov_len -= count;
    }
}

int io_write_full(int fd, struct iovec *vectors, int count, viv_time deadline,
                  struct viv_error *err) {
    advance(&vectors, &count, 0);
    while (count > 0) {
        struct msghdr message = {.msg_iov = vectors, .msg_iovlen = (size_t)count};
        ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent >= 0)
            advance(&vectors, &count, (size_t)sent);
        else if (errno == EAGAIN) {
            if (io_wait(fd, true, deadline, err))
                return -1;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return viv_fail(err, VIV_BAD_GATEWAY, "the other end is gone");
        } else if (errno != EINTR) {
            return viv_fail(err, VIV_SYSTEM, "send: %m");
        }
    }
    return 0;
}

int io_set_nonblocking(int fd, struct viv_error *err) {
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return viv_fail(err, VIV_SYSTEM, "fcntl: %m");
    return 0;
}

int io_send_message(int fd, const void *data, size_t size, const int *fds,
                    size_t fd_count, struct viv_error *err) {
    union {
        char bytes[CMSG_SPACE(IO_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec vector = {.iov_base = (void *)data, .iov_len = size};
    struct msghdr message = {.msg_iov = &vector, .msg_iovlen = 1};

    if (fd_count > IO_FDS_MAX)
        return viv_fail(err, VIV_SYSTEM, "too many descriptors");
    if (fd_count > 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(header), fds, fd_count * sizeof(int));
    }
    for (;;) {
        if (sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0)
            return 0;
        if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN)
            return viv_fail(err, VIV_BAD_GATEWAY, "the other end is gone");
        if (errno != EINTR)
            return viv_fail(err, VIV_UNAVAILABLE, "sendmsg: %m");
    }
}

/* Takes the descriptors out of a received message; returns their number. */
static size_t take_fds(struct msghdr *message, int *fds, size_t fds_max, size_t *excess) {
    size_t taken = 0;

    *excess = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
            if (taken < fds_max) {
                fds[taken++] = fd;
            } else {
                close(fd);
                ++*excess;
            }
        }
    }
    return taken;
}

ssize_t io_receive_message(int fd, void *data, size_t size, int *fds, size_t fds_max,
                           size_t *fd_count, struct viv_error *err) {
    union {
        char bytes[CMSG_SPACE(IO_FDS_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec vector = {.iov_base = data, .iov_len = size};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    ssize_t got;
    size_t excess;

    *fd_count = 0;
    do
        got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return viv_fail(err, VIV_UNAVAILABLE, "nothing to receive");
    if (got < 0 && errno == ECONNRESET)
        return 0;
    if (got < 0)
        return viv_fail(err, VIV_SYSTEM, "recvmsg: %m");
    size_t taken = take_fds(&message, fds, fds_max, &excess);
    /* recvmsg(2) cuts off the descriptors that the process has no room for. */
    bool no_room = excess == 0 && (message.msg_flags & MSG_CTRUNC);
    if (no_room || excess > 0 || (message.msg_flags & MSG_TRUNC)) {
        for (size_t i = 0; i < taken; i++)
            close(fds[i]);
        if (no_room)
            return viv_fail(err, VIV_CAPACITY, "too many open files");
        return viv_fail(err, VIV_BAD_GATEWAY,
                        "message too long or with too many descriptors");
    }
    *fd_count = taken;
    return got;
}
