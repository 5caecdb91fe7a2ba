/* SPDX-License-Identifier: MIT */
/*
 * The zygote as the launcher sees it: started, ready, asked for workers, replaced when it
 * dies. Requests wait here while there is none, so that no session notices. Only the
 * launcher's one thread.
 */
#ifndef VIV_ZYGOTE_PROCESS_H
#define VIV_ZYGOTE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/settings.h"
#include "executor/control.h"

struct spawn; /* a request that is waiting or under way */

struct zygote_process {
    const struct settings *settings;
    int program; /* vivarium-zygote, opened before the root was changed */
    int proc;    /* /proc of the host */
    bool ordinary;
    pid_t pid;  /* 0: there is none */
    int socket; /* SOCK_SEQPACKET to it, or -1 */
    bool ready;
    viv_time start_at;   /* of the next attempt while there is none */
    int failures;        /* in a row */
    uint64_t fresh_size; /* bytes of address space of a fresh interpreter */
    struct spawn *first; /* in order of arrival; those that were sent come first */
    char reason[VIV_ERROR_MESSAGE_MAX]; /* why there is none, or "" */
};

/* Starts one. The caller watches zygote->socket and reaps zygote->pid. */
int zygote_process_start(struct zygote_process *zygote, struct viv_error *err);

/* Asks for a worker; takes over the SPAWN_FD_COUNT descriptors in any case. */
void zygote_process_spawn(struct zygote_process *zygote, uint64_t sandbox,
                          const int fds[SPAWN_FD_COUNT]);

/*
 * Takes one reply. Returns 1 with *reply for a worker that was made or could not be made,
 * 0 for another message (the zygote became ready) or when there is none, -1 when the
 * zygote is gone: the caller then calls zygote_process_lost().
 */
int zygote_process_receive(struct zygote_process *zygote, struct spawn_reply *reply,
                           struct viv_error *err);

/* After its death: requests that were under way wait again; start_at is set, later after
 * each failure in a row. The caller stopped watching the socket. */
void zygote_process_lost(struct zygote_process *zygote, const char *reason);

#endif
