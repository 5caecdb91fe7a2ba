/* SPDX-License-Identifier: MIT */
/* What the tests of the sessions of vivarium-fcgi share. */
#ifndef VIV_TESTS_SESSIONS_BENCH_H
#define VIV_TESTS_SESSIONS_BENCH_H

#include "tests/unit/unit.h"

#include <pthread.h>
#include <unistd.h>

#include "fcgi-app/session_table.h"

static const struct session_limits roomy = {.max_sessions = 100,
                                            .max_queued = 100,
                                            .max_queue_wait = 60000,
                                            .idle_timeout = 600000};

static inline struct session *enter(struct sessions *sessions, const char *id,
                                    struct viv_error *err) {
    const struct session_visit visit = {.id = id, .client = "192.0.2.1"};

    return sessions_enter(sessions, &visit, err);
}

/* Waits until so many calls wait for the session "a". */
static inline void wait_for_queue(struct sessions *sessions, uint64_t count) {
    uint64_t queued;

    do {
        usleep(1000);
        pthread_mutex_lock(&sessions->lock);
        queued = session_table_find(sessions, "a")->queued;
        pthread_mutex_unlock(&sessions->lock);
    } while (queued != count);
}

#endif
