/* SPDX-License-Identifier: MIT */
/*
 * Keeps the sessions here and the sandboxes of vivarium-executor in step. At the start,
 * sessions of before are taken over by their records. Later, sandboxes that no session
 * has are ended: one is left behind where an answer of the executor got lost. Main thread
 * only.
 */
#ifndef VIV_ADOPTION_H
#define VIV_ADOPTION_H

#include <stdbool.h>
#include <stddef.h>

#include "common/clock.h"
#include "fcgi-app/app.h"

#define ADOPTION_SUSPECTS_MAX 64
#define ADOPTION_INTERVAL_MS                                                             \
    30000 /* well above the time that acquiring a sandbox takes */

struct adoption {
    bool done;   /* sessions of before have been taken over */
    bool failed; /* the first walk; the log has it */
    viv_time next;
    /* Sandboxes that had no session the last time: one that is just being acquired has
     * not, either, and so is not ended before the second time. */
    uint64_t suspects[ADOPTION_SUSPECTS_MAX];
    size_t suspect_count;
};

/* Does what is due at `now`; while the executor cannot be reached, that is tried again at
 * each call. Ends the time of app->adopting with the first walk that reaches the last
 * sandbox. Returns the number of sessions taken over. */
size_t adoption_tick(struct adoption *adoption, struct app *app, viv_time now);

#endif
