/* SPDX-License-Identifier: MIT */
/*
 * How strongly sessions are kept apart, from the weakest tier to the strongest.
 * docs/security.md says what each one promises.
 */
#ifndef VIV_ISOLATION_H
#define VIV_ISOLATION_H

#include <stdbool.h>

#include "common/error.h"

enum isolation_tier {
    ISOLATION_MINIMAL,  /* Landlock and the filter of system calls */
    ISOLATION_CONFINED, /* besides a user and a root of its own for each session */
    ISOLATION_ISOLATED, /* namespaces */
    ISOLATION_FULL      /* besides memory, processes, processor time bounded by cgroups */
};

/* Whether sessions of the tier have namespaces of their own. */
bool isolation_has_namespaces(enum isolation_tier tier);

/* The tier as settings, /health and the log spell it; a constant. */
const char *isolation_name(enum isolation_tier tier);

/* The tier of that name, or -1. */
int isolation_of_name(const char *name);

/* Fails with VIV_CONFIG when `minimum` is the name of a tier above `tier`, or of none. */
int isolation_check(enum isolation_tier tier, const char *minimum, struct viv_error *err);

#endif
