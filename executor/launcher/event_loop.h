/* SPDX-License-Identifier: MIT */
/*
 * A small loop over epoll(7) for the launcher's one thread. A source is part of the
 * structure that it belongs to; its handler may remove and free it, or any other source.
 */
#ifndef VIV_EVENT_LOOP_H
#define VIV_EVENT_LOOP_H

#include "common/clock.h"
#include "common/error.h"

struct event_source {
    int fd;
    void (*ready)(struct event_source *source); /* readable, at its end or failed */
};

struct event_loop {
    int epoll;
};

int event_loop_init(struct event_loop *loop, struct viv_error *err);

/* The source stays the caller's and where it is until event_loop_remove(). */
int event_loop_add(struct event_loop *loop, struct event_source *source,
                   struct viv_error *err);

/* Before the descriptor is closed. */
void event_loop_remove(struct event_loop *loop, struct event_source *source);

/* Handles at most one source that is ready before `deadline`. */
int event_loop_turn(struct event_loop *loop, viv_time deadline, struct viv_error *err);

#endif
