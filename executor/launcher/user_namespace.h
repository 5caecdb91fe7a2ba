/* SPDX-License-Identifier: MIT */
/*
 * User namespaces: the outer one, in which the launcher, the zygote and all sandboxes
 * live, and the one of each session inside it.
 *
 *     executor started as   outer namespace                         session
 *     root                  0-65535 is uid_base to uid_base+65535   1000 is 2 + slot
 *     an ordinary user      1000 is that user                       1000 is 1000
 *
 * An ordinary user is not mapped to 0: a map of the 0 of an outer namespace into an inner
 * one takes CAP_SETFCAP, which nothing here needs otherwise (user_namespaces(7)).
 */
#ifndef VIV_USER_NAMESPACE_H
#define VIV_USER_NAMESPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"

#define OUTER_IDS        65536U
#define ZYGOTE_ID        1U /* in the outer namespace of a root executor */
#define FIRST_SESSION_ID 2U
#define ORDINARY_ID      1000U /* of an ordinary user: there is no other one */

/*
 * Puts the calling process into an outer namespace of its own: asks its parent over the
 * SOCK_SEQPACKET socket, with a byte each way, to call user_namespace_map_outer(), and
 * becomes its user 0, which an `ordinary` one has not. That makes it not dumpable.
 */
int user_namespace_enter_outer(int parent, bool ordinary, struct viv_error *err);

/* Writes the map of the outer namespace of process `pid`; for its parent, which is in the
 * initial namespace. `uid_base` counts for root only. */
int user_namespace_map_outer(pid_t pid, uint64_t uid_base, struct viv_error *err);

/* Writes the map of a session's namespace; for the launcher. `proc` is a descriptor of
 * /proc, `outer_id` the session's user and group in the outer namespace; `ordinary`: the
 * executor runs as an ordinary user. */
int user_namespace_map_session(int proc, pid_t pid, uint32_t outer_id, bool ordinary,
                               struct viv_error *err);

#endif
