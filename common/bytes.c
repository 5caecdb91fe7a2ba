/* SPDX-License-Identifier: MIT */
#include "common/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "common/log.h"

static void *must(void *pointer) {
    if (pointer)
        return pointer;
    viv_log(VIV_LOG_ERROR, "out_of_memory", "small=1");
    abort();
}

void *viv_xmalloc(size_t size) { return must(malloc(size ? size : 1)); }

void *viv_xcalloc(size_t count, size_t size) { return must(calloc(count, size)); }

void *viv_xrealloc(void *pointer, size_t size) {
    return must(realloc(pointer, size ? size : 1));
}

char *viv_xstrdup(const char *text) { return must(strdup(text)); }

char *viv_xstrndup(const char *data, size_t size) { return must(strndup(data, size)); }

int buffer_reserve(struct buffer *buffer, size_t more, size_t limit,
                   struct viv_error *err) {
    size_t needed;

    if (__builtin_add_overflow(buffer->size, more, &needed) || needed > limit)
        return viv_fail(err, VIV_CAPACITY, "more than %zu bytes", limit);
    if (needed <= buffer->capacity)
        return 0;
    size_t capacity = buffer->capacity ? buffer->capacity : 256;
    while (capacity < needed)
        capacity = capacity > limit / 2 ? limit : capacity * 2;
    char *data = realloc(buffer->data, capacity);
    if (!data)
        return viv_fail(err, VIV_CAPACITY, "no memory for %zu bytes", capacity);
    buffer->data = data;
    buffer->capacity = capacity;
    return 0;
}

int buffer_append(struct buffer *buffer, const void *data, size_t size, size_t limit,
                  struct viv_error *err) {
    if (size == 0)
        return 0;
    if (buffer_reserve(buffer, size, limit, err))
        return -1;
    memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
    return 0;
}

void buffer_consume(struct buffer *buffer, size_t count) {
    buffer->size -= count;
    if (buffer->size)
        memmove(buffer->data, buffer->data + count, buffer->size);
}

void buffer_clear(struct buffer *buffer) {
    free(buffer->data);
    *buffer = (struct buffer){0};
}
