/* SPDX-License-Identifier: MIT */
/*
 * Landlock, a second lock behind the mounts and the system call filter: what a process
 * may still do with the files that it can name, and whom it may reach by signals, TCP
 * and abstract unix sockets. By raw system calls with constants of our own, for the
 * headers of Debian 12 are older than the kernels that it runs on (landlock(7)).
 */
#ifndef VIV_LANDLOCK_H
#define VIV_LANDLOCK_H

#include "executor/isolation.h"

/* The version of the kernel's interface, 0 where there is none. */
int landlock_abi(void);

/*
 * Restricts the calling process, which has one thread and no_new_privs, to a session's
 * files: what its root shows may be read, in ISOLATION_MINIMAL, which has no root of its
 * own, what such a root would show; the home, /tmp and /dev/shm may be written; nothing
 * may be executed, and no device, socket or FIFO made. In ISOLATION_MINIMAL the home is
 * the current folder, and `../tmp` is for /tmp. Does nothing where the kernel has no
 * Landlock, but in ISOLATION_MINIMAL, which is nothing without it: there it fails.
 */
int landlock_restrict_worker(enum isolation_tier tier, struct viv_error *err);

/* The same for the supervisor: the home, for reading and writing, and to look through the
 * two others. */
int landlock_restrict_supervisor(enum isolation_tier tier, struct viv_error *err);

#endif
