/* SPDX-License-Identifier: MIT */
/*
 * Time. Deadlines are absolute, in nanoseconds of CLOCK_MONOTONIC, so that a changed wall
 * clock moves none and none is passed down as a rest that was measured before. Any
 * thread.
 */
#ifndef VIV_CLOCK_H
#define VIV_CLOCK_H

#include <stdint.h>

typedef int64_t viv_time; /* nanoseconds of CLOCK_MONOTONIC */

#define VIV_TIME_NEVER INT64_MAX
#define VIV_MS         INT64_C(1000000)
#define VIV_SECOND     INT64_C(1000000000)

viv_time viv_now(void);

/* Milliseconds since 1970 by the wall clock: for people, never for a deadline. */
int64_t viv_wall_ms(void);

/* now + ms, VIV_TIME_NEVER where that overflows. */
viv_time viv_after_ms(int64_t ms);

/* The rest until `deadline` as poll(2) wants it: milliseconds rounded up, 0 when it has
 * passed, -1 for VIV_TIME_NEVER. */
int viv_poll_timeout(viv_time deadline);

/* How long to wait after `failures` failures in a row, from 1, before the next attempt:
 * `first_ms`, twice as long after each further one, never more than `last_ms`. */
int64_t viv_backoff_ms(int failures, int64_t first_ms, int64_t last_ms);

#endif
