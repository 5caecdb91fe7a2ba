/* SPDX-License-Identifier: MIT */
/*
 * One sandbox as the launcher sees it: a supervisor in namespaces of its own, which asks
 * for its worker, becomes ready, is handed to a client, ends. Only the launcher's one
 * thread.
 *
 *     STARTING --READY--> READY --acquired--> TAKEN --ended or died--> reaped
 */
#ifndef VIV_SANDBOX_H
#define VIV_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/executor_wire.h"
#include "common/settings.h"
#include "executor/isolation.h"
#include "executor/launcher/cgroups.h"
#include "executor/seccomp/filter.h"

enum sandbox_state { SANDBOX_STARTING, SANDBOX_READY, SANDBOX_TAKEN, SANDBOX_ENDING };

struct sandbox {
    uint64_t number;
    enum sandbox_state state;
    pid_t pid;     /* of the supervisor, in the launcher's PID namespace; 0: reaped */
    int control;   /* SOCK_SEQPACKET to it */
    uint32_t slot; /* makes its user; unique among live sandboxes */
    /* The tiers without namespaces, where the worker is the launcher's child: */
    pid_t worker;            /* 0: there is none that is known */
    int report;              /* socket to which its end is told, or -1 */
    bool worker_asked;       /* of the zygote, which has not answered */
    bool worker_unwanted;    /* kill it when it is known */
    bool worker_interrupted; /* interrupt it when it is known, and tell the supervisor */
    viv_time started;
    uint64_t files; /* bytes of memory that its files took when it was last asked */
    char record[EXECUTOR_BYTES_MAX];
    size_t record_size;
};

/* What a new sandbox needs to know of its launcher. */
struct sandbox_setup {
    const struct settings *settings;
    enum isolation_tier tier;
    int proc;                      /* /proc of the host */
    bool ordinary;                 /* the executor runs as an ordinary user */
    bool checkpoints;              /* executor/checkpoint.h */
    const struct cgroups *cgroups; /* without a subtree where none are used */
    struct seccomp_filter filter;  /* of supervisors */
};

/* Starts a supervisor in new namespaces, or in the slot of that folder; returns before it
 * is ready. On failure nothing is left. The caller owns sandbox->control and reaps
 * sandbox->pid. */
int sandbox_start(struct sandbox *sandbox, const struct sandbox_setup *setup, int folder,
                  struct viv_error *err);

/* Hands a new session channel to the supervisor; returns the client's end, or -1. */
int sandbox_open_channel(struct sandbox *sandbox, struct viv_error *err);

/* Removes what is left of it when its processes are reaped. */
void sandbox_clear(const struct sandbox *sandbox, const struct sandbox_setup *setup);

/* Kills the supervisor and with it, by the kernel, all that is in its PID namespace;
 * where it has none, the worker as well. They are reaped later. */
void sandbox_kill(struct sandbox *sandbox);

#endif
