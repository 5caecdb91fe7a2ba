/* SPDX-License-Identifier: MIT */
/*
 * The pass has one loop over tokens. A string goes through two steps: read_string() finds
 * its end and checks it, unescape() rewrites it where it stands (the text only shrinks).
 * Between the two it is known whether a colon follows, that is whether it is a name,
 * which stays.
 */
#include "fcgi-app/body_scan.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

struct scanner {
    char *body;
    size_t size;
    size_t at;
    size_t copied; /* up to here the body is in the skeleton */
    size_t tokens;
    size_t depth;
    struct body_scan *scan;
    struct viv_error *err;
};

static int refuse(struct scanner *s, size_t at, const char *what) {
    return viv_fail(s->err, VIV_NOT_JSON, "the body is not JSON: %s at byte %zu", what,
                    at);
}

static int count_token(struct scanner *s) {
    return ++s->tokens > BODY_TOKENS_MAX ? refuse(s, s->at, "more than 100000 tokens")
                                         : 0;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/* A character of a string that stands for itself and is one byte. */
static bool is_plain(unsigned char c) {
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* Whether eight bytes are all plain. With the top bits masked off, adding 0x7f - n sets
 * the top bit of a byte that is above n, and an exclusive or makes the byte that is
 * looked for zero. */
static bool all_plain(const char *text) {
    const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones * 0x80;
    uint64_t word;

    memcpy(&word, text, sizeof word);
    uint64_t low = word & ~tops;
    uint64_t printable = low + ones * (0x7f - 0x1f);
    uint64_t not_quote = (low ^ ones * '"') + ones * 0x7f;
    uint64_t not_backslash = (low ^ ones * '\\') + ones * 0x7f;
    return (printable & not_quote & not_backslash & ~word & tops) == tops;
}

/* The UTF-16 unit that \uXXXX at the front of the text gives, -1 where there is none. */
static int read_unit(const char *text, size_t size) {
    int value = 0;

    if (size < 6 || text[0] != '\\' || text[1] != 'u')
        return -1;
    for (int i = 2; i < 6; i++) {
        int digit = hex_value(text[i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* Decodes the escape at the front of the text into *code, a code point. Returns the bytes
 * that it takes, 0 when it is no escape of JSON, stands for NUL or for half a surrogate
 * pair. */
static size_t read_escape(const char *text, size_t size, uint32_t *code) {
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    const char *letter = size < 2 ? NULL : memchr(letters, text[1], sizeof letters - 1);

    if (letter) {
        *code = (uint32_t)meanings[letter - letters];
        return 2;
    }
    int unit = read_unit(text, size);
    if (unit <= 0 || (unit >= 0xdc00 && unit <= 0xdfff))
        return 0;
    *code = (uint32_t)unit;
    if (unit < 0xd800 || unit > 0xdbff)
        return 6;
    int low = read_unit(text + 6, size - 6);
    if (low < 0xdc00 || low > 0xdfff)
        return 0;
    *code = 0x10000 + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    return 12;
}

/* The length of the character of a string at `at` that is not plain, or 0 with the
 * failure. */
static size_t read_character(struct scanner *s, size_t at) {
    const char *text = s->body + at;
    uint32_t code;

    if ((unsigned char)*text < 0x20) {
        refuse(s, at, "an unescaped control character");
        return 0;
    }
    bool escape = *text == '\\';
    size_t length = escape ? read_escape(text, s->size - at, &code)
                           : utf8_sequence(text, s->size - at);
    if (length == 0)
        refuse(s, at, escape ? "an invalid escape" : "invalid UTF-8");
    return length;
}

/* Finds the closing quote of the string at s->at and checks all before it. */
static int read_string(struct scanner *s, size_t *end, bool *escaped) {
    size_t at = s->at + 1;

    *escaped = false;
    for (;;) {
        while (s->size - at >= 8 && all_plain(s->body + at))
            at += 8;
        while (at < s->size && is_plain((unsigned char)s->body[at]))
            at++;
        if (at == s->size)
            return refuse(s, s->at, "a string without end");
        if (s->body[at] == '"')
            break;
        *escaped |= s->body[at] == '\\';
        size_t length = read_character(s, at);
        if (length == 0)
            return -1;
        at += length;
    }
    *end = at;
    return 0;
}

static size_t put_utf8(char *to, uint32_t code) {
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, code >>= 6)
        to[i] = (char)(0x80 | (code & 0x3f));
    to[0] = (char)(0xf00 >> length | code);
    return length;
}

/* Rewrites a checked text in place and returns its new size. */
static size_t unescape(char *text, size_t size) {
    const char *from = text, *end = text + size;
    char *to = text;

    while (from < end) {
        const char *escape = memchr(from, '\\', (size_t)(end - from));
        size_t length = (size_t)((escape ? escape : end) - from);
        memmove(to, from, length);
        to += length;
        from += length;
        if (escape) {
            uint32_t code = 0;
            from += read_escape(from, (size_t)(end - from), &code);
            to += put_utf8(to, code);
        }
    }
    return (size_t)(to - text);
}

/* Appends to the skeleton. */
static int keep(struct scanner *s, const char *text, size_t size) {
    struct buffer *skeleton = &s->scan->skeleton;

    if (size > BODY_SKELETON_MAX - skeleton->size)
        return refuse(s, s->at, "too much besides the strings");
    return buffer_append(skeleton, text, size, BODY_SKELETON_MAX, s->err);
}

static int keep_up_to(struct scanner *s, size_t end) {
    if (keep(s, s->body + s->copied, end - s->copied))
        return -1;
    s->copied = end;
    return 0;
}

static int add_string(struct scanner *s, struct slice text, size_t body_end) {
    struct body_scan *scan = s->scan;

    if (scan->count == scan->room) {
        size_t room = scan->room ? scan->room * 2 : 32;
        struct body_string *strings = realloc(scan->strings, room * sizeof *strings);
        if (!strings)
            return viv_fail(s->err, VIV_CAPACITY, "no memory for %zu strings", room);
        scan->strings = strings;
        scan->room = room;
    }
    scan->strings[scan->count++] =
        (struct body_string){text, body_end, scan->skeleton.size};
    return 0;
}

/* Replaces the string from s->at to its closing quote at `end` by its index. */
static int lift(struct scanner *s, size_t end, bool escaped) {
    char *text = s->body + s->at + 1;
    size_t size = end - s->at - 1;
    char index[24];
    int length = snprintf(index, sizeof index, "\"%zu\"", s->scan->count);

    if (keep_up_to(s, s->at) || keep(s, index, (size_t)length))
        return -1;
    s->copied = end + 1;
    if (escaped)
        size = unescape(text, size);
    return add_string(s, (struct slice){text, size}, end + 1);
}

static bool is_name(const struct scanner *s, size_t end) {
    size_t next = end + 1;

    while (next < s->size && is_space(s->body[next]))
        next++;
    return next < s->size && s->body[next] == ':';
}

static int scan_string(struct scanner *s) {
    size_t end = 0;
    bool escaped = false;

    if (count_token(s) || read_string(s, &end, &escaped))
        return -1;
    if (!is_name(s, end) && lift(s, end, escaped))
        return -1;
    s->at = end + 1;
    return 0;
}

static bool is_structure(char c) {
    return c == '{' || c == '}' || c == '[' || c == ']' || c == ':' || c == ',';
}

static int scan_structure(struct scanner *s) {
    char c = s->body[s->at];

    if (count_token(s))
        return -1;
    if ((c == '{' || c == '[') && ++s->depth > BODY_DEPTH_MAX)
        return refuse(s, s->at, "nested more than 64 deep");
    if ((c == '}' || c == ']') && s->depth-- == 0)
        return refuse(s, s->at, "a bracket that closes nothing");
    s->at++;
    return 0;
}

/* A number, a literal, or anything that the parser will refuse. */
static int scan_word(struct scanner *s) {
    if (count_token(s))
        return -1;
    while (s->at < s->size && s->body[s->at] != '"' && !is_space(s->body[s->at]) &&
           !is_structure(s->body[s->at])) {
        /* The parser passes over a NUL that follows a number. */
        if (s->body[s->at] == '\0')
            return refuse(s, s->at, "a NUL");
        s->at++;
    }
    return 0;
}

int body_scan(char *body, size_t size, struct body_scan *scan, struct viv_error *err) {
    struct scanner s = {.body = body, .size = size, .scan = scan, .err = err};

    if (size >= 3 && memcmp(body, "\xef\xbb\xbf", 3) == 0)
        return refuse(&s, 0, "a byte order mark");
    while (s.at < size) {
        int failed = 0;
        if (is_space(body[s.at]))
            s.at++;
        else if (body[s.at] == '"')
            failed = scan_string(&s);
        else if (is_structure(body[s.at]))
            failed = scan_structure(&s);
        else
            failed = scan_word(&s);
        if (failed)
            return -1;
    }
    return keep_up_to(&s, size);
}

size_t body_scan_offset(const struct body_scan *scan, size_t skeleton_offset) {
    size_t body_end = 0, skeleton_end = 0;

    for (size_t i = 0; i < scan->count; i++) {
        if (scan->strings[i].skeleton_end > skeleton_offset)
            break;
        body_end = scan->strings[i].body_end;
        skeleton_end = scan->strings[i].skeleton_end;
    }
    return body_end + (skeleton_offset - skeleton_end);
}

struct slice body_scan_string(const struct body_scan *scan, const char *index) {
    return scan->strings[strtoul(index, NULL, 10)].text;
}

void body_scan_clear(struct body_scan *scan) {
    buffer_clear(&scan->skeleton);
    free(scan->strings);
    *scan = (struct body_scan){0};
}
