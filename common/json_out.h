/* SPDX-License-Identifier: MIT */
/*
 * Writing JSON text without building it in memory first: it goes piece by piece to a
 * sink, or to none, which counts its size. Knows no members and no HTTP. One thread.
 *
 * A failing sink is not asked again; what follows is dropped, and `failed` says so at the
 * end.
 */
#ifndef VIV_JSON_OUT_H
#define VIV_JSON_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"

/* Takes the next bytes; returns 0 or -1. */
typedef int json_sink(void *context, const void *data, size_t size);

struct json_out {
    json_sink *sink; /* NULL: only count */
    void *context;
    uint64_t size; /* bytes so far, those that failed included */
    bool failed;
};

/* Text that is JSON already. */
void json_out_raw(struct json_out *out, const char *text);
void json_out_splice(struct json_out *out, struct slice text);

/*
 * A string in quotes. Escaped are quotes, backslashes, control characters, DEL, U+2028
 * and U+2029, which end a line in some readers, and the slash of "</", which ends a
 * script. What is not UTF-8 becomes U+FFFD, one for each maximal part of a broken
 * sequence, as Python's errors="replace" does it.
 */
void json_out_string(struct json_out *out, struct slice text);
void json_out_text(struct json_out *out, const char *text);

/* The parts of a text between dividers as an array of strings; none for the empty
 * text. */
void json_out_parts(struct json_out *out, const char *text, const char *divider);

void json_out_bool(struct json_out *out, bool value);
void json_out_unsigned(struct json_out *out, uint64_t value);
void json_out_signed(struct json_out *out, int64_t value);

/* Rounded to two decimals. */
void json_out_fixed(struct json_out *out, double value);

#endif
