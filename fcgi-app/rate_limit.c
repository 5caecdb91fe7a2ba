/* SPDX-License-Identifier: MIT */
/*
 * A balanced tree (tsearch(3)) finds a key whatever keys clients choose; a list holds
 * them in the order of their last allowed call, so that the ones to forget are at its
 * front. Each key has a ring of the times of its calls, which grows with their number.
 */
#include "fcgi-app/rate_limit.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "common/bytes.h"

struct key {
    TAILQ_ENTRY(key) link;
    const char *address;
    const char *session_id;
    viv_time *times; /* a ring, the oldest at `first` */
    size_t first;
    size_t count; /* never 0 for a key in the tree */
    size_t room;
    char text[]; /* what the two strings point to */
};

struct rate_limit {
    uint64_t limit;
    pthread_mutex_t mutex;
    void *tree;
    TAILQ_HEAD(key_list, key) keys;
    uint64_t key_count;
    viv_time latest; /* threads may come in with times out of order */
};

static int compare(const void *left, const void *right) {
    const struct key *a = left, *b = right;
    int order = strcmp(a->address, b->address);

    return order ? order : strcmp(a->session_id, b->session_id);
}

static viv_time last_call(const struct key *key) {
    return key->times[(key->first + key->count - 1) % key->room];
}

static bool is_over(viv_time call, viv_time now) {
    return call + RATE_LIMIT_WINDOW <= now;
}

static void free_key(struct key *key) {
    free(key->times);
    free(key);
}

static void forget(struct rate_limit *limiter, struct key *key) {
    tdelete(key, &limiter->tree, compare);
    TAILQ_REMOVE(&limiter->keys, key, link);
    limiter->key_count--;
    free_key(key);
}

static void forget_old(struct rate_limit *limiter, viv_time now) {
    struct key *key;

    while ((key = TAILQ_FIRST(&limiter->keys)) && is_over(last_call(key), now))
        forget(limiter, key);
}

static struct key *new_key(const char *address, const char *session_id) {
    size_t address_size = strlen(address) + 1, id_size = strlen(session_id) + 1;
    struct key *key = viv_xcalloc(1, sizeof *key + address_size + id_size);

    key->address = memcpy(key->text, address, address_size);
    key->session_id = memcpy(key->text + address_size, session_id, id_size);
    return key;
}

/* Adds the time of a call at the end of the ring. */
static void add_call(struct key *key, viv_time now) {
    if (key->count == key->room) {
        size_t room = key->room ? key->room * 2 : 4;
        viv_time *times = viv_xmalloc(room * sizeof *times);
        for (size_t i = 0; i < key->count; i++)
            times[i] = key->times[(key->first + i) % key->room];
        free(key->times);
        key->times = times;
        key->first = 0;
        key->room = room;
    }
    key->times[(key->first + key->count++) % key->room] = now;
}

/* A key with its first call. */
static struct key *remember(struct rate_limit *limiter, const char *address,
                            const char *session_id, viv_time now) {
    struct key *key = new_key(address, session_id);

    add_call(key, now);
    if (!tsearch(key, &limiter->tree, compare))
        abort(); /* no memory for a node: as viv_xmalloc() */
    TAILQ_INSERT_TAIL(&limiter->keys, key, link);
    if (++limiter->key_count > RATE_LIMIT_KEYS_MAX)
        forget(limiter, TAILQ_FIRST(&limiter->keys));
    return key;
}

static struct key *find(struct rate_limit *limiter, const char *address,
                        const char *session_id) {
    struct key wanted = {.address = address, .session_id = session_id};
    struct key **node = tfind(&wanted, &limiter->tree, compare);

    return node ? *node : NULL;
}

/* Counts one more call of a known key if that is allowed. */
static bool count_call(struct rate_limit *limiter, struct key *key, viv_time now) {
    while (key->count > 0 && is_over(key->times[key->first], now)) {
        key->first = (key->first + 1) % key->room;
        key->count--;
    }
    if (key->count >= limiter->limit)
        return false;
    add_call(key, now);
    TAILQ_REMOVE(&limiter->keys, key, link);
    TAILQ_INSERT_TAIL(&limiter->keys, key, link);
    return true;
}

static struct rate_verdict take(struct rate_limit *limiter, const char *address,
                                const char *session_id, viv_time now) {
    struct rate_verdict verdict = {.allowed = true, .limit = limiter->limit};

    if (now < limiter->latest)
        now = limiter->latest;
    limiter->latest = now;
    forget_old(limiter, now);
    struct key *key = find(limiter, address, session_id);
    if (key)
        verdict.allowed = count_call(limiter, key, now);
    else
        key = remember(limiter, address, session_id, now);
    viv_time rest = key->times[key->first] + RATE_LIMIT_WINDOW - now;
    verdict.remaining = limiter->limit - key->count;
    verdict.reset_s = (uint32_t)((rest + VIV_SECOND - 1) / VIV_SECOND);
    return verdict;
}

struct rate_limit *rate_limit_new(uint64_t limit) {
    struct rate_limit *limiter = viv_xcalloc(1, sizeof *limiter);

    limiter->limit = limit;
    pthread_mutex_init(&limiter->mutex, NULL);
    TAILQ_INIT(&limiter->keys);
    return limiter;
}

struct rate_verdict rate_limit_take(struct rate_limit *limiter, const char *address,
                                    const char *session_id, viv_time now) {
    if (limiter->limit == 0)
        return (struct rate_verdict){.allowed = true};
    pthread_mutex_lock(&limiter->mutex);
    struct rate_verdict verdict = take(limiter, address, session_id, now);
    pthread_mutex_unlock(&limiter->mutex);
    return verdict;
}

uint64_t rate_limit_keys(struct rate_limit *limiter) {
    pthread_mutex_lock(&limiter->mutex);
    uint64_t count = limiter->key_count;
    pthread_mutex_unlock(&limiter->mutex);
    return count;
}

void rate_limit_free(struct rate_limit *limiter) {
    struct key *key;

    if (!limiter)
        return;
    while ((key = TAILQ_FIRST(&limiter->keys)))
        forget(limiter, key);
    pthread_mutex_destroy(&limiter->mutex);
    free(limiter);
}
