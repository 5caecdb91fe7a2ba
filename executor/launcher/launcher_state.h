/* SPDX-License-Identifier: MIT */
/* What launcher.c and the other files of its name share. */
#ifndef VIV_LAUNCHER_STATE_H
#define VIV_LAUNCHER_STATE_H

#include "executor/launcher/event_loop.h"
#include "executor/launcher/launcher.h"
#include "executor/launcher/sandbox.h"
#include "executor/launcher/slots.h"
#include "executor/launcher/worker_look.h"
#include "executor/launcher/zygotes.h"

/* A sandbox in the launcher's list; in unshared memory, for its record. */
struct managed_sandbox {
    struct event_source source; /* its control socket */
    struct launcher *launcher;
    struct managed_sandbox *next;
    struct sandbox sandbox;
    bool stopped_for_disk; /* since the disk became short */
    struct fresh_worker fresh;
};

/* A connection of vivarium-fcgi; in unshared memory, for the records that pass
 * through. */
struct client {
    struct event_source source;
    struct launcher *launcher;
    struct client *next;
    bool waiting; /* for a sandbox */
    viv_time waits_until;
    uint64_t order; /* of arrival among those that wait */
    uint64_t given; /* the sandbox that it was sent and may not have read of yet; or 0 */
    char record[EXECUTOR_BYTES_MAX]; /* of the sandbox that it waits for */
    size_t record_size;
    char received[EXECUTOR_MESSAGE_MAX], sent[EXECUTOR_MESSAGE_MAX];
};

#define STRAYS_MAX 32

/* A child that has ended and of which the zygote has not told yet whose worker it was. */
struct stray {
    pid_t pid;
    int status;
    viv_time ended;
};

struct launcher {
    const struct settings *settings;
    struct event_loop loop;
    struct sandbox_setup setup;
    struct zygote_setup zygote_setup;
    struct zygotes zygotes;
    struct slots slots; /* in the tiers without namespaces */
    struct stray strays[STRAYS_MAX];
    unsigned next_stray;
    viv_time strangers_until;   /* there may be workers of a dead zygote; or 0 */
    const char *weaker;         /* why the tier is not a better one, or "" */
    const char *no_checkpoints; /* why none are made, or "" */
    struct event_source keeper, child_ended;
    struct managed_sandbox *sandboxes; /* by number, the newest first */
    struct client *clients;
    uint64_t last_number;
    uint64_t last_order;
    bool proven;       /* a sandbox has become ready since the start */
    int failures;      /* of starting sandboxes, in a row */
    viv_time start_at; /* no sandbox is started before it */
    int64_t beat_ms;   /* how often the keeper is told that we work; 0: never */
    viv_time beat_at;
    viv_time host_at;  /* of the next look at the host's memory and disk */
    bool memory_short; /* at the last look; the sandboxes were asked for their files */
    bool disk_short;   /* the same */
    bool stopping;
    char reason[VIV_ERROR_MESSAGE_MAX]; /* why sandboxes cannot be started, or "" */
};

/* Tells the keeper one of the words of launcher.h. */
void launcher_tell_keeper(const struct launcher *launcher, char word);

/* Takes a connection over. */
void launcher_add_client(struct launcher *launcher, int fd);

/* Looks at the host's memory and disk, when it is time, and stops a session for them. */
void launcher_watch_host(struct launcher *launcher);

/* Fails when the host has no room for another session. */
int launcher_host_has_room(const struct launcher *launcher, struct viv_error *err);

/* Gives a ready sandbox to the client that has waited longest; false when none waits. */
bool launcher_serve_waiting(struct launcher *launcher, struct managed_sandbox *managed);

/* Answers the client that has waited longest with a failure. */
void launcher_fail_waiting(struct launcher *launcher, const struct viv_error *failure);

/* Fails those that have waited too long; returns when to look again. */
viv_time launcher_expire_waiting(struct launcher *launcher);

/* Clients that wait for a sandbox; sandboxes in that state. */
unsigned launcher_count_waiting(const struct launcher *launcher);
unsigned launcher_count(const struct launcher *launcher, enum sandbox_state state);

/* Starts sandboxes until the pool is full and every waiting client will have one. */
void launcher_refill(struct launcher *launcher);

/* Kills those that have been starting for too long. */
void launcher_end_overdue(struct launcher *launcher);

/* A supervisor was reaped. The sandbox goes as soon as its worker has gone, too. */
void launcher_supervisor_ended(struct managed_sandbox *managed);
void launcher_forget_if_ended(struct managed_sandbox *managed);

/* How many sessions there may be. */
uint64_t launcher_most_sessions(const struct launcher *launcher);

/* The supervisor asks for a worker: takes over its descriptors, which on failure stay the
 * caller's. Fails with VIV_CAPACITY when that may go better later. */
int launcher_spawn_worker(struct managed_sandbox *managed, int fds[],
                          struct viv_error *err);

/* The zygote's answer to that. */
zygotes_answer launcher_worker_answered;

/* It cannot be had now. */
void launcher_refuse_worker(struct managed_sandbox *managed, int error);

/* The supervisor wants its worker, which is our child, to be interrupted, or to end. */
void launcher_interrupt_worker(struct managed_sandbox *managed);
void launcher_end_worker(struct managed_sandbox *managed);

/* The supervisor wants to know how its worker is, from outside. */
void launcher_look_at_worker(struct managed_sandbox *managed, struct control_look *look);

/* A child was reaped that is neither a zygote nor a supervisor. Returns the sandbox whose
 * worker it was, or NULL. */
struct managed_sandbox *launcher_child_was_worker(struct launcher *launcher, pid_t pid,
                                                  int status);

/* A zygote has died: kills the workers, our children, of which it could not tell. */
void launcher_end_strangers(struct launcher *launcher);

/* Resident bytes of the sandbox's worker. */
uint64_t launcher_memory_of(const struct launcher *launcher,
                            const struct sandbox *sandbox);

/* Kills it. It stays in the list, as SANDBOX_ENDING, until it is reaped; `managed` is
 * valid that long. */
void launcher_end_sandbox(struct managed_sandbox *managed);

#endif
