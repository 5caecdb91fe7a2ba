/* SPDX-License-Identifier: MIT */
/*
 * The meaning of a request in HTTP, and the head of an answer. Knows what a web server
 * passes on (the variables of RFC 3875), not how: a connection is a few functions,
 * FastCGI in the service and memory in tests. Knows no sessions and no JSON. One thread a
 * connection.
 */
#ifndef VIV_HTTP_H
#define VIV_HTTP_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "fcgi-app/client_address.h"

struct http_connection {
    void *context;
    /* The value of a variable as REQUEST_METHOD, or NULL, also where there are two
     * values. Valid until the request ends. */
    const char *(*variable)(void *context, const char *name);
    /* Reads exactly `size` bytes of the body. Fails with VIV_NOT_JSON when there are
     * fewer. */
    int (*read)(void *context, char *to, size_t size, struct viv_error *err);
    /* Sends bytes of the answer; returns -1 when nobody takes them. */
    int (*write)(void *context, const void *data, size_t size);
    /* Sends what was written and ends the answer, and with it the request: its
     * variables are gone. To be called once. */
    void (*end)(void *context);
    /* Whether nobody waits for the answer any more; to be asked again and again, before
     * the answer is begun. Some web servers do not show it. */
    bool (*gone)(void *context);
};

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_OTHER
};

struct http_request {
    enum http_method method;
    /* As it was sent, from behind the prefix that the web server serves us at up to the
     * "?"; borrowed from the connection. */
    struct slice path;
    struct slice query; /* what follows the "?", not decoded; borrowed */
    bool is_json;       /* the content type is application/json */
    bool is_of_page;    /* a browser has sent it for a page: it names an origin */
    uint64_t body_size;
    char client[CLIENT_ADDRESS_SIZE];
};

/* Fills *request. Fails with VIV_NOT_JSON when CONTENT_LENGTH is no number: no web server
 * sends that. */
int http_request_read(const struct http_connection *connection,
                      const struct networks *trusted, struct http_request *request,
                      struct viv_error *err);

/* What the head of an answer says besides what all of them say. */
struct http_head {
    int status;
    const char *allow;      /* NULL: no Allow */
    unsigned retry_after_s; /* 0: no Retry-After */
    bool rate_limited;      /* the three below stand in the head */
    uint64_t rate_limit;
    uint64_t rate_remaining;
    unsigned rate_reset_s;
};

/* Sends the head of an answer in JSON whose body has `body_size` bytes. Returns 0
 * or -1. */
int http_head_write(const struct http_connection *connection,
                    const struct http_head *head, uint64_t body_size);

#endif
