/* SPDX-License-Identifier: MIT */
/*
 * One request and its answer, with what the log says of it. An answer is a document: a
 * function that writes JSON. It is run twice, first to know its size, then to send it, so
 * that no answer is ever held in memory as text. Knows no routes. One thread.
 */
#ifndef VIV_EXCHANGE_H
#define VIV_EXCHANGE_H

#include "common/clock.h"
#include "common/json_out.h"
#include "fcgi-app/http.h"
#include "fcgi-app/keyed_hash.h"

struct exchange {
    const struct http_connection *connection;
    struct http_request request;
    struct http_head head; /* of the answer to come; its status is set by the answer */
    char id[17];           /* of the request, in the log and in answers of type system */

    /* For the log. */
    const char *route;
    const char *outcome; /* a constant */
    const char *limit;   /* the setting that had it refused, a constant; NULL: none */
    struct hash_mark session; /* of its id, or "" */
    viv_time begun;
    int64_t wait_ms, run_ms; /* in the queue, in the sandbox; -1: was not there */
    uint64_t answer_size;
    bool answered, failed; /* an answer was begun; it did not get through */
    bool left;             /* the client was gone while its code ran */
    bool quiet;            /* log at debug level */
};

/* Writes one document, the same at each call. */
typedef void exchange_document(struct json_out *out, const void *context);

/* Sends the answer: the head with `status`, and the document unless the method is HEAD
 * or OPTIONS. It is the end of the connection's request: what borrows from it is gone.
 * Only the first answer of an exchange counts. */
void exchange_answer(struct exchange *exchange, int status, exchange_document *document,
                     const void *context);

/* Writes the exchange's line to the log. */
void exchange_log(const struct exchange *exchange);

#endif
