/* SPDX-License-Identifier: MIT */
/*
 * Numbers with units, as people write them in settings. A count is digits alone. A size
 * is in bytes, or has one of the units K, M, G: powers of 1024. A duration has one of the
 * units ms, s, m, h and is kept in milliseconds; only 0 needs none, since a bare number
 * would be taken for seconds by one reader and for milliseconds by the next. Any thread.
 */
#ifndef VIV_QUANTITY_H
#define VIV_QUANTITY_H

#include <stdint.h>

enum quantity { QUANTITY_COUNT, QUANTITY_SIZE, QUANTITY_DURATION };

#define QUANTITY_TEXT_SIZE 32

/* Reads the whole of `text`. Returns 0 with *value, or -1 when it has not the form of its
 * kind or does not fit. */
int quantity_parse(enum quantity kind, const char *text, uint64_t *value);

/* What the form is, for a message: "a size such as 4096, 64K, 10M or 1G". */
const char *quantity_form(enum quantity kind);

/* Writes a value with the largest unit that leaves no fraction. */
void quantity_format(enum quantity kind, uint64_t value, char text[QUANTITY_TEXT_SIZE]);

#endif
