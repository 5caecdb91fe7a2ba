/* SPDX-License-Identifier: MIT */
#include "common/json_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

static void put(struct json_out *out, const void *data, size_t size) {
    out->size += size;
    if (size == 0 || !out->sink || out->failed)
        return;
    if (out->sink(out->context, data, size))
        out->failed = true;
}

void json_out_raw(struct json_out *out, const char *text) {
    put(out, text, strlen(text));
}

void json_out_splice(struct json_out *out, struct slice text) {
    put(out, text.data, text.size);
}

/* The character at `p`, which has `length` bytes, when it must be escaped: writes the
 * escape and returns its size, otherwise 0. `before` is the byte before it, or 0. */
static size_t escape(const unsigned char *p, size_t length, unsigned char before,
                     char escaped[8]) {
    static const char letters[][2] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
                                      {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};

    if (length == 3 && p[0] == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
        return (size_t)snprintf(escaped, 8, "\\u20%02x", p[2] - 0x80);
    if (length != 1)
        return 0;
    if (p[0] == '/' && before == '<')
        return (size_t)snprintf(escaped, 8, "\\/");
    if (p[0] >= 0x20 && p[0] != '"' && p[0] != '\\' && p[0] != 0x7f)
        return 0;
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (p[0] == (unsigned char)letters[i][0])
            return (size_t)snprintf(escaped, 8, "\\%c", letters[i][1]);
    return (size_t)snprintf(escaped, 8, "\\u%04x", p[0]);
}

/* The length of the maximal part of a broken sequence at the front (Unicode, section 3.9,
 * U+FFFD substitution of maximal subparts): what could still become a character, at
 * least 1. */
static size_t broken_part(const unsigned char *p, size_t size) {
    unsigned char low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    unsigned char high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    size_t length = 1;

    if (p[0] < 0xc2 || p[0] > 0xf4 || size < 2 || p[1] < low || p[1] > high)
        return 1;
    do
        length++;
    while (length < 4 && length < size && (p[length] & 0xc0) == 0x80);
    return length;
}

void json_out_string(struct json_out *out, struct slice text) {
    size_t start = 0, next = 0; /* from start to next: fit to be written as they are */
    char escaped[8];

    put(out, "\"", 1);
    while (next < text.size) {
        const unsigned char *p = (const unsigned char *)text.data + next;
        size_t length = utf8_sequence(text.data + next, text.size - next);
        size_t replaced = length == 0
                              ? (size_t)snprintf(escaped, sizeof escaped, "\xef\xbf\xbd")
                              : escape(p, length, next > 0 ? p[-1] : 0, escaped);
        if (replaced > 0) {
            put(out, text.data + start, next - start);
            put(out, escaped, replaced);
        }
        next += length ? length : broken_part(p, text.size - next);
        if (replaced > 0)
            start = next;
    }
    if (next > start)
        put(out, text.data + start, next - start);
    put(out, "\"", 1);
}

void json_out_text(struct json_out *out, const char *text) {
    json_out_string(out, (struct slice){text, strlen(text)});
}

void json_out_parts(struct json_out *out, const char *text, const char *divider) {
    const char *next;

    put(out, "[", 1);
    for (const char *part = text; *part; part = next) {
        const char *end = strstr(part, divider);
        size_t size = end ? (size_t)(end - part) : strlen(part);
        put(out, ",", part > text);
        json_out_string(out, (struct slice){part, size});
        next = part + size + (end ? strlen(divider) : 0);
    }
    put(out, "]", 1);
}

void json_out_bool(struct json_out *out, bool value) {
    json_out_raw(out, value ? "true" : "false");
}

void json_out_unsigned(struct json_out *out, uint64_t value) {
    char text[32];
    int size = snprintf(text, sizeof text, "%" PRIu64, value);

    put(out, text, (size_t)size);
}

void json_out_signed(struct json_out *out, int64_t value) {
    char text[32];
    int size = snprintf(text, sizeof text, "%" PRId64, value);

    put(out, text, (size_t)size);
}

void json_out_fixed(struct json_out *out, double value) {
    char text[400]; /* a double has up to 309 digits before its point */
    int size = snprintf(text, sizeof text, "%.2f", value);

    put(out, text, (size_t)size);
}
