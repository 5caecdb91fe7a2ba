/* SPDX-License-Identifier: MIT */
/*
 * One pass over a request body before it is parsed: it makes a body of any size and any
 * content cheap for a JSON parser that keeps everything in memory.
 *
 * Every string that is a value (not a member's name) is checked, unescaped where it
 * stands and lifted out; what is left, the skeleton, has its index there instead:
 * `{"code": "x = 1"}` becomes `{"code": "0"}`. As every string is lifted, none that a
 * client wrote can be taken for an index. The parser then sees structure, names and
 * numbers only, and stays the judge of them. The number of tokens, the depth and the size
 * of the skeleton are bounded, since a parsed value costs many times its text.
 *
 * A token is what RFC 8259 calls one: each of { } [ ] : and the comma, a string, a number
 * or a literal. Knows no members and no parser.
 */
#ifndef VIV_BODY_SCAN_H
#define VIV_BODY_SCAN_H

#include "common/bytes.h"
#include "common/error.h"

#define BODY_DEPTH_MAX    64
#define BODY_TOKENS_MAX   100000
#define BODY_SKELETON_MAX (4U << 20) /* bytes, white space included */

struct body_string {
    struct slice text;   /* unescaped, valid UTF-8 without NUL; borrowed from the body */
    size_t body_end;     /* offset behind its closing quote, in the body */
    size_t skeleton_end; /* and of its index, in the skeleton */
};

struct body_scan {
    struct buffer skeleton;
    struct body_string *strings; /* by index */
    size_t count;
    size_t room;
};

/*
 * Scans `size` bytes at `body`, which it rewrites: afterwards they serve the strings
 * alone. `scan` is the zero value. Fails with VIV_NOT_JSON and the offset for a malformed
 * string (bad escape, control character, invalid UTF-8, \u0000) or a passed bound, with
 * VIV_CAPACITY when there is no memory. Success says nothing about the skeleton's syntax.
 */
int body_scan(char *body, size_t size, struct body_scan *scan, struct viv_error *err);

/* The offset in the body of an offset in the skeleton. */
size_t body_scan_offset(const struct body_scan *scan, size_t skeleton_offset);

/* The string that an index of the skeleton stands for. */
struct slice body_scan_string(const struct body_scan *scan, const char *index);

void body_scan_clear(struct body_scan *scan);

static inline void body_scan_clear_cleanup(struct body_scan *scan) {
    body_scan_clear(scan);
}

#endif
