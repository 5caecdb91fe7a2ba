/* SPDX-License-Identifier: MIT */
/*
 * The launcher: the process in the outer user namespace that makes sandboxes, keeps a
 * pool of ready ones, hands them to clients, watches the host's memory and reaps. One
 * thread, one loop, which waits for nothing but its descriptors.
 */
#ifndef VIV_LAUNCHER_H
#define VIV_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/settings.h"
#include "executor/isolation.h"
#include "executor/launcher/cgroups.h"

/* What the launcher is given by the process that started it. */
struct launcher_start {
    const struct settings *settings;
    int keeper;  /* SOCK_SEQPACKET: connections of clients come from there; its end is the
                    end */
    int program; /* vivarium-zygote, open */
    int proc;    /* /proc of the host */
    enum isolation_tier tier;
    const char *weaker;         /* why it is not a better one, or "" */
    const char *no_checkpoints; /* why none are made (executor/checkpoint.h), or "" */
    struct cgroups *cgroups;    /* without a subtree where none are used */
    bool ordinary;              /* the executor runs as an ordinary user */
    int64_t beat_ms;            /* how often it tells that it works; 0: never */
    /* Without namespaces: */
    int janitor; /* SOCK_SEQPACKET to it: janitor.h */
    int folder;  /* of the zygote */
};

/* What it tells the keeper by that socket, in messages of one byte. */
#define LAUNCHER_READY 'r' /* the first sandbox is: sessions can begin */
#define LAUNCHER_WORKS 'w' /* its loop got round again */

/* For a process that has entered its namespaces and the template root. Returns the exit
 * status when the keeper is gone and every child has been reaped. */
int launcher_run(const struct launcher_start *start);

/* Instead of that: makes one sandbox, as far as to its demand for a worker, and ends it.
 * Fails with what did not work. */
int launcher_try(const struct launcher_start *start, struct viv_error *err);

#endif
