/* SPDX-License-Identifier: MIT */
/*
 * Entering and leaving. A session that is left goes straight to the first of its queue,
 * without being idle in between, so that no newcomer can overtake who waits.
 */
#include "fcgi-app/sessions.h"

#include <unistd.h>

#include "fcgi-app/session_table.h"

/* How often one who waits asks whether it is still wanted. */
#define GONE_INTERVAL (500 * VIV_MS)

static struct entry *begin_session(struct sessions *sessions,
                                   const struct session_visit *visit,
                                   struct viv_error *err) {
    uint64_t per_client = sessions->limits.max_sessions_per_client;

    if (sessions->count >= sessions->limits.max_sessions) {
        viv_refuse(err, VIV_CAPACITY, "max_sessions",
                   "There is no room for another session, try again later");
        return NULL;
    }
    if (per_client > 0 && session_table_count_of(sessions, visit->client) >= per_client) {
        viv_refuse(err, VIV_CAPACITY, "max_sessions_per_client",
                   "This client has %llu sessions, as many as it may have",
                   (unsigned long long)per_client);
        return NULL;
    }
    struct entry *entry = session_table_insert(sessions, visit->id, visit->client);
    entry->state = STARTING;
    entry->created_wall_ms = viv_wall_ms();
    entry->created = entry->used = viv_now();
    return entry;
}

static void hand_over(struct entry *entry) {
    entry->state = entry->session.execution_count > 0 ? BUSY : STARTING;
    entry->used = viv_now();
}

/* ---- waiting ---- */

