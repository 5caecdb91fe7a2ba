/* SPDX-License-Identifier: MIT */
#include "common/utf8.h"

size_t utf8_sequence(const char *text, size_t size) {
    const unsigned char *p = (const unsigned char *)text;

    if (size == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || size < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) ||  /* overlong */
        (p[0] == 0xed && p[1] >= 0xa0) || /* surrogates */
        (p[0] == 0xf0 && p[1] < 0x90) ||  /* overlong */
        (p[0] == 0xf4 && p[1] >= 0x90))   /* above U+10FFFF */
        return 0;
    return length;
}

bool utf8_valid(const char *text, size_t size) {
    while (size > 0) {
        size_t length = utf8_sequence(text, size);
        if (length == 0)
            return false;
        text += length;
        size -= length;
    }
    return true;
}

bool utf8_has_control(const char *text, size_t size) {
    const unsigned char *p = (const unsigned char *)text;

    for (size_t i = 0; i < size; i++)
        if (p[i] < 0x20 || p[i] == 0x7f ||
            (p[i] == 0xc2 && i + 1 < size && p[i + 1] < 0xa0))
            return true;
    return false;
}

size_t utf8_cut(const char *text, size_t size, size_t limit) {
    if (size <= limit)
        return size;
    /* A sequence that crosses the limit began at most three bytes before it. */
    for (size_t back = 1; back <= 3 && back <= limit; back++) {
        size_t length = utf8_sequence(text + limit - back, size - (limit - back));
        if (length > back)
            return limit - back;
    }
    return limit;
}
