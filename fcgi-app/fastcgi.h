/* SPDX-License-Identifier: MIT */
/*
 * FastCGI by libfcgi: one request of one connection. The only file that includes libfcgi.
 * Knows no HTTP: what it makes is a struct http_connection. Any number of threads, each
 * with its own request.
 */
#ifndef VIV_FASTCGI_H
#define VIV_FASTCGI_H

#include "common/error.h"
#include "fcgi-app/http.h"

/* How long the web server may take for its next bytes, and to take some of ours. It has
 * the whole body already; a client that takes nothing of its answer for so long loses it,
 * and holds the thread no longer. */
#define FASTCGI_READ_S  60
#define FASTCGI_WRITE_S 60

struct fastcgi_request;

/* Before the first thread. Sets the dispositions of SIGPIPE, SIGUSR1 and SIGTERM, which
 * libfcgi takes for itself, back to what they were, and ignores SIGPIPE. */
int fastcgi_set_up(struct viv_error *err);

/* Reads the head of the request from a connection, which is taken over in any case. NULL
 * when there is none, in time. */
struct fastcgi_request *fastcgi_begin(int connection, struct viv_error *err);

/* Lives until fastcgi_free(). */
const struct http_connection *fastcgi_connection(const struct fastcgi_request *request);

/* Closes the connection unless its answer was ended, and frees the request. */
void fastcgi_free(struct fastcgi_request *request);

#endif
