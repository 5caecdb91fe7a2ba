/* SPDX-License-Identifier: MIT */
/*
 * The janitor: the process that makes the folders of the slots and empties them, in the
 * tiers without namespaces. It is the only one that stays root in `confined`; in
 * `minimal` it is one more process of the one user. It takes requests from its socket
 * (SOCK_SEQPACKET), one message each way and in their order, and ends with it.
 *
 * What a session has left is hostile: only a child that has become the slot's user opens
 * anything of it, and it has WIPE_LIMIT_MS for it.
 */
#ifndef VIV_JANITOR_H
#define VIV_JANITOR_H

#include <stdint.h>

#include "common/settings.h"
#include "executor/isolation.h"

/* As `slot`: the zygote's own folder. */
#define JANITOR_ZYGOTE UINT32_MAX

#define JANITOR_REASON_MAX 160

/*
 * Prepare a slot that nobody uses: the worker of its last session is reaped, which alone
 * proves that it writes nothing more. In `confined` whatever still runs as its worker or
 * supervisor, or as the zygote, is killed.
 */
struct janitor_request {
    uint32_t slot;
};

/*
 * When not failed, with one descriptor (O_PATH | O_DIRECTORY) of the slot's folder:
 *
 *     confined  slot_directory/SLOT or slot_directory/zygote: a whole root with
 *               home/earth, tmp and dev/shm
 *     minimal   slot_directory/SLOT-RANDOM or slot_directory/zygote-RANDOM, of a name
 *               that was never used before, with home, tmp and shm
 *
 * The three are new, empty, of mode 0700, and belong to the slot's user. A slot that
 * failed is not to be used; another attempt may succeed.
 */
struct janitor_reply {
    uint32_t slot;
    int32_t failed;
    char reason[JANITOR_REASON_MAX]; /* for people; empty when not failed */
};

/*
 * Serves until the end of `socket`, then empties all slots and ends the process. One that
 * cannot begin (another executor has the same slot_directory, say) logs why and ends with
 * a failure: its client sees the end of the socket. Closes every other descriptor but
 * standard ones, and drops all capabilities but those that it needs.
 */
void janitor_main(const struct settings *settings, enum isolation_tier tier, int socket)
    __attribute__((noreturn));

/*
 * Without a janitor: makes what a start in `confined` would make for each slot and keep,
 * so that the start finds it. For images, in the step that installs the packages, where
 * all of it is links. As root, in a process of one thread, whose umask it changes; fails
 * where an executor uses the folder.
 */
int janitor_make_ahead(const struct settings *settings, struct viv_error *err);

#endif
