/* SPDX-License-Identifier: MIT */
#include "fcgi-app/health.h"

#include <stdio.h>

#include "common/log.h"

void health_init(struct health *health, struct executor_client *executor) {
    *health = (struct health){.executor = executor};
    pthread_mutex_init(&health->lock, NULL);
}

void health_clear(struct health *health) { pthread_mutex_destroy(&health->lock); }

static bool take_kept(struct health *health, struct health_state *state) {
    pthread_mutex_lock(&health->lock);
    bool fresh = health->known && viv_now() - health->asked < HEALTH_KEPT_MS * VIV_MS;
    *state = health->state;
    pthread_mutex_unlock(&health->lock);
    return fresh;
}

static void ask(struct health *health, struct health_state *state) {
    struct executor_status status;
    struct viv_error err;

    if (executor_status(health->executor, viv_after_ms(HEALTH_WAIT_MS), &status, &err)) {
        viv_log_failure(VIV_LOG_WARNING, "executor_not_reached", err.message, NULL);
        state->healthy = false;
        snprintf(state->executor.reason, sizeof state->executor.reason,
                 "vivarium-executor cannot be reached");
        return;
    }
    state->healthy = status.reason[0] == '\0';
    state->executor = status;
}

void health_get(struct health *health, struct health_state *state) {
    if (take_kept(health, state))
        return;
    ask(health, state);
    pthread_mutex_lock(&health->lock);
    health->state = *state;
    health->known = true;
    health->asked = viv_now();
    pthread_mutex_unlock(&health->lock);
}
