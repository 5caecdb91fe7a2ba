/* SPDX-License-Identifier: MIT */
/* The strict check that libb64 has not, and libb64 for the rest. */
#include "fcgi-app/base64.h"

#include <b64/cdecode.h>
#include <stdbool.h>
#include <string.h>

/* Bytes that go to the sink at a time. libb64 1.2 takes an int for the size of its input,
 * writes one byte behind its output, and breaks the line after each 72 characters. */
#define DECODE_BLOCK ((size_t)48 * 1024)
#define ENCODE_BLOCK ((size_t)48 * 1024)
#define ENCODE_LINE  54
#define ENCODE_ROOM  (ENCODE_BLOCK / 3 * 4 + ENCODE_BLOCK / ENCODE_LINE + 8)

static const bool in_alphabet[256] = {
    ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['0' ... '9'] = true,
    ['+'] = true,         ['/'] = true,
};

static bool is_break(char c) { return c == '\n' || c == '\r'; }

static bool is_alphabet(char c) { return in_alphabet[(unsigned char)c]; }

size_t base64_decoded_size(struct slice text) {
    size_t characters = 0, padding = 0;

    for (size_t i = 0; i < text.size; i++)
        characters += !is_break(text.data[i]);
    for (size_t i = text.size; i > 0 && padding < 2; i--) {
        if (text.data[i - 1] == '=')
            padding++;
        else if (!is_break(text.data[i - 1]))
            break;
    }
    size_t whole = characters / 4 * 3;
    return whole > padding ? whole - padding : 0;
}

static size_t skip_breaks(struct slice text, size_t at) {
    while (at < text.size && is_break(text.data[at]))
        at++;
    return at;
}

/* Skips whole groups without padding. */
static size_t skip_groups(struct slice text, size_t at) {
    while (text.size - at >= 4 && is_alphabet(text.data[at]) &&
           is_alphabet(text.data[at + 1]) && is_alphabet(text.data[at + 2]) &&
           is_alphabet(text.data[at + 3]))
        at += 4;
    return at;
}

/* Whether the value of a character has zeros where one or two `=` leave bits over. */
static bool spare_bits_are_zero(char last, size_t padding) {
    return strchr(padding == 2 ? "AQgw" : "AEIMQUYcgkosw048", last) != NULL;
}

/* Checks what skip_groups() stopped at: only a last group with padding can be right. Sets
 * *at behind what was right, and *padding. */
static int check_last_group(struct slice text, size_t *at, size_t *padding) {
    size_t group = *at;

    while (*at < text.size && *at < group + 4 && is_alphabet(text.data[*at]))
        ++*at;
    if (*at == text.size || text.data[*at] != '=' || *at - group < 2)
        return -1;
    *padding = group + 4 - *at;
    if (!spare_bits_are_zero(text.data[*at - 1], *padding)) {
        --*at;
        return -1;
    }
    for (; *at < group + 4; ++*at)
        if (*at == text.size || text.data[*at] != '=')
            return -1;
    return 0;
}

int base64_check(struct slice text, size_t *size, size_t *offset) {
    size_t at = 0, breaks = 0, padding = 0, line;

    do {
        line = skip_groups(text, at);
        at = skip_breaks(text, line);
        breaks += at - line;
    } while (at > line);
    if (at < text.size && check_last_group(text, &at, &padding)) {
        *offset = at;
        return -1;
    }
    *offset = skip_breaks(text, at);
    if (*offset < text.size)
        return -1;
    breaks += *offset - at;
    *size = (text.size - breaks) / 4 * 3 - padding;
    return 0;
}

/* The length of the line at the front, at most `limit`, without padding: libb64 1.2 takes
 * a character out of the alphabet for a value where char is unsigned. */
static size_t line_length(struct slice text, size_t limit) {
    size_t length = 0;

    while (length < text.size && length < limit && is_alphabet(text.data[length]))
        length++;
    return length;
}

int base64_decode(struct slice text, base64_sink *sink, void *context,
                  struct viv_error *err) {
    char block[DECODE_BLOCK + 4];
    size_t used = 0, decoded = 0, characters = 0;
    base64_decodestate state;

    base64_init_decodestate(&state);
    while (text.size > 0) {
        /* Whole groups, so that nothing is left in the state between two blocks. */
        size_t length = line_length(text, (DECODE_BLOCK - used) / 3 * 4);
        if (length > 0)
            used +=
                (size_t)base64_decode_block(text.data, (int)length, block + used, &state);
        characters += length;
        size_t taken = length > 0 ? length : 1;
        text = (struct slice){text.data + taken, text.size - taken};
        if (used > 0 && (used + 3 > DECODE_BLOCK || text.size == 0)) {
            decoded += used;
            if (sink(context, block, used, err))
                return -1;
            used = 0;
        }
    }
    if (decoded != characters / 4 * 3 + characters % 4 * 3 / 4)
        return viv_fail(err, VIV_SYSTEM, "base64 of %zu characters decoded to %zu bytes",
                        characters, decoded);
    return 0;
}

static size_t drop_newlines(char *text, size_t size) {
    const char *from = text, *end = text + size;
    char *to = text;

    while (from < end) {
        const char *newline = memchr(from, '\n', (size_t)(end - from));
        size_t length = (size_t)((newline ? newline : end) - from);
        memmove(to, from, length);
        to += length;
        from += length + (newline != NULL);
    }
    return (size_t)(to - text);
}

void base64_encoder_init(struct base64_encoder *encoder, base64_sink *sink,
                         void *context) {
    base64_init_encodestate(&encoder->state);
    encoder->sink = sink;
    encoder->context = context;
}

int base64_encoder_put(struct base64_encoder *encoder, struct slice data,
                       struct viv_error *err) {
    char text[ENCODE_ROOM];

    while (data.size > 0) {
        size_t taken = data.size < ENCODE_BLOCK ? data.size : ENCODE_BLOCK;
        size_t size =
            (size_t)base64_encode_block(data.data, (int)taken, text, &encoder->state);
        size = drop_newlines(text, size);
        if (size > 0 && encoder->sink(encoder->context, text, size, err))
            return -1;
        data = (struct slice){data.data + taken, data.size - taken};
    }
    return 0;
}

int base64_encoder_end(struct base64_encoder *encoder, struct viv_error *err) {
    char text[8];
    size_t size = (size_t)base64_encode_blockend(text, &encoder->state);

    size = drop_newlines(text, size);
    return size > 0 ? encoder->sink(encoder->context, text, size, err) : 0;
}
