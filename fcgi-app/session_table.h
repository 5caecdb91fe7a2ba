/* SPDX-License-Identifier: MIT */
/*
 * The inside of sessions.h, for the files that implement it and no other: a table by
 * keyed hash for finding, and a list in order of creation for all that walks. Everything
 * here is called under the lock.
 */
#ifndef VIV_SESSION_TABLE_H
#define VIV_SESSION_TABLE_H

#include <pthread.h>
#include <sys/queue.h>

#include "fcgi-app/keyed_hash.h"
#include "fcgi-app/sessions.h"

#define SESSION_BUCKETS 1024 /* chains stay short up to some thousands of sessions */

/* A call that waits in a session's queue. */
struct waiter {
    TAILQ_ENTRY(waiter) link;
    pthread_cond_t granted_or_stopped;
    bool granted;
    bool dismissed; /* the session was ended; it has left the queue */
};

enum session_state { STARTING, BUSY, IDLE };

struct entry {
    struct session session; /* first, so that one is the other */
    TAILQ_ENTRY(entry) link;
    LIST_ENTRY(entry) chain;
    enum session_state state;
    TAILQ_HEAD(waiter_queue, waiter) queue;
    uint64_t queued;
    enum session_wish wish; /* WISH_END: it is out of the table */
    int bell;               /* borrowed from the call that has it; -1: none */
    char client[CLIENT_ADDRESS_SIZE];
    int64_t created_wall_ms;
    viv_time created, used;
};

LIST_HEAD(session_bucket, entry);
TAILQ_HEAD(entry_list, entry);

struct sessions {
    struct session_limits limits;
    struct hash_key key;
    pthread_mutex_t lock;
    bool stopping;
    uint64_t count;
    struct entry_list all;
    struct session_bucket buckets[SESSION_BUCKETS];
};

struct entry *session_table_find(struct sessions *sessions, const char *id);

/* Sets what is wished of a call to nothing, for the next one. */
void session_entry_forget_wish(struct entry *entry);

/* Adds an empty entry; there is none of that id. */
struct entry *session_table_insert(struct sessions *sessions, const char *id,
                                   const char *client);

/* Takes an entry out; the caller frees it, outside of the lock. */
void session_table_remove(struct sessions *sessions, struct entry *entry);

uint64_t session_table_count_of(const struct sessions *sessions, const char *client);

/* Closes the channel and frees. */
void session_entry_free(struct entry *entry);

#endif
