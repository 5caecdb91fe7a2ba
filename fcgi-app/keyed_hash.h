/* SPDX-License-Identifier: MIT */
/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012): a hash that nobody can aim at without its
 * key. For tables whose keys clients choose, and for naming a session in the log without
 * telling its id. Any thread.
 */
#ifndef VIV_KEYED_HASH_H
#define VIV_KEYED_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_key {
    uint64_t words[2];
};

/* A key from the kernel's random numbers; aborts where there are none. */
struct hash_key hash_key_new(void);

/* The hash of `size` bytes; `data` may be NULL when there are none. */
uint64_t keyed_hash(struct hash_key key, const void *data, size_t size);

/* Four digits of the hash of a text. */
struct hash_mark {
    char digits[5];
};

struct hash_mark hash_mark(struct hash_key key, const char *text);

#endif
