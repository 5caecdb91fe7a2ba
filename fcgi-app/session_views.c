/* SPDX-License-Identifier: MIT */
/* Sessions as others see them: records, the list, and those that nobody used for
 * a while. */
#include "fcgi-app/sessions.h"

#include <string.h>

#include "common/bytes.h"
#include "fcgi-app/session_table.h"

static void describe(const struct entry *entry, struct session_record *record) {
    *record =
        (struct session_record){.created_wall_ms = entry->created_wall_ms,
                                .created = entry->created,
                                .used = entry->state == IDLE ? entry->used : viv_now(),
                                .execution_count = entry->session.execution_count,
                                .lost_all = entry->session.lost == SESSION_LOST_ALL};
    memcpy(record->id, entry->session.id, sizeof record->id);
    memcpy(record->client, entry->client, sizeof record->client);
}

void sessions_describe(struct sessions *sessions, const struct session *session,
                       struct session_record *record) {
    pthread_mutex_lock(&sessions->lock);
    describe((const struct entry *)session, record);
    pthread_mutex_unlock(&sessions->lock);
}

bool sessions_record(struct sessions *sessions, const char *id, uint64_t sandbox,
                     struct session_record *record) {
    pthread_mutex_lock(&sessions->lock);
    struct entry *entry = session_table_find(sessions, id);
    bool is_there = entry && entry->session.sandbox == sandbox;
    if (is_there)
        describe(entry, record);
    pthread_mutex_unlock(&sessions->lock);
    return is_there;
}

int sessions_adopt(struct sessions *sessions, const struct session_record *record,
                   uint64_t sandbox, struct viv_error *err) {
    int result = 0;

    pthread_mutex_lock(&sessions->lock);
    struct entry *entry = session_table_find(sessions, record->id);
    if (entry && (entry->state != IDLE || entry->session.channel >= 0 ||
                  entry->used > record->used)) {
        result = viv_fail(err, VIV_BUSY, "there is a later session of that id");
    } else {
        if (!entry)
            entry = session_table_insert(sessions, record->id, record->client);
        memcpy(entry->client, record->client, sizeof entry->client);
        entry->state = IDLE;
        entry->created_wall_ms = record->created_wall_ms;
        entry->created = record->created;
        entry->used = record->used;
        entry->session.execution_count = record->execution_count;
        entry->session.lost = record->lost_all ? SESSION_LOST_ALL : SESSION_LOST_NONE;
        entry->session.sandbox = sandbox;
    }
    pthread_mutex_unlock(&sessions->lock);
    return result;
}

bool sessions_have_sandbox(struct sessions *sessions, uint64_t sandbox) {
    const struct entry *entry;
    bool found = false;

    pthread_mutex_lock(&sessions->lock);
    TAILQ_FOREACH(entry, &sessions->all, link) {
        found = found || entry->session.sandbox == sandbox;
    }
    pthread_mutex_unlock(&sessions->lock);
    return found;
}

size_t sessions_expire(struct sessions *sessions, viv_time now, uint64_t *sandboxes,
                       size_t room) {
    struct entry_list expired = TAILQ_HEAD_INITIALIZER(expired);
    viv_time limit = (viv_time)sessions->limits.idle_timeout * VIV_MS;
    struct entry *entry, *next;
    size_t count = 0;

    pthread_mutex_lock(&sessions->lock);
    for (entry = TAILQ_FIRST(&sessions->all); entry && count < room; entry = next) {
        next = TAILQ_NEXT(entry, link);
        if (entry->state != IDLE || !TAILQ_EMPTY(&entry->queue) ||
            now - entry->used < limit)
            continue;
        session_table_remove(sessions, entry);
        TAILQ_INSERT_TAIL(&expired, entry, link);
        sandboxes[count++] = entry->session.sandbox;
    }
    pthread_mutex_unlock(&sessions->lock);
    while ((entry = TAILQ_FIRST(&expired))) {
        TAILQ_REMOVE(&expired, entry, link);
        session_entry_free(entry);
    }
    return count;
}

size_t sessions_list(struct sessions *sessions, struct session_line **lines) {
    struct entry *entry;
    size_t count = 0;

    pthread_mutex_lock(&sessions->lock);
    viv_time now = viv_now();
    *lines = viv_xcalloc(sessions->count + 1, sizeof **lines);
    TAILQ_FOREACH(entry, &sessions->all, link) {
        if (entry->session.execution_count == 0)
            continue;
        struct session_line *line = &(*lines)[count++];
        memcpy(line->id, entry->session.id, sizeof line->id);
        line->created_wall_ms = entry->created_wall_ms;
        /* By the clock that is never set, so that it is not before the creation. */
        line->used_wall_ms =
            entry->created_wall_ms + (entry->used - entry->created) / VIV_MS;
        line->age = now - entry->created;
        line->idle = entry->state == IDLE ? now - entry->used : 0;
        line->busy = entry->state != IDLE;
        line->sandbox = entry->session.sandbox;
        line->execution_count = entry->session.execution_count;
    }
    pthread_mutex_unlock(&sessions->lock);
    return count;
}

size_t sessions_count(struct sessions *sessions) {
    const struct entry *entry;
    size_t count = 0;

    pthread_mutex_lock(&sessions->lock);
    TAILQ_FOREACH(entry, &sessions->all, link) {
        count += entry->session.execution_count > 0;
    }
    pthread_mutex_unlock(&sessions->lock);
    return count;
}
