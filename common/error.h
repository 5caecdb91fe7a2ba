/* SPDX-License-Identifier: MIT */
/*
 * How a failure travels: a function that can fail takes a `struct viv_error *err` as its
 * last parameter, returns -1 or NULL and fills it, in one line:
 *
 *     return viv_fail(err, VIV_SYSTEM, "open %s: %m", path);
 *
 * `err` is written on failure only. The message is for people: what failed, and what to
 * do. It never holds content of a request or of a session. What a code means in HTTP is
 * not known here.
 */
#ifndef VIV_ERROR_H
#define VIV_ERROR_H

enum viv_code {
    VIV_OK = 0,
    VIV_SYSTEM,         /* a fault of ours or of the host */
    VIV_BAD_GATEWAY,    /* the other end of a channel broke the protocol or went away */
    VIV_UNAVAILABLE,    /* a part of the service cannot be reached now */
    VIV_NOT_JSON,       /* the body is not JSON */
    VIV_CONTENT_TYPE,   /* the content type is missing or another one */
    VIV_VALIDATION,     /* a field is missing, of the wrong type or out of range */
    VIV_PARSING,        /* a file of the request is malformed, or cannot be placed */
    VIV_RESOURCE_LIMIT, /* a limit on sizes or counts */
    VIV_RATE_LIMIT,
    VIV_BUSY,     /* too many calls wait in this session */
    VIV_CAPACITY, /* no room for another session, call or body */
    VIV_NOT_FOUND,
    VIV_METHOD,
    VIV_CONFIG, /* a setting is unknown or its value is refused */
    VIV_TIMED_OUT,
    VIV_INTERRUPTED, /* somebody else has ended what it needs */
    VIV_CODE_COUNT
};

#define VIV_ERROR_MESSAGE_MAX 512

struct viv_error {
    enum viv_code code;
    char message[VIV_ERROR_MESSAGE_MAX];
    const char *limit; /* a constant: the setting whose limit was reached; NULL: none */
};

/* Fills *err (which may be NULL) and returns -1. `format` is printf's, %m included. */
int viv_fail(struct viv_error *err, enum viv_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

/* The same where the limit that a setting gives was reached; `limit` is its name. */
int viv_refuse(struct viv_error *err, enum viv_code code, const char *limit,
               const char *format, ...) __attribute__((format(printf, 4, 5), cold));

/* viv_fail() for functions that return a pointer. */
void *viv_fail_null(struct viv_error *err, enum viv_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

#endif
