/* SPDX-License-Identifier: MIT */
/*
 * The zygotes of the launcher: one that workers are asked from, and its successor while
 * that is being started. A zygote is replaced after so many forks or so much time, so
 * that sessions do not share one memory layout for ever, and when it dies. Requests
 * wait here while there is none; no session notices. Only the launcher's one thread.
 */
#ifndef VIV_ZYGOTES_H
#define VIV_ZYGOTES_H

#include "executor/launcher/event_loop.h"
#include "executor/launcher/zygote_process.h"

struct spawn; /* a request that waits or is under way */

struct zygote {
    struct event_source source; /* its socket */
    struct zygotes *all;
    struct zygote_process process;
    unsigned in_flight; /* requests that it has not answered */
    uint64_t forks;
    viv_time owes_since; /* to be ready, or its next answer */
    viv_time ready_at;
    viv_time start_at; /* not to be started before */
    int failures;      /* in a row */
    bool retiring;     /* answers what it was asked, then ends */
};

/* Told of each worker that was made, or could not be. */
typedef void zygotes_answer(void *context, const struct spawn_reply *reply);

struct zygotes {
    const struct zygote_setup *setup;
    struct event_loop *loop;
    zygotes_answer *answer;
    void *context;
    struct zygote two[2];
    int current;                        /* index of the one that is asked */
    struct spawn *first;                /* in order of arrival */
    char reason[VIV_ERROR_MESSAGE_MAX]; /* why there is none to ask, or "" */
};

/* The four parameters stay the caller's and must outlive *zygotes. Starts none yet. */
void zygotes_init(struct zygotes *zygotes, const struct zygote_setup *setup,
                  struct event_loop *loop, zygotes_answer *answer, void *context);

/* Asks for a worker of that user and takes over the `count` descriptors. Fails with
 * VIV_BAD_GATEWAY for a sandbox that has more requests here than a supervisor of ours
 * ever makes. */
int zygotes_spawn(struct zygotes *zygotes, uint64_t sandbox, uid_t user, const int fds[],
                  size_t count, struct viv_error *err);

/* Drops what waits for a sandbox that has ended. Whether something is under way still,
 * which will be answered. */
bool zygotes_forget(struct zygotes *zygotes, uint64_t sandbox);

/* Starts what is due and gives up what hangs; returns when something is to be started
 * again. To be called at least once a second. */
viv_time zygotes_keep_time(struct zygotes *zygotes);

/* Whether the child that was reaped was a zygote. */
bool zygotes_reaped(struct zygotes *zygotes, pid_t pid);

/* Whether a zygote that is not reaped has that process id. */
bool zygotes_have(const struct zygotes *zygotes, pid_t pid);

/* Whether an answer is to come: there may be a worker of which nobody has told yet. */
bool zygotes_owe(const struct zygotes *zygotes);

/* Kills them; they are reaped later. */
void zygotes_kill(struct zygotes *zygotes);

#endif
