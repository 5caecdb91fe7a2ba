/* SPDX-License-Identifier: MIT */
/*
 * How strongly sessions are kept apart, from the weakest tier to the strongest.
 * docs/security.md says what each one promises.
 */
#ifndef VIV_ISOLATION_H
#define VIV_ISOLATION_H

#include "common/error.h"

enum isolation_tier {
    ISOLATION_MINIMAL,
    ISOLATION_CONFINED,
    ISOLATION_ISOLATED, /* namespaces: the one that is built */
    ISOLATION_FULL      /* and memory and processor time bounded by cgroups */
};

/* The tier as settings, /health and the log spell it; a constant. */
const char *isolation_name(enum isolation_tier tier);

/* Fails with VIV_CONFIG when `minimum` is the name of a tier above `tier`, or of none. */
int isolation_check(enum isolation_tier tier, const char *minimum, struct viv_error *err);

#endif
