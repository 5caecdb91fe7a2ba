/* SPDX-License-Identifier: MIT */
#include "executor/launcher/event_loop.h"

#include <errno.h>
#include <stddef.h>
#include <sys/epoll.h>

int event_loop_init(struct event_loop *loop, struct viv_error *err) {
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    return loop->epoll < 0 ? viv_fail(err, VIV_SYSTEM, "epoll_create1: %m") : 0;
}

int event_loop_add(struct event_loop *loop, struct event_source *source,
                   struct viv_error *err) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = source};

    if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, source->fd, &event))
        return viv_fail(err, VIV_SYSTEM, "epoll_ctl: %m");
    return 0;
}

void event_loop_remove(struct event_loop *loop, struct event_source *source) {
    epoll_ctl(loop->epoll, EPOLL_CTL_DEL, source->fd, NULL);
}

int event_loop_turn(struct event_loop *loop, viv_time deadline, struct viv_error *err) {
    struct epoll_event event;
    /* One event a turn: a handler may free the source of any other. The kernel goes
     * round. */
    int count = epoll_wait(loop->epoll, &event, 1, viv_poll_timeout(deadline));

    if (count < 0 && errno != EINTR)
        return viv_fail(err, VIV_SYSTEM, "epoll_wait: %m");
    if (count > 0) {
        struct event_source *source = event.data.ptr;
        source->ready(source);
    }
    return 0;
}
