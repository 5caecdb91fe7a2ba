/* SPDX-License-Identifier: MIT */
#include "fcgi-app/server.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/descriptors.h"
#include "common/io.h"
#include "common/log.h"
#include "fcgi-app/fastcgi.h"
#include "fcgi-app/routes.h"

/* Above all that a request needs: base64 takes 65 KiB, jansson some 100 KiB for a value
 * of the largest depth. Sanitizers take a multiple. */
#define STACK_SIZE (1024 * 1024)

#define FINISH_TICK_MS 10
#define BELL           1 /* of what epoll(7) watches; the listener is 0 */

static void serve(struct server *server, int connection) {
    struct viv_error err;
    struct fastcgi_request *request = fastcgi_begin(connection, &err);

    if (!request) {
        viv_log_failure(VIV_LOG_DEBUG, "connection_without_request", err.message, NULL);
        return;
    }
    routes_handle(server->app, fastcgi_connection(request));
    fastcgi_free(request);
}

/* One line a second for all threads. */
static void complain(struct server *server, int error) {
    viv_time now = viv_now(), last = server->complained;

    if (now - last > VIV_SECOND &&
        atomic_compare_exchange_strong(&server->complained, &last, now))
        viv_log_failure(VIV_LOG_ERROR, "accept_failed", strerrordesc_np(error), NULL);
}

/* A lack of descriptors or memory passes; a connection that is gone matters to nobody. */
static void pause_after_failure(struct server *server) {
    const struct timespec pause = {.tv_nsec = 100 * VIV_MS};

    if (errno == EINTR || errno == ECONNABORTED || errno == EAGAIN)
        return;
    complain(server, errno);
    nanosleep(&pause, NULL);
}

/* Where there is no descriptor for it, the connection gets the spare one, and so an
 * answer: one at a time. Others wait for theirs in the socket's queue. */
static int accept_connection(struct server *server) {
    int connection = listener_accept(server->listener), spare;

    if (connection >= 0 || (errno != EMFILE && errno != ENFILE))
        return connection;
    complain(server, errno);
    spare = atomic_exchange(&server->spare, -1);
    if (spare < 0) {
        errno = EMFILE;
        return -1;
    }
    close(spare);
    return listener_accept(server->listener);
}

/* After a connection has been closed there is room for it again. */
static void provide_spare(struct server *server) {
    int none = -1;

    if (server->spare >= 0)
        return;
    int spare = descriptors_spare();
    if (spare >= 0 && !atomic_compare_exchange_strong(&server->spare, &none, spare))
        close(spare);
}

/* Lets the next connection, or the end of the listening, wake one thread. */
static int arm(struct server *server, int operation) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT};

    return epoll_ctl(server->epoll, operation, server->listener->fd, &event);
}

/* Threads wait in epoll_wait(2) and not in accept(2): that wakes the one that has waited
 * longest, and all take turns on cold stacks and caches; this wakes the one that waited
 * last. Returns -1 when there is no connection after all. */
static int next_connection(struct server *server) {
    struct epoll_event event;

    if (epoll_wait(server->epoll, &event, 1, -1) <= 0 || event.data.u32 == BELL)
        return -1;
    /* The next of us takes it. */
    if (server->stopping && server->listener->kept)
        return -1;
    int connection = accept_connection(server);
    if (connection < 0 && !server->stopping)
        pause_after_failure(server);
    arm(server, EPOLL_CTL_MOD);
    return connection;
}

static void *run_thread(void *context) {
    struct server *server = context;
    int connection;

    /* At the end those are served first that wait in the queue of the socket. */
    do {
        connection = next_connection(server);
        if (connection >= 0)
            serve(server, connection);
        provide_spare(server);
    } while (connection >= 0 || !server->stopping);
    pthread_mutex_lock(&server->lock);
    server->running--;
    pthread_cond_signal(&server->ended);
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

static void server_init(struct server *server, struct app *app,
                        struct listener *listener) {
    pthread_condattr_t attributes;

    *server = (struct server){.app = app, .listener = listener, .epoll = -1, .bell = -1};
    server->spare = descriptors_spare();
    server->threads = viv_xcalloc(app->settings->threads, sizeof *server->threads);
    pthread_mutex_init(&server->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&server->ended, &attributes);
    pthread_condattr_destroy(&attributes);
}

static int watch_listener(struct server *server, struct viv_error *err) {
    struct epoll_event rung = {.events = EPOLLIN, .data.u32 = BELL};

    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    server->bell = eventfd(0, EFD_CLOEXEC);
    if (server->epoll < 0 || server->bell < 0 || arm(server, EPOLL_CTL_ADD) ||
        epoll_ctl(server->epoll, EPOLL_CTL_ADD, server->bell, &rung))
        return viv_fail(err, VIV_SYSTEM, "epoll: %m");
    /* A connection that is gone by the time of accept(2) must not hold a thread there. */
    return io_set_nonblocking(server->listener->fd, err);
}

/* What is left when no thread runs. */
static void release(struct server *server) {
    pthread_cond_destroy(&server->ended);
    pthread_mutex_destroy(&server->lock);
    free(server->threads);
    if (server->spare >= 0)
        close(server->spare);
    if (server->bell >= 0)
        close(server->bell);
    if (server->epoll >= 0)
        close(server->epoll);
}

int server_start(struct server *server, struct app *app, struct listener *listener,
                 struct viv_error *err) {
    pthread_attr_t attributes;
    int failed = 0;

    server_init(server, app, listener);
    if (watch_listener(server, err)) {
        release(server);
        return -1;
    }
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    pthread_mutex_lock(&server->lock);
    while (!failed && server->thread_count < app->settings->threads) {
        failed = pthread_create(&server->threads[server->thread_count], &attributes,
                                run_thread, server);
        server->thread_count += !failed;
    }
    server->running = server->thread_count;
    pthread_mutex_unlock(&server->lock);
    pthread_attr_destroy(&attributes);
    if (!failed)
        return 0;
    viv_fail(err, VIV_SYSTEM, "%zu threads could be started: %s", server->thread_count,
             strerrordesc_np(failed));
    server_stop(server, VIV_TIME_NEVER);
    return -1;
}

static bool wait_for_threads(struct server *server, viv_time deadline) {
    struct timespec until = {.tv_sec = deadline / VIV_SECOND,
                             .tv_nsec = deadline % VIV_SECOND};
    int result = 0;

    pthread_mutex_lock(&server->lock);
    while (server->running > 0 && result != ETIMEDOUT)
        result = pthread_cond_timedwait(&server->ended, &server->lock, &until);
    bool all = server->running == 0;
    pthread_mutex_unlock(&server->lock);
    return all;
}

bool server_finish_calls(struct server *server, viv_time deadline,
                         const sigset_t *signals) {
    const struct timespec pause = {.tv_nsec = FINISH_TICK_MS * VIV_MS};

    while (server->app->calls.used > 0)
        if (viv_now() >= deadline || sigtimedwait(signals, NULL, &pause) > 0)
            return false;
    return true;
}

bool server_stop(struct server *server, viv_time deadline) {
    server->stopping = true;
    /* Wakes the threads, one after the other. Who has connected to a unix socket by now
     * is still accepted; nobody else can. One that is kept has them for the next of
     * us. */
    if (server->listener->kept)
        eventfd_write(server->bell, 1);
    else
        shutdown(server->listener->fd, SHUT_RDWR);
    if (!wait_for_threads(server, deadline))
        return false;
    for (size_t i = 0; i < server->thread_count; i++)
        pthread_join(server->threads[i], NULL);
    release(server);
    return true;
}
