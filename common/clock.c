/* SPDX-License-Identifier: MIT */
#include "common/clock.h"

#include <limits.h>
#include <time.h>

viv_time viv_now(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * VIV_SECOND + now.tv_nsec;
}

int64_t viv_wall_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / VIV_MS;
}

viv_time viv_after_ms(int64_t ms) {
    viv_time span, deadline;

    if (__builtin_mul_overflow(ms, VIV_MS, &span) ||
        __builtin_add_overflow(viv_now(), span, &deadline))
        return VIV_TIME_NEVER;
    return deadline;
}

int viv_poll_timeout(viv_time deadline) {
    if (deadline == VIV_TIME_NEVER)
        return -1;
    viv_time rest = deadline - viv_now();
    if (rest <= 0)
        return 0;
    viv_time ms = (rest + VIV_MS - 1) / VIV_MS;
    return ms > INT_MAX ? INT_MAX : (int)ms;
}

int64_t viv_backoff_ms(int failures, int64_t first_ms, int64_t last_ms) {
    int64_t wait_ms = first_ms;

    for (int i = 1; i < failures && wait_ms < last_ms; i++)
        wait_ms = wait_ms > last_ms / 2 ? last_ms : 2 * wait_ms;
    return wait_ms < last_ms ? wait_ms : last_ms;
}
