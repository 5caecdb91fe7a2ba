/* SPDX-License-Identifier: MIT */
/*
 * The body of POST /exec: from JSON to a checked request. Nothing has been sent or run
 * when it fails. Knows no HTTP and no sessions. Any thread.
 *
 * Read with care and leniently where it costs nothing: unknown members are ignored, and
 * null counts as absent for the optional members `files`, `timeout_ms` and `stdin`, as
 * clients with serialisers write it. An integer is a JSON number without fraction and
 * exponent: 1000.0 is refused.
 */
#ifndef VIV_EXEC_REQUEST_H
#define VIV_EXEC_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/settings.h"
#include "fcgi-app/validation.h"

struct exec_file {
    struct slice name;   /* allowed by filename_refusal() */
    struct slice base64; /* passed base64_check() */
    size_t size;         /* decoded */
    size_t index;        /* in the request's `files` */
};

/* All slices borrow from the body. */
struct exec_request {
    struct slice code;
    bool has_input;
    struct slice input; /* the member `stdin` */
    uint32_t timeout_ms;
    struct exec_file *files; /* owned; no name twice, none a folder of another */
    size_t file_count;
};

/*
 * Parses `size` bytes at `body`, which it rewrites and which must live as long as the
 * request. `request` is the zero value and is written on success only. The first failure
 * of these, in this order, is the answer:
 *
 *     VIV_NOT_JSON        the body is not JSON, or is over the bounds of body_scan.h
 *     VIV_VALIDATION      `code`, `files`, `timeout_ms`, `stdin`: missing, type, range
 *     VIV_PARSING         a file is no object, or has no string `filename` or `b64_data`
 *     VIV_RESOURCE_LIMIT  the number of files, sizes of code, stdin and files
 *     VIV_PARSING         a name is refused or is a folder of another
 *     VIV_PARSING         a content is not base64
 *
 * and VIV_CAPACITY when there is no memory. The second and third of them name every
 * faulty member in *details. Messages name the member and the offset in its text, in
 * bytes, and never hold content.
 */
int exec_request_parse(char *body, size_t size, const struct settings *settings,
                       struct exec_request *request, struct validation_details *details,
                       struct viv_error *err);

/* Frees what the request owns, not the body. */
void exec_request_clear(struct exec_request *request);

static inline void exec_request_clear_cleanup(struct exec_request *request) {
    exec_request_clear(request);
}

#endif
