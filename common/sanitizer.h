/* SPDX-License-Identifier: MIT */
/* Whether the compiler builds for AddressSanitizer, in the ways of gcc and of clang, and
 * what then is to be done besides. */
#ifndef VIV_SANITIZER_H
#define VIV_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__)
#define BUILT_WITH_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BUILT_WITH_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef BUILT_WITH_ADDRESS_SANITIZER
#define BUILT_WITH_ADDRESS_SANITIZER 0
#endif

#if BUILT_WITH_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>
#include <unistd.h>
#endif

/* Ends the process with a report when it has memory that nothing refers to any more. For
 * one that ends by _exit(2), from where all that it uses is in reach yet. LeakSanitizer
 * looks in /proc, and does nothing here where there is none. */
static inline void sanitizer_look_for_leaks(void) {
#if BUILT_WITH_ADDRESS_SANITIZER
    if (access("/proc/self/task", F_OK) == 0)
        __lsan_do_leak_check();
#endif
}

#endif
