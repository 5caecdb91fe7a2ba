/* SPDX-License-Identifier: MIT */
/*
 * What the requests of all threads share, made by main before the first thread and
 * cleared after the last. Every part says itself what may be used from where.
 */
#ifndef VIV_APP_H
#define VIV_APP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/settings.h"
#include "fcgi-app/budget.h"
#include "fcgi-app/client_address.h"
#include "fcgi-app/executor_client.h"
#include "fcgi-app/health.h"
#include "fcgi-app/keyed_hash.h"
#include "fcgi-app/rate_limit.h"
#include "fcgi-app/sessions.h"

struct app {
    const struct settings *settings;
    struct networks trusted; /* proxies */
    struct budget bytes;     /* of bodies and answers in flight */
    struct budget calls;     /* that run or wait; the rest of the threads stays free */
    struct sessions *sessions;
    struct rate_limit *rate;
    struct executor_client executor;
    struct health health;
    uint64_t max_body;       /* bytes */
    struct hash_key log_key; /* marks sessions in the log, instead of their ids */
    uint32_t instance;       /* begins the ids of requests */
    /* The sessions of before are not known yet: an id may be of one of them, so that
     * there is nothing to answer but /health. */
    _Atomic bool adopting;
    _Atomic uint32_t requests;
};

/* `settings` is borrowed. Fails with VIV_CONFIG. */
int app_init(struct app *app, const struct settings *settings, struct viv_error *err);

/* No request is under way. */
void app_clear(struct app *app);

#endif
