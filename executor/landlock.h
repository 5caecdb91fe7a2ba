/* SPDX-License-Identifier: MIT */
/*
 * Landlock, a second lock behind the mounts and the system call filter: what a process
 * may still do with the files that it can name, and whom it may reach by signals, TCP
 * and abstract unix sockets. By raw system calls with constants of our own, for the
 * headers of Debian 12 are older than the kernels that it runs on (landlock(7)).
 */
#ifndef VIV_LANDLOCK_H
#define VIV_LANDLOCK_H

#include "common/error.h"

/* The version of the kernel's interface, 0 where there is none. */
int landlock_abi(void);

/*
 * Restricts the calling process, which has one thread and no_new_privs, to a session's
 * files: everything that it can name may be read; the home, /tmp and /dev/shm may be
 * written; nothing may be executed, and no device, socket or FIFO made. Does nothing
 * where the kernel has no Landlock.
 */
int landlock_restrict_worker(struct viv_error *err);

/* The same for the supervisor: only the home, for reading and writing. */
int landlock_restrict_supervisor(struct viv_error *err);

#endif
