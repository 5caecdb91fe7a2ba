/* SPDX-License-Identifier: MIT */
/*
 * Whether the service can start sandboxes, as vivarium-executor says it. An answer is
 * kept for a moment, so that any number of health checks costs the executor little. Any
 * thread; waits no longer than HEALTH_WAIT_MS, and never for running code.
 */
#ifndef VIV_HEALTH_H
#define VIV_HEALTH_H

#include <pthread.h>
#include <stdbool.h>

#include "fcgi-app/executor_client.h"

#define HEALTH_WAIT_MS 1000
#define HEALTH_KEPT_MS 500

struct health_state {
    bool healthy;
    /* What it said last, empty while it has said nothing; `reason` is why the service is
     * not healthy. */
    struct executor_status executor;
};

struct health {
    struct executor_client *executor;
    pthread_mutex_t lock; /* a leaf, not held while the executor is asked */
    bool known;
    viv_time asked;
    struct health_state state;
};

void health_init(struct health *health, struct executor_client *executor);
void health_clear(struct health *health);

/* Fills *state with the answer that is kept, or asks for one. An executor that gives none
 * is a state as well: not healthy, and the reason says so. */
void health_get(struct health *health, struct health_state *state);

#endif
