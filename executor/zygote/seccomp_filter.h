/* SPDX-License-Identifier: MIT */
/*
 * The system calls that a worker may make. The filter is built once, in the zygote, and
 * loaded by each worker as its last control. docs/security.md has the list and its
 * reasons.
 */
#ifndef VIV_SECCOMP_FILTER_H
#define VIV_SECCOMP_FILTER_H

#include <linux/filter.h>

#include "common/error.h"

struct seccomp_filter {
    struct sock_filter *instructions; /* owned */
    unsigned short count;
};

/* Builds the allow-list. Everything else fails with EPERM or with the error that
 * libraries expect; a foreign ABI kills the process. */
int seccomp_filter_build(struct seccomp_filter *filter, struct viv_error *err);

/* Loads it into the calling process, which has set no_new_privs. It cannot be
 * taken off. */
int seccomp_filter_load(const struct seccomp_filter *filter, struct viv_error *err);

void seccomp_filter_clear(struct seccomp_filter *filter);

#endif
