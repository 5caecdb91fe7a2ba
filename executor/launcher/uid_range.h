/* SPDX-License-Identifier: MIT */
/*
 * Whether a range of user and group numbers is free for sessions: one that is shared with
 * anybody else would give a session that one's files and processes.
 */
#ifndef VIV_UID_RANGE_H
#define VIV_UID_RANGE_H

#include <stdint.h>

#include "common/error.h"

/* Fails with VIV_CONFIG, saying what to change, when one of the `count` numbers from
 * `first` on is not mapped into this process's user namespace, has an entry in the
 * databases of users or groups, is delegated in /etc/subuid or /etc/subgid, or has a
 * running process. */
int uid_range_check(uint64_t first, uint64_t count, struct viv_error *err);

#endif
