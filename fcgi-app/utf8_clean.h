/* SPDX-License-Identifier: MIT */
/*
 * Makes bytes of user code into text: what is not UTF-8 becomes U+FFFD, one for each
 * maximal part of a broken sequence (the practice of the Unicode standard, section 3.9,
 * and of Python's errors="replace"). Any thread.
 */
#ifndef VIV_UTF8_CLEAN_H
#define VIV_UTF8_CLEAN_H

#include "common/bytes.h"
#include "common/error.h"

/* Appends the cleaned `text` to `out`, which may grow to `limit` bytes: it takes up to
 * three times its size. Fails as buffer_append(). */
int utf8_clean(struct slice text, struct buffer *out, size_t limit,
               struct viv_error *err);

#endif
