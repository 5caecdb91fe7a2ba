/* SPDX-License-Identifier: MIT */
/* Whether the compiler builds for AddressSanitizer, in the ways of gcc and of clang. */
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

#endif
