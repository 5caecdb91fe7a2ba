/* SPDX-License-Identifier: MIT */
/*
 * The threads that take requests: each accepts a connection, has its request answered,
 * and accepts the next one. Knows no routes but the one function.
 */
#ifndef VIV_SERVER_H
#define VIV_SERVER_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include "common/clock.h"
#include "fcgi-app/app.h"
#include "fcgi-app/listener.h"

struct server {
    struct app *app;
    struct listener *listener; /* borrowed; made non-blocking */
    int epoll;                 /* that all threads wait on for it */
    pthread_t *threads;
    size_t thread_count;
    _Atomic bool stopping;
    int bell; /* eventfd(2): wakes all threads, for good */
    _Atomic int
        spare; /* given up for a connection when there is no other descriptor; -1 */
    _Atomic viv_time complained; /* of an accept(2) that failed */
    pthread_mutex_t lock;
    pthread_cond_t ended;
    size_t running; /* threads */
};

/* Starts the threads. The caller has blocked all signals that it handles itself. */
int server_start(struct server *server, struct app *app, struct listener *listener,
                 struct viv_error *err);

/* Waits until no call runs, while all requests are answered: once sessions_stop() was
 * called, no further one begins. Returns false at `deadline`, and at once when one of
 * `signals` comes, which are blocked. */
bool server_finish_calls(struct server *server, viv_time deadline,
                         const sigset_t *signals);

/* Takes no more connections but those that wait already, and waits until `deadline` for
 * the requests under way. Returns whether all have ended; if not, their threads go on,
 * and `app` must not be cleared. */
bool server_stop(struct server *server, viv_time deadline);

#endif
