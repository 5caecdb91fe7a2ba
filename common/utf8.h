/* SPDX-License-Identifier: MIT */
/* UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef VIV_UTF8_H
#define VIV_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The length (1 to 4) of the valid sequence at the front, or 0. */
size_t utf8_sequence(const char *text, size_t size);

bool utf8_valid(const char *text, size_t size);

/* Whether valid UTF-8 holds a control character: Unicode's Cc, that is C0, DEL and C1. */
bool utf8_has_control(const char *text, size_t size);

/* The largest length up to `limit` at which `text` can be cut without cutting a sequence;
 * bytes that are not UTF-8 may be cut anywhere. */
size_t utf8_cut(const char *text, size_t size, size_t limit);

#endif
