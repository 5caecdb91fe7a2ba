/* SPDX-License-Identifier: MIT */
#include "fcgi-app/budget.h"

#include <stdatomic.h>

bool budget_take(struct budget_share *share, uint64_t amount) {
    struct budget *budget = share->budget;
    uint64_t used = atomic_load_explicit(&budget->used, memory_order_relaxed);

    do {
        if (used > budget->limit || amount > budget->limit - used)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(
        &budget->used, &used, used + amount, memory_order_relaxed, memory_order_relaxed));
    share->amount += amount;
    return true;
}

void budget_give_back(struct budget_share *share, uint64_t amount) {
    atomic_fetch_sub_explicit(&share->budget->used, amount, memory_order_relaxed);
    share->amount -= amount;
}

void budget_release(struct budget_share *share) {
    if (share->amount > 0)
        budget_give_back(share, share->amount);
}
