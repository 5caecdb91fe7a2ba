/* SPDX-License-Identifier: MIT */
/*
 * A filter of system calls: a program of classic BPF, seccomp(2). What it allows is said
 * by worker_filter.h and supervisor_filter.h, which build it.
 */
#ifndef VIV_SECCOMP_FILTER_H
#define VIV_SECCOMP_FILTER_H

#include <linux/filter.h>
#include <sys/types.h>

#include "common/error.h"

struct seccomp_filter {
    struct sock_filter *instructions; /* owned */
    unsigned short count;
    unsigned short own_pid; /* the instruction that has the process's id; 0: none has */
};

/* Puts the id of the calling process in its place, before seccomp_filter_load(); without
 * it a filter that lets signals reach the process itself lets them reach nobody. Does
 * nothing to another filter. */
void seccomp_filter_set_pid(struct seccomp_filter *filter, pid_t own);

/* Loads it into all threads of the calling process, which has set no_new_privs. It cannot
 * be taken off. */
int seccomp_filter_load(const struct seccomp_filter *filter, struct viv_error *err);

void seccomp_filter_clear(struct seccomp_filter *filter);

#endif
