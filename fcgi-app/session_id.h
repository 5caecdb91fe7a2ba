/* SPDX-License-Identifier: MIT */
/*
 * The session id of a request: the query parameter `sessionId`, or a component of the
 * path. Any string of 1 to 128 bytes of UTF-8 without control characters (Unicode's Cc),
 * as it is after decoding. It is a key to look up, never a path.
 *
 * The query is decoded as a form is (the URL standard's
 * application/x-www-form-urlencoded, what URLSearchParams of browsers does): pairs
 * divided by "&", "+" is a space, %XX a byte, and a % without two hexadecimal digits
 * stands for itself. In a path (RFC 3986) "+" is no space; "/" and "?" are encoded there.
 * Any thread.
 */
#ifndef VIV_SESSION_ID_H
#define VIV_SESSION_ID_H

#include "common/bytes.h"
#include "common/error.h"
#include "fcgi-app/validation.h"

#define SESSION_ID_MAX 128 /* bytes, without the NUL */

/* Finds the id in a raw query (what follows the "?", without it) and writes it to `id`,
 * NUL at its end. Fails with VIV_VALIDATION and one detail when it is missing, empty,
 * given twice or refused. */
int session_id_from_query(struct slice query, char id[SESSION_ID_MAX + 1],
                          struct validation_details *details, struct viv_error *err);

/* The same of a component of a path as it was sent, which is not empty. */
int session_id_from_path(struct slice component, char id[SESSION_ID_MAX + 1],
                         struct validation_details *details, struct viv_error *err);

#endif
