/* SPDX-License-Identifier: MIT */
#include "fcgi-app/session_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"

struct sessions *sessions_new(const struct session_limits *limits) {
    struct sessions *sessions = viv_xcalloc(1, sizeof *sessions);

    sessions->limits = *limits;
    sessions->key = hash_key_new();
    pthread_mutex_init(&sessions->lock, NULL);
    TAILQ_INIT(&sessions->all);
    return sessions;
}

void session_entry_free(struct entry *entry) {
    if (entry->session.channel >= 0)
        close(entry->session.channel);
    free(entry);
}

void session_entry_forget_wish(struct entry *entry) {
    entry->wish = WISH_NONE;
    entry->bell = -1;
}

void sessions_free(struct sessions *sessions) {
    struct entry *entry;

    if (!sessions)
        return;
    while ((entry = TAILQ_FIRST(&sessions->all))) {
        session_table_remove(sessions, entry);
        session_entry_free(entry);
    }
    pthread_mutex_destroy(&sessions->lock);
    free(sessions);
}

static struct session_bucket *bucket_of(struct sessions *sessions, const char *id) {
    return &sessions
                ->buckets[keyed_hash(sessions->key, id, strlen(id)) % SESSION_BUCKETS];
}

struct entry *session_table_find(struct sessions *sessions, const char *id) {
    struct entry *entry;

    LIST_FOREACH(entry, bucket_of(sessions, id), chain) {
        if (strcmp(entry->session.id, id) == 0)
            return entry;
    }
    return NULL;
}

struct entry *session_table_insert(struct sessions *sessions, const char *id,
                                   const char *client) {
    struct entry *entry = viv_xcalloc(1, sizeof *entry);

    snprintf(entry->session.id, sizeof entry->session.id, "%s", id);
    snprintf(entry->client, sizeof entry->client, "%s", client);
    entry->session.channel = -1;
    session_entry_forget_wish(entry);
    TAILQ_INIT(&entry->queue);
    TAILQ_INSERT_TAIL(&sessions->all, entry, link);
    LIST_INSERT_HEAD(bucket_of(sessions, id), entry, chain);
    sessions->count++;
    return entry;
}

void session_table_remove(struct sessions *sessions, struct entry *entry) {
    TAILQ_REMOVE(&sessions->all, entry, link);
    LIST_REMOVE(entry, chain);
    sessions->count--;
}

uint64_t session_table_count_of(const struct sessions *sessions, const char *client) {
    const struct entry *entry;
    uint64_t count = 0;

    TAILQ_FOREACH(entry, &sessions->all, link) {
        count += strcmp(entry->client, client) == 0;
    }
    return count;
}