static void waiter_init(struct waiter *waiter) {
    pthread_condattr_t attributes;

    waiter->granted = waiter->dismissed = false;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&waiter->granted_or_stopped, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void wait_until(struct sessions *sessions, struct waiter *waiter, viv_time until) {
    struct timespec time = {.tv_sec = until / VIV_SECOND, .tv_nsec = until % VIV_SECOND};

    pthread_cond_timedwait(&waiter->granted_or_stopped, &sessions->lock, &time);
}

/* Whether the visitor has left. The lock is not held over the question. */
static bool visitor_is_gone(struct sessions *sessions,
                            const struct session_visit *visit) {
    if (!visit->gone)
        return false;
    pthread_mutex_unlock(&sessions->lock);
    bool gone = visit->gone(visit->context);
    pthread_mutex_lock(&sessions->lock);
    return gone;
}

static int stopping(struct viv_error *err) {
    return viv_fail(err, VIV_UNAVAILABLE, "the service stops");
}

static int wait_for_grant(struct sessions *sessions, struct waiter *waiter,
                          const struct session_visit *visit, struct viv_error *err) {
    viv_time deadline = viv_after_ms((int64_t)sessions->limits.max_queue_wait);

    while (!waiter->granted) {
        viv_time now = viv_now();
        if (sessions->stopping)
            return stopping(err);
        if (waiter->dismissed)
            return viv_fail(err, VIV_INTERRUPTED,
                            "The session was ended while this call waited for it");
        if (now >= deadline)
            return viv_refuse(err, VIV_BUSY, "max_queue_wait",
                              "The session is busy; this call waited its time");
        viv_time until = now + GONE_INTERVAL;
        wait_until(sessions, waiter, until < deadline ? until : deadline);
        if (!waiter->granted && visitor_is_gone(sessions, visit) && !waiter->granted &&
            !waiter->dismissed)
            return viv_fail(err, VIV_UNAVAILABLE, "the client is gone");
    }
    return 0;
}

/* Waits in the queue of a session that another call has. */
static int queue_for(struct sessions *sessions, struct entry *entry,
                     const struct session_visit *visit, struct viv_error *err) {
    struct waiter waiter;

    if (entry->queued >= sessions->limits.max_queued)
        return viv_refuse(
            err, VIV_BUSY, "max_queued",
            "The session is busy, and as many calls wait for it as may: %llu",
            (unsigned long long)entry->queued);
    waiter_init(&waiter);
    TAILQ_INSERT_TAIL(&entry->queue, &waiter, link);
    entry->queued++;
    int failed = wait_for_grant(sessions, &waiter, visit, err);
    if (!waiter.granted && !waiter.dismissed) {
        TAILQ_REMOVE(&entry->queue, &waiter, link);
        entry->queued--;
    }
    pthread_cond_destroy(&waiter.granted_or_stopped);
    return failed;
}

static struct entry *enter(struct sessions *sessions, const struct session_visit *visit,
                           struct viv_error *err) {
    if (sessions->stopping) {
        stopping(err);
        return NULL;
    }
    struct entry *entry = session_table_find(sessions, visit->id);
    if (!entry)
        return begin_session(sessions, visit, err);
    if (entry->state == IDLE)
        hand_over(entry);
    else if (queue_for(sessions, entry, visit, err))
        return NULL;
    return entry;
}

struct session *sessions_enter(struct sessions *sessions,
                               const struct session_visit *visit, struct viv_error *err) {
    pthread_mutex_lock(&sessions->lock);
    struct entry *entry = enter(sessions, visit, err);
    pthread_mutex_unlock(&sessions->lock);
    return entry ? &entry->session : NULL;
}

/* Gives it to the first of its queue, or sets it idle; true when it ceases to exist. */
static bool pass_on(struct sessions *sessions, struct entry *entry) {
    struct waiter *first = TAILQ_FIRST(&entry->queue);

    if (entry->wish == WISH_END)
        return true;
    session_entry_forget_wish(entry);
    if (first && !sessions->stopping) {
        TAILQ_REMOVE(&entry->queue, first, link);
        entry->queued--;
        hand_over(entry);
        first->granted = true;
        pthread_cond_signal(&first->granted_or_stopped);
    } else if (!first && entry->session.execution_count == 0) {
        session_table_remove(sessions, entry);
        return true;
    } else {
        entry->state = IDLE;
        entry->used = viv_now();
    }
    return false;
}

uint64_t sessions_leave(struct sessions *sessions, struct session *session) {
    struct entry *entry = (struct entry *)session;

    pthread_mutex_lock(&sessions->lock);
    bool ceases = pass_on(sessions, entry);
    pthread_mutex_unlock(&sessions->lock);
    if (!ceases)
        return 0;
    uint64_t sandbox = session->sandbox;
    session_entry_free(entry);
    return sandbox;
}

void sessions_stop(struct sessions *sessions) {
    struct entry *entry;
    struct waiter *waiter;

    pthread_mutex_lock(&sessions->lock);
    sessions->stopping = true;
    TAILQ_FOREACH(entry, &sessions->all, link) {
        TAILQ_FOREACH(waiter, &entry->queue, link) {
            pthread_cond_signal(&waiter->granted_or_stopped);
        }
    }
    pthread_mutex_unlock(&sessions->lock);
}

/* ---- what the call that has it changes ---- */

void sessions_set_sandbox(struct sessions *sessions, struct session *session,
                          uint64_t sandbox, int channel) {
    int old = session->channel;

    pthread_mutex_lock(&sessions->lock);
    session->sandbox = sandbox;
    pthread_mutex_unlock(&sessions->lock);
    session->channel = channel;
    session->sequence = 0;
    if (old >= 0)
        close(old);
}

void sessions_set_lost(struct sessions *sessions, struct session *session,
                       enum session_loss lost) {
    pthread_mutex_lock(&sessions->lock);
    session->lost = lost;
    pthread_mutex_unlock(&sessions->lock);
}

static void count_executions(struct sessions *sessions, struct session *session, int by) {
    struct entry *entry = (struct entry *)session;

    pthread_mutex_lock(&sessions->lock);
    session->execution_count += (uint64_t)(int64_t)by;
    hand_over(entry);
    pthread_mutex_unlock(&sessions->lock);
}

void sessions_begin_execution(struct sessions *sessions, struct session *session) {
    count_executions(sessions, session, 1);
}

void sessions_revoke_execution(struct sessions *sessions, struct session *session) {
    count_executions(sessions, session, -1);
}
