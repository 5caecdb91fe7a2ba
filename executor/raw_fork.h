/* SPDX-License-Identifier: MIT */
/* clone(2) as fork(2), without libc: no lock is taken, no handler runs. */
#ifndef VIV_RAW_FORK_H
#define VIV_RAW_FORK_H

#include <stddef.h>
#include <sys/types.h>

/* What _Fork(3) would set in the child. */
struct raw_fork {
    pid_t *id;    /* where libc keeps gettid(2); NULL if the kernel does not tell */
    void *robust; /* get_robust_list(2) */
    size_t robust_size;
};

/* Finds it out for the calling thread, by system calls that a worker is refused later. */
struct raw_fork raw_fork_prepare(void);

/* Forks with these flags of clone(2), CLONE_CHILD_SETTID and CLONE_CHILD_CLEARTID among
 * them. The caller has an `id` and holds no robust mutex. Returns as fork(2). */
pid_t raw_fork(const struct raw_fork *thread, unsigned long flags);

#endif
