/* SPDX-License-Identifier: MIT */
/*
 * What libseccomp cannot say, as instructions in front of its program: numbers that
 * nobody has reviewed are unknown calls, and whom kill(2) and tgkill(2) may reach.
 */
#ifndef VIV_SECCOMP_PREFACE_H
#define VIV_SECCOMP_PREFACE_H

#include <linux/filter.h>
#include <stddef.h>

#include "executor/seccomp/architecture.h"

/* The newest system call that the lists were made with. A newer one is answered with
 * ENOSYS, so that libraries that know it fall back. */
#define NEWEST_REVIEWED_CALL 462

enum signal_reach {
    SIGNALS_UNCHECKED,   /* the program behind decides alone */
    SIGNALS_NOT_TO_INIT, /* single processes other than process 1 */
    SIGNALS_TO_SELF,     /* the process whose id is put into PREFACE_OWN_PID */
};

#define PREFACE_OWN_PID 9 /* an instruction */
#define PREFACE_MAX     12

/* Until the id is put there: the id of no process, pid_max being at most 1 << 22. */
#define NO_PROCESS 0x7fffffffU

/*
 * Writes the preface; returns its length. It decides the calls above and leaves all
 * others to the instruction behind it, those of a foreign architecture or ABI among them.
 */
size_t preface_put(struct sock_filter preface[PREFACE_MAX],
                   const struct seccomp_architecture *architecture,
                   enum signal_reach reach);

#endif
