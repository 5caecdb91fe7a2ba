/* SPDX-License-Identifier: MIT */
/*
 * Bytes: `struct slice` is borrowed and never freed; `struct buffer` is owned and grows,
 * up to a limit that its user gives. The zero value of either is empty. Not shared
 * between threads. A small allocation that fails aborts (viv_xmalloc); one whose size a
 * client chose fails.
 */
#ifndef VIV_BYTES_H
#define VIV_BYTES_H

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

struct slice {
    const char *data;
    size_t size;
};

struct buffer {
    char *data;
    size_t size;
    size_t capacity;
};

void *viv_xmalloc(size_t size) __attribute__((malloc, alloc_size(1), returns_nonnull));
void *viv_xcalloc(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
void *viv_xrealloc(void *pointer, size_t size) __attribute__((returns_nonnull));
char *viv_xstrdup(const char *text) __attribute__((malloc, returns_nonnull));

/* The bytes as a text: up to the first NUL. */
char *viv_xstrndup(const char *data, size_t size)
    __attribute__((malloc, returns_nonnull));

/* Makes room for `more` bytes behind the size. Fails with VIV_CAPACITY when there is no
 * memory, or when the size would pass `limit`; the buffer is then as it was. */
int buffer_reserve(struct buffer *buffer, size_t more, size_t limit,
                   struct viv_error *err);

/* Appends; fails as buffer_reserve(). */
int buffer_append(struct buffer *buffer, const void *data, size_t size, size_t limit,
                  struct viv_error *err);

/* Drops the first `count` bytes. */
void buffer_consume(struct buffer *buffer, size_t count);

/* Frees what it holds; the buffer is the zero value afterwards. */
void buffer_clear(struct buffer *buffer);

static inline void buffer_clear_cleanup(struct buffer *buffer) { buffer_clear(buffer); }

/* The value of a hexadecimal digit, -1 for any other character. */
static inline int hex_value(char c) {
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* Little-endian numbers, at any alignment. */
static inline void put_u16(void *to, uint16_t value) {
    unsigned char *p = to;
    p[0] = (unsigned char)value;
    p[1] = (unsigned char)(value >> 8);
}

static inline void put_u32(void *to, uint32_t value) {
    unsigned char *p = to;
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(value >> (8 * i));
}

static inline void put_u64(void *to, uint64_t value) {
    unsigned char *p = to;
    for (int i = 0; i < 8; i++)
        p[i] = (unsigned char)(value >> (8 * i));
}

static inline uint16_t get_u16(const void *from) {
    const unsigned char *p = from;
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t get_u32(const void *from) {
    const unsigned char *p = from;
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value |= (uint32_t)p[i] << (8 * i);
    return value;
}

static inline uint64_t get_u64(const void *from) {
    const unsigned char *p = from;
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value |= (uint64_t)p[i] << (8 * i);
    return value;
}

#endif
