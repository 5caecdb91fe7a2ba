/* SPDX-License-Identifier: MIT */
/* What a supervisor knows of the checkpoint of its session, executor/checkpoint.h. */
#ifndef VIV_CHECKPOINTS_H
#define VIV_CHECKPOINTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"
#include "common/session_wire.h"
#include "common/settings.h"

/* A copy that waits to be woken. */
struct parked_copy {
    pid_t pid;         /* 0: there is none */
    int pidfd;         /* readable when it has ended; counts with a pid */
    uint64_t id;       /* of the call by which it parks */
    uint32_t sequence; /* of the CHECKPOINT that it was made for */
    uint32_t number;   /* of the call whose end is its state */
};

struct checkpoints {
    bool on;
    int64_t delay_ms;     /* that a session is idle before one is made */
    uint64_t most_memory; /* bytes of the worker's own, beyond which none is */
    struct parked_copy parked;
    uint32_t
        state; /* number of the call whose end is the worker's state; 0: it is fresh */
    enum session_skipped skipped; /* why the last one that was due was not made */
    uint32_t trimmed; /* the state with too much memory that was told to give some back */
    viv_time due;     /* VIV_TIME_NEVER: none is */
    uint32_t look;    /* number of the last question to the launcher */
    bool looking;     /* its answer counts */
    /* While the worker is WORKER_COPYING, and was looked at: */
    struct parked_copy coming; /* with a pid when it has parked */
    uint32_t sequence;         /* of the last CHECKPOINT */
    bool armed;                /* the clone is let through, once */
    bool expected;             /* it was: a new process will park */
    bool copied;               /* the worker has said so */
    viv_time limit;
    unsigned refused;  /* system calls that asked in vain, since a call or copy began */
    unsigned restores; /* since a worker got a call */
};

void checkpoints_init(struct checkpoints *checkpoints, const struct settings *settings,
                      bool on);

/* Kills the copy, if there is one; it is reaped with the other children. */
void checkpoints_drop(struct parked_copy *copy);

/* Whether there is a copy that has not ended. */
bool checkpoints_have(const struct parked_copy *copy);

#endif
