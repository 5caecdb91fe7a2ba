/* SPDX-License-Identifier: MIT */
/*
 * What a filter must know of an architecture. A filter is loaded on the one that runs it;
 * it can be built for each, so that the tests see the programs of all.
 */
#ifndef VIV_SECCOMP_ARCHITECTURE_H
#define VIV_SECCOMP_ARCHITECTURE_H

#include <stdint.h>

struct seccomp_architecture {
    uint32_t token; /* libseccomp's SCMP_ARCH_... */
    uint32_t audit; /* the kernel's AUDIT_ARCH_..., in struct seccomp_data */
    uint32_t
        foreign_numbers; /* from here on, numbers are calls of another ABI, or none */
    uint32_t kill;       /* number of kill(2) */
    uint32_t tgkill;     /* number of tgkill(2) */
};

extern const struct seccomp_architecture seccomp_x86_64;
extern const struct seccomp_architecture seccomp_arm64;

/* The one that this program runs on. */
const struct seccomp_architecture *seccomp_native(void);

#endif
