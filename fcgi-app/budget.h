/* SPDX-License-Identifier: MIT */
/*
 * A budget: a number of bytes or of calls that all threads share, and the shares that are
 * taken out of it. Keeps no queue: what is not there now is refused. Any thread; a share
 * belongs to one.
 */
#ifndef VIV_BUDGET_H
#define VIV_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

struct budget {
    uint64_t limit;
    _Atomic uint64_t used;
};

/* What one owner has taken. The zero value with `budget` set is an empty share. */
struct budget_share {
    struct budget *budget;
    uint64_t amount;
};

/* Takes `amount` more into the share. False, and nothing is taken, when it is
 * not there. */
bool budget_take(struct budget_share *share, uint64_t amount);

/* Gives back `amount` of what the share holds. */
void budget_give_back(struct budget_share *share, uint64_t amount);

/* Gives back all of it. */
void budget_release(struct budget_share *share);

static inline void budget_release_cleanup(struct budget_share *share) {
    budget_release(share);
}

#endif
