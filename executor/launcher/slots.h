/* SPDX-License-Identifier: MIT */
/*
 * The slots of the tiers without namespaces: the places where sandboxes live, of which
 * there are so many. Each is prepared by the janitor before a session gets it, and again
 * before the next one does. Only the launcher's one thread, which waits for nothing here.
 *
 *     UNPREPARED --asked for--> ASKED --the janitor's answer--> FREE --taken--> TAKEN
 *          ^                      | it failed: not before some time                |
 *          +----------------------+----------------- given back ------------------+
 */
#ifndef VIV_SLOTS_H
#define VIV_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/error.h"
#include "executor/launcher/event_loop.h"

enum slot_state { SLOT_UNPREPARED, SLOT_ASKED, SLOT_FREE, SLOT_TAKEN };

struct slot {
    enum slot_state state;
    bool used;  /* and not yet emptied: that does not wait for the next session */
    int folder; /* while it is FREE or TAKEN */
    viv_time not_before; /* of the next attempt to prepare it */
};

struct slots {
    struct event_source source; /* the janitor's socket */
    uint32_t count;
    struct slot *all;
    int failures;                       /* of the janitor, in a row */
    char reason[VIV_ERROR_MESSAGE_MAX]; /* of the last one, or "" */
    bool lost;                          /* the janitor is gone */
};

/* Asks the janitor behind `socket` for the zygote's own folder, or for that of a slot,
 * and waits for it. Returns the descriptor of it. To be called before slots_init(). */
int slots_ask_for_zygote(int socket, struct viv_error *err);
int slots_ask(int socket, uint32_t slot, struct viv_error *err);

/* `count` slots, prepared by the janitor behind `socket`, which stays the caller's. */
int slots_init(struct slots *slots, int socket, uint32_t count, struct event_loop *loop,
               struct viv_error *err);

/* Sees to it that so many are free soon, as far as there are any, and that those that
 * were given back are emptied. */
void slots_prepare(struct slots *slots, uint64_t wanted);

/* The number of a free slot, which is taken now; -1 when none is. */
int64_t slots_take(struct slots *slots);

/* Nothing of the session runs any more. */
void slots_give_back(struct slots *slots, uint32_t slot);

#endif
