/* SPDX-License-Identifier: MIT */
/* What others want of a session and of the call that has it. */
#include "fcgi-app/sessions.h"

#include <stdint.h>
#include <unistd.h>

#include "fcgi-app/session_table.h"

/* eventfd(2): a counter that is far from full takes it at once. A call without a bell
 * looks now and then. */
static void ring(const struct entry *entry) {
    const uint64_t once = 1;

    if (entry->bell >= 0 && write(entry->bell, &once, sizeof once) < 0)
        return;
}

void sessions_set_bell(struct sessions *sessions, struct session *session, int bell) {
    struct entry *entry = (struct entry *)session;

    pthread_mutex_lock(&sessions->lock);
    entry->bell = bell;
    if (entry->wish != WISH_NONE)
        ring(entry);
    pthread_mutex_unlock(&sessions->lock);
}

enum session_wish sessions_wish(struct sessions *sessions,
                                const struct session *session) {
    pthread_mutex_lock(&sessions->lock);
    enum session_wish wish = ((const struct entry *)session)->wish;
    pthread_mutex_unlock(&sessions->lock);
    return wish;
}

static int no_such_session(struct viv_error *err) {
    return viv_fail(err, VIV_NOT_FOUND, "There is no session of this id");
}

int sessions_interrupt(struct sessions *sessions, const char *id, bool *running,
                       struct viv_error *err) {
    pthread_mutex_lock(&sessions->lock);
    struct entry *entry = session_table_find(sessions, id);
    *running = entry && entry->state != IDLE;
    if (*running && entry->wish == WISH_NONE) {
        entry->wish = WISH_INTERRUPT;
        ring(entry);
    }
    pthread_mutex_unlock(&sessions->lock);
    return entry ? 0 : no_such_session(err);
}

static void dismiss_waiters(struct entry *entry) {
    struct waiter *waiter;

    while ((waiter = TAILQ_FIRST(&entry->queue))) {
        TAILQ_REMOVE(&entry->queue, waiter, link);
        waiter->dismissed = true;
        pthread_cond_signal(&waiter->granted_or_stopped);
    }
    entry->queued = 0;
}

int sessions_end(struct sessions *sessions, const char *id, uint64_t *sandbox,
                 bool *running, struct viv_error *err) {
    pthread_mutex_lock(&sessions->lock);
    struct entry *entry = session_table_find(sessions, id);
    if (!entry) {
        pthread_mutex_unlock(&sessions->lock);
        return no_such_session(err);
    }
    session_table_remove(sessions, entry);
    dismiss_waiters(entry);
    *sandbox = entry->session.sandbox;
    *running = entry->state != IDLE;
    if (*running) {
        entry->wish = WISH_END;
        ring(entry);
    }
    pthread_mutex_unlock(&sessions->lock);
    if (!*running)
        session_entry_free(entry);
    return 0;
}
