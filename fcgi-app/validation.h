/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with the form of a request: one detail for each member, all of them told
 * at once. The zero value is empty. Plain data: how it is written as JSON is not known
 * here. Nothing in it comes from the request but the places of members.
 */
#ifndef VIV_VALIDATION_H
#define VIV_VALIDATION_H

#include <stddef.h>

#define VALIDATION_DETAILS_MAX 32

struct validation_detail {
    const char *on;       /* "query", "path" or "body" */
    char path[64];        /* JSON pointer (RFC 6901): "/code"; "" is the whole body */
    const char *expected; /* "string", "integer", "array", "object" */
    char message[192];
};

struct validation_details {
    size_t count;
    size_t untold; /* more were found than there is room for */
    struct validation_detail items[VALIDATION_DETAILS_MAX];
};

/* Adds one; `path` is copied, `on` and `expected` are constants. */
void validation_add(struct validation_details *details, const char *on, const char *path,
                    const char *expected, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

#endif
