/* SPDX-License-Identifier: MIT */
#include "common/descriptors.h"

#include <sys/eventfd.h>
#include <sys/resource.h>

void descriptors_raise_limit(void) {
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

int descriptors_spare(void) { return eventfd(0, EFD_CLOEXEC); }
