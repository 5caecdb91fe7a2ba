/* SPDX-License-Identifier: MIT */
/*
 * `vivarium-executor --check`: says what probe.h found, for people and for machines.
 * Knows nothing of how it was found.
 */
#ifndef VIV_CHECK_H
#define VIV_CHECK_H

#include <stdio.h>

#include "executor/launcher/probe.h"

/* A line for each control, below it what may help where that matters, and the tier that
 * vivarium-executor would take. */
void check_print(const struct probe_report *report, const char *min_isolation, FILE *to);

/* The same as one line of JSON; docs/operations.md has its members. */
void check_print_json(const struct probe_report *report, const char *min_isolation,
                      FILE *to);

/* The exit status: 0 for the tier full, 1 isolated, 2 confined, 3 minimal; 4 for none, or
 * one below min_isolation. */
int check_status(const struct probe_report *report, const char *min_isolation);

#endif
