/* SPDX-License-Identifier: MIT */
/*
 * The worker of a sandbox as its supervisor sees it: asked for, ready, running, gone.
 * What comes from it is an attacker's; whether it lives and how it ended is the kernel's
 * word.
 *
 *     ABSENT --asked for--> STARTING --READY--> IDLE --PING--> PINGED
 *                                               PINGED --PONG, CALL--> RUNNING
 *                                               IDLE <--RESULT-- RUNNING
 *                                               IDLE <--CHECKPOINT, COPIED--> COPYING
 */
#ifndef VIV_WORKER_PROCESS_H
#define VIV_WORKER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/clock.h"
#include "executor/supervisor/supervisor_setup.h"
#include "executor/worker_wire.h"

enum worker_state {
    WORKER_ABSENT,
    WORKER_STARTING,
    WORKER_IDLE,
    WORKER_PINGED,
    WORKER_RUNNING,
    WORKER_COPYING
};

struct worker_process {
    enum worker_state state;
    viv_time asked_for;
    pid_t pid;    /* in the supervisor's PID namespace; 0 until READY */
    int pidfd;    /* readable when it has ended; -1 until READY */
    int channel;  /* frames of worker_wire.h */
    int listener; /* of its filter and its copies', checkpoint.h; -1: there is none */
    struct frame_reader reader;
    int output[2];    /* read ends of its standard output and error */
    int report;       /* where the launcher tells how it ended, or -1: it is our child */
    bool interrupted; /* since it was sent its last PING */
    bool late_interrupt;    /* the same of the PING before: what the next CALL says */
    bool interrupt_pending; /* the launcher has not said yet that it was */
};

/* How it ended. */
struct worker_end {
    int signal; /* 0: it exited */
    int status;
};

void worker_process_init(struct worker_process *worker);

/* Asks the launcher for a worker. */
int worker_process_ask(struct worker_process *worker,
                       const struct supervisor_descriptors *descriptors,
                       struct viv_error *err);

/* Takes the LISTENER of a worker that is STARTING. */
int worker_process_take_listener(struct worker_process *worker, struct viv_error *err);

/* Takes READY. Fails when the frame does not name a process, where workers are our
 * children a child. */
int worker_process_ready(struct worker_process *worker, const struct frame *frame,
                         struct viv_error *err);

/* Asks it whether it is alive, before the call with that number: PINGED. */
int worker_process_ping(struct worker_process *worker, uint32_t number,
                        struct viv_error *err);

/* Sends a CALL: RUNNING; `text` is the code and the standard input. An idle worker takes
 * it at once; one that code of the session has stopped does not: fails with VIV_TIMED_OUT
 * at the deadline. */
int worker_process_call(struct worker_process *worker, const struct worker_call *call,
                        struct slice text, viv_time deadline, struct viv_error *err);

/* Whether a CALL can be sent: it is idle, and no interrupt of the call before, which may
 * have ended by itself, can strike this one. */
bool worker_process_is_free(const struct worker_process *worker);

/* Interrupts the code that it runs, and tells it so with the next CALL. Where the
 * launcher is asked to, its CONTROL_INTERRUPTED is to be passed to
 * worker_process_interrupted(). */
void worker_process_interrupt(struct worker_process *worker,
                              const struct supervisor_descriptors *descriptors);

void worker_process_interrupted(struct worker_process *worker);

/* Has it give memory that is free back to the kernel, while it is IDLE. */
int worker_process_trim(struct worker_process *worker, struct viv_error *err);

/* Asks it for a copy of itself: COPYING. */
int worker_process_copy(struct worker_process *worker, uint32_t sequence,
                        struct viv_error *err);

/* The copy `pid`, a child of ours whose parking has the number `id`, takes the place of a
 * worker that has ended and was not forgotten: it is woken, with a channel of its own,
 * and must say RESTORED with that sequence number by the deadline. IDLE afterwards. On
 * failure that worker, too, is to be ended. */
int worker_process_restore(struct worker_process *worker, pid_t pid, uint64_t id,
                           uint32_t sequence, viv_time deadline, struct viv_error *err);

/* Kills and reaps all other processes of our PID namespace, of which we are PID 1. */
void worker_process_end_all(void);

/* Whether it has ended by itself; waits for that until `deadline`. */
bool worker_process_has_ended(const struct worker_process *worker, viv_time deadline);

/* Reaps those of our children that have ended and are not the worker, once that one is
 * known: the zygote of a worker may die right behind the fork, and another one make
 * another. */
void worker_process_reap_others(const struct worker_process *worker);

/* Kills it if it lives, reaps every child or has the launcher do that, and tells how the
 * worker ended. The output stays open, to be read to its end, until
 * worker_process_forget(). Fails when the launcher cannot tell that it ended: the sandbox
 * must not be used any more. */
int worker_process_end(struct worker_process *worker,
                       const struct supervisor_descriptors *descriptors,
                       struct worker_end *end, struct viv_error *err);

/* Closes all; ABSENT afterwards. */
void worker_process_forget(struct worker_process *worker);

#endif
