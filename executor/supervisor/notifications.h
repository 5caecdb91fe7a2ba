/* SPDX-License-Identifier: MIT */
/*
 * The system calls of a session that its supervisor decides, seccomp_unotify(2) and
 * executor/checkpoint.h. What the kernel says of a call, its process and its arguments is
 * so: they are in registers, and the caller waits.
 */
#ifndef VIV_NOTIFICATIONS_H
#define VIV_NOTIFICATIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct notification {
    uint64_t id;
    pid_t pid;     /* of the thread, in our PID namespace */
    bool is_clone; /* otherwise it is a process that wants to be parked */
};

/* Takes one of a listener that is readable. Returns 0, or -1 when the caller is gone
 * meanwhile. */
int notification_receive(int listener, struct notification *notification);

/* Lets the call be made; fails it with EPERM. Nothing comes of it when the caller is
 * gone. */
void notification_allow(int listener, const struct notification *notification);
void notification_refuse(int listener, const struct notification *notification);

/* Puts a copy of `fd` in the place of descriptor `as` of the process whose call this is,
 * and answers the call with 0. Returns -1 when the process is gone. */
int notification_wake(int listener, uint64_t id, int fd, int as);

#endif
