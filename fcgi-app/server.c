/* SPDX-License-Identifier: MIT */
#include "fcgi-app/server.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "common/bytes.h"
#include "common/log.h"
#include "fcgi-app/fastcgi.h"
#include "fcgi-app/routes.h"

/* Above all that a request needs: base64 takes 65 KiB, jansson some 100 KiB for a value
 * of the largest depth. Sanitizers take a multiple. */
#define STACK_SIZE (1024 * 1024)

static void serve(struct server *server, int connection) {
    struct viv_error err;
    struct fastcgi_request *request = fastcgi_begin(connection, &err);

    if (!request) {
        viv_log(VIV_LOG_DEBUG, "connection_without_request", "error=\"%s\"", err.message);
        return;
    }
    routes_handle(server->app, fastcgi_connection(request));
    fastcgi_free(request);
}

/* A lack of descriptors or memory passes; a connection that is gone matters to nobody. */
static void pause_after_failure(struct server *server) {
    const struct timespec pause = {.tv_nsec = 100 * VIV_MS};
    viv_time now = viv_now(), last = server->complained;
    int error = errno;

    if (error == EINTR || error == ECONNABORTED)
        return;
    /* One line a second for all threads. */
    if (now - last > VIV_SECOND &&
        atomic_compare_exchange_strong(&server->complained, &last, now))
        viv_log(VIV_LOG_ERROR, "accept_failed", "error=\"%s\"", strerrordesc_np(error));
    nanosleep(&pause, NULL);
}

static void *run_thread(void *context) {
    struct server *server = context;

    while (!server->stopping) {
        int connection = accept4(server->listener, NULL, NULL, SOCK_CLOEXEC);
        if (connection >= 0)
            serve(server, connection);
        else if (!server->stopping)
            pause_after_failure(server);
    }
    pthread_mutex_lock(&server->lock);
    server->running--;
    pthread_cond_signal(&server->ended);
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

static void server_init(struct server *server, struct app *app, int listener) {
    pthread_condattr_t attributes;

    *server = (struct server){.app = app, .listener = listener};
    server->threads = viv_xcalloc(app->settings->threads, sizeof *server->threads);
    pthread_mutex_init(&server->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&server->ended, &attributes);
    pthread_condattr_destroy(&attributes);
}

int server_start(struct server *server, struct app *app, int listener,
                 struct viv_error *err) {
    pthread_attr_t attributes;
    int failed = 0;

    server_init(server, app, listener);
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

bool server_stop(struct server *server, viv_time deadline) {
    server->stopping = true;
    /* Wakes every accept(2) with EINVAL. */
    shutdown(server->listener, SHUT_RDWR);
    if (!wait_for_threads(server, deadline))
        return false;
    for (size_t i = 0; i < server->thread_count; i++)
        pthread_join(server->threads[i], NULL);
    pthread_cond_destroy(&server->ended);
    pthread_mutex_destroy(&server->lock);
    free(server->threads);
    return true;
}
