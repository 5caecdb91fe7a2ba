/* SPDX-License-Identifier: MIT */
/* The memory of the host, as /proc tells it. `proc` is a descriptor of the
 * host's /proc. */
#ifndef VIV_HOST_MEMORY_H
#define VIV_HOST_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Bytes that can be had without swapping (MemAvailable of proc(5)); UINT64_MAX where the
 * host does not tell. */
uint64_t host_memory_available(int proc);

/* Resident bytes of process `pid`; 0 when it is gone. */
uint64_t host_memory_of(int proc, pid_t pid);

/* Resident bytes of the children of process `pid`; 0 when it is gone. */
uint64_t host_memory_of_children(int proc, pid_t pid);

/* Writes the children of process `pid`, which has one thread, to `children`, `most` at
 * most; returns their number. */
size_t host_children(int proc, pid_t pid, pid_t children[], size_t most);

#endif
