/* SPDX-License-Identifier: MIT */
/*
 * The names of the setting seccomp_refuse: system calls for which no rule is made, so
 * that they fail as all do that are not on a list. Names are divided by commas or blanks.
 * NULL is the empty list.
 */
#ifndef VIV_SECCOMP_REFUSALS_H
#define VIV_SECCOMP_REFUSALS_H

#include <stdbool.h>

#include "common/error.h"

/* Fails with VIV_CONFIG and the name when one is a system call of no platform. */
int refusals_check(const char *list, struct viv_error *err);

bool refusals_have(const char *list, const char *name);

#endif
