/* SPDX-License-Identifier: MIT */
/*
 * The users of the tier `confined`, one row of numbers from the setting slot_uid_base on:
 * the zygote, the launcher, and for each slot its worker and its supervisor. Zygote and
 * launcher have a group of their own number; both users of a slot have the worker's.
 */
#ifndef VIV_SLOT_IDS_H
#define VIV_SLOT_IDS_H

#include <stdint.h>
#include <sys/types.h>

#include "common/settings.h"

/* How many users there are. */
static inline uint64_t slot_ids_count(const struct settings *settings) {
    return 2 + 2 * settings->slots;
}

static inline uid_t slot_zygote_uid(const struct settings *settings) {
    return (uid_t)settings->slot_uid_base;
}

static inline uid_t slot_launcher_uid(const struct settings *settings) {
    return (uid_t)(settings->slot_uid_base + 1);
}

static inline uid_t slot_worker_uid(const struct settings *settings, uint32_t slot) {
    return (uid_t)(settings->slot_uid_base + 2 + 2 * (uint64_t)slot);
}

static inline uid_t slot_supervisor_uid(const struct settings *settings, uint32_t slot) {
    return (uid_t)(settings->slot_uid_base + 3 + 2 * (uint64_t)slot);
}

#endif
