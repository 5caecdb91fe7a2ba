/* SPDX-License-Identifier: MIT */
#include "executor/seccomp/architecture.h"

#include <linux/audit.h>
#include <seccomp.h>
#include <sys/syscall.h>

/* x32 is x86-64 with this bit in the number. */
#define X32_BIT 0x40000000U

/* The number that a tracer leaves for "no call". */
#define NO_CALL UINT32_MAX

const struct seccomp_architecture seccomp_x86_64 = {
    .token = SCMP_ARCH_X86_64,
    .audit = AUDIT_ARCH_X86_64,
    .foreign_numbers = X32_BIT,
    .kill = 62,
    .tgkill = 234,
};

const struct seccomp_architecture seccomp_arm64 = {
    .token = SCMP_ARCH_AARCH64,
    .audit = AUDIT_ARCH_AARCH64,
    .foreign_numbers = NO_CALL,
    .kill = 129,
    .tgkill = 131,
};

const struct seccomp_architecture *seccomp_native(void) {
#if defined(__x86_64__)
    _Static_assert(SYS_kill == 62 && SYS_tgkill == 234, "numbers of x86-64");
    return &seccomp_x86_64;
#elif defined(__aarch64__)
    _Static_assert(SYS_kill == 129 && SYS_tgkill == 131, "numbers of arm64");
    return &seccomp_arm64;
#else
#error "the system calls of this architecture have not been reviewed"
#endif
}
