/* SPDX-License-Identifier: MIT */
/*
 * The rate limit: of each key, a client's address and a session id, not more than `limit`
 * calls are allowed in any 60 seconds. The window slides and is exact: the time of every
 * allowed call is kept until it is 60 seconds old. Calls that are refused here do not
 * count.
 *
 * Memory: a key costs some 300 bytes while one of its calls is younger than 60 seconds,
 * each such call 8 to 16 bytes, and there are never more than RATE_LIMIT_KEYS_MAX keys.
 * When one more comes, the key whose last allowed call is the oldest is forgotten. To be
 * forgotten before its time a key has to be outrun by that many allowed calls of other
 * keys in a minute.
 *
 * Thread-safe; its mutex is a leaf and never held over I/O. The caller gives the time.
 */
#ifndef VIV_RATE_LIMIT_H
#define VIV_RATE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"

#define RATE_LIMIT_WINDOW   (60 * VIV_SECOND)
#define RATE_LIMIT_KEYS_MAX 65536

struct rate_limit;

struct rate_verdict {
    bool allowed;
    uint64_t limit;     /* 0: no limit is set, and the rest means nothing */
    uint64_t remaining; /* calls that would still be allowed now */
    uint32_t reset_s;   /* until the oldest counted call counts no more: 1 to 60 */
};

/* `limit` calls in 60 seconds, 0 for none. Never NULL. */
struct rate_limit *rate_limit_new(uint64_t limit);

/* Asks for one call at `now` (viv_now()), and counts it when it is allowed. */
struct rate_verdict rate_limit_take(struct rate_limit *limiter, const char *address,
                                    const char *session_id, viv_time now);

/* The number of keys that are remembered: what tests can see of its memory. */
uint64_t rate_limit_keys(struct rate_limit *limiter);

/* NULL is allowed. */
void rate_limit_free(struct rate_limit *limiter);

#endif
