/* SPDX-License-Identifier: MIT */
#include "fcgi-app/keyed_hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/bytes.h"
#include "common/log.h"

struct hash_key hash_key_new(void) {
    struct hash_key key;

    /* getrandom(2): up to 256 bytes come whole once the kernel's generator is seeded. */
    if (getrandom(&key, sizeof key, 0) != (ssize_t)sizeof key) {
        viv_log(VIV_LOG_ERROR, "no_random_numbers", "error=\"%m\"");
        abort();
    }
    return key;
}

static uint64_t rotate(uint64_t value, int bits) {
    return value << bits | value >> (64 - bits);
}

static void rounds(uint64_t v[4], int count) {
    while (count-- > 0) {
        v[0] += v[1];
        v[2] += v[3];
        v[1] = rotate(v[1], 13) ^ v[0];
        v[3] = rotate(v[3], 16) ^ v[2];
        v[0] = rotate(v[0], 32);
        v[2] += v[1];
        v[0] += v[3];
        v[1] = rotate(v[1], 17) ^ v[2];
        v[3] = rotate(v[3], 21) ^ v[0];
        v[2] = rotate(v[2], 32);
    }
}

uint64_t keyed_hash(struct hash_key key, const void *data, size_t size) {
    const unsigned char *p = data;
    uint64_t v[4] = {key.words[0] ^ UINT64_C(0x736f6d6570736575),
                     key.words[1] ^ UINT64_C(0x646f72616e646f6d),
                     key.words[0] ^ UINT64_C(0x6c7967656e657261),
                     key.words[1] ^ UINT64_C(0x7465646279746573)};
    uint64_t last = (uint64_t)size << 56;

    for (; size >= 8; size -= 8, p += 8) {
        uint64_t word = get_u64(p);
        v[3] ^= word;
        rounds(v, 2);
        v[0] ^= word;
    }
    for (size_t i = 0; i < size; i++)
        last |= (uint64_t)p[i] << (8 * i);
    v[3] ^= last;
    rounds(v, 2);
    v[0] ^= last;
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

struct hash_mark hash_mark(struct hash_key key, const char *text) {
    struct hash_mark mark;

    snprintf(mark.digits, sizeof mark.digits, "%04x",
             (unsigned)(keyed_hash(key, text, strlen(text)) & 0xffff));
    return mark;
}
