/* SPDX-License-Identifier: MIT */
/*
 * A small loop over epoll(7) for the launcher's one thread. A source is part of the
 * structure that it belongs to; its handler may remove and free it, or any other source.
 * Knows neither what a source is nor how it is read; owns no descriptor but its own.
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

/* Fails with VIV_SYSTEM. The loop lasts as long as its process: nothing ends it. */
int event_loop_init(struct event_loop *loop, struct viv_error *err);

/* The source, and its descriptor, stay the caller's and where they are until
 * event_loop_remove(). Fails with VIV_SYSTEM; the source is then not in the loop. */
int event_loop_add(struct event_loop *loop, struct event_source *source,
                   struct viv_error *err);

/* To be called before the descriptor is closed. A source that is not in the loop is no
 * failure. */
void event_loop_remove(struct event_loop *loop, struct event_source *source);

/* Waits until a source is ready, and calls its handler; 0 also when none was by
 * `deadline`. Fails with VIV_SYSTEM when it cannot wait. */
int event_loop_turn(struct event_loop *loop, viv_time deadline, struct viv_error *err);

#endif
