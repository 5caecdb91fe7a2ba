/* SPDX-License-Identifier: MIT */
#include "fcgi-app/fastcgi.h"

#include <errno.h>
#include <fcgiapp.h>
#include <fcgios.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/bytes.h"

/* libfcgi counts in int. */
#define PIECE_MAX (1 << 20)

/* Of the protocol (FastCGI 1.0, 3.3 and 8). */
#define FCGI_RECORD_HEADER 8
#define FCGI_RECORD_STDERR 7

struct fastcgi_request {
    FCGX_Request fcgx;
    struct http_connection connection;
    bool probed; /* whether its peer is gone */
};

/*
 * These two stand in for libfcgi's own, for it takes EINTR for the end of a connection. A
 * socket with a time limit has it where a process that was stopped goes on, without any
 * handler of a signal (signal(7)): half an answer would be all.
 */
int OS_Read(int fd, char *buf, size_t len) {
    ssize_t got;

    do
        got = read(fd, buf, len);
    while (got < 0 && errno == EINTR);
    return (int)got;
}

int OS_Write(int fd, char *buf, size_t len) {
    ssize_t written;

    do
        written = write(fd, buf, len);
    while (written < 0 && errno == EINTR);
    return (int)written;
}

int fastcgi_set_up(struct viv_error *err) {
    int failed = FCGX_Init();

    if (failed)
        return viv_fail(err, VIV_SYSTEM, "FCGX_Init: %d", failed);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    return 0;
}

/* What has two values has none: lighttpd makes HTTP_X_FORWARDED_FOR of X-Forwarded-For
 * and of X_Forwarded_For as well, one of them a proxy's and the other one a client's
 * invention. */
static const char *variable(void *context, const char *name) {
    const struct fastcgi_request *request = context;
    size_t size = strlen(name);
    const char *found = NULL;

    for (char *const *entry = request->fcgx.envp; *entry; entry++) {
        if (strncmp(*entry, name, size) != 0 || (*entry)[size] != '=')
            continue;
        const char *value = *entry + size + 1;
        if (found && strcmp(found, value) != 0)
            return NULL;
        found = value;
    }
    return found;
}

static int read_body(void *context, char *to, size_t size, struct viv_error *err) {
    struct fastcgi_request *request = context;

    while (size > 0) {
        int piece = size < PIECE_MAX ? (int)size : PIECE_MAX;
        int got = FCGX_GetStr(to, piece, request->fcgx.in);
        if (got != piece)
            return viv_fail(err, VIV_NOT_JSON,
                            "The body is shorter than its Content-Length");
        to += got;
        size -= (size_t)got;
    }
    return 0;
}

static int write_answer(void *context, const void *data, size_t size) {
    struct fastcgi_request *request = context;
    const char *next = data;

    while (size > 0) {
        int piece = size < PIECE_MAX ? (int)size : PIECE_MAX;
        if (FCGX_PutStr(next, piece, request->fcgx.out) != piece)
            return -1;
        next += piece;
        size -= (size_t)piece;
    }
    return 0;
}

static void end_answer(void *context) {
    struct fastcgi_request *request = context;

    FCGX_Finish_r(&request->fcgx);
}

/* An empty record of the error stream, which says nothing. A peer that has closed its end
 * of TCP answers it with a reset (tcp(7)); until then it looks like one that has shut
 * down its side of the connection. Nothing else has been sent yet. */
static void probe(struct fastcgi_request *request) {
    const unsigned char record[FCGI_RECORD_HEADER] = {
        1, FCGI_RECORD_STDERR, (unsigned char)(request->fcgx.requestId >> 8),
        (unsigned char)request->fcgx.requestId};

    request->probed = true;
    if (send(request->fcgx.ipcFd, record, sizeof record, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
        return; /* that shows as well the next time */
}

/* Only a peer that has closed is gone: one that has shut down its side of the connection
 * may still be reading. nginx closes when its client leaves; lighttpd does not. */
static bool is_gone(void *context) {
    struct fastcgi_request *request = context;
    struct pollfd waited = {.fd = request->fcgx.ipcFd, .events = POLLRDHUP};

    if (poll(&waited, 1, 0) <= 0)
        return false;
    if (waited.revents & (POLLHUP | POLLERR))
        return true;
    if (!request->probed)
        probe(request);
    return false;
}

static int set_time_limits(int connection) {
    const struct timeval to_read = {.tv_sec = FASTCGI_READ_S};
    const struct timeval to_write = {.tv_sec = FASTCGI_WRITE_S};

    return setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &to_read, sizeof to_read) ||
           setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &to_write, sizeof to_write);
}

/*
 * FCGX_Accept_r() on a connection of our own: libfcgi's accept(2) sets neither
 * close-on-exec nor a time limit, and waits two seconds for a first byte. A request that
 * says it is kept makes FCGX_Accept_r() read from its descriptor instead of closing it
 * and accepting another; the listening socket that it has not (-1) ends it when there is
 * no request to be read.
 */
static int accept_on(FCGX_Request *fcgx, int connection) {
    if (FCGX_InitRequest(fcgx, -1, FCGI_FAIL_ACCEPT_ON_INTR))
        return -1;
    fcgx->ipcFd = connection;
    fcgx->keepConnection = 1;
    if (FCGX_Accept_r(fcgx))
        return -1;
    /* Whatever the web server wishes: a kept connection would hold this thread. */
    fcgx->keepConnection = 0;
    return 0;
}

struct fastcgi_request *fastcgi_begin(int connection, struct viv_error *err) {
    struct fastcgi_request *request = viv_xcalloc(1, sizeof *request);

    if (set_time_limits(connection)) {
        close(connection);
        free(request);
        return viv_fail_null(err, VIV_SYSTEM, "setsockopt: %m");
    }
    if (accept_on(&request->fcgx, connection)) {
        FCGX_Free(&request->fcgx, 1);
        free(request);
        return viv_fail_null(err, VIV_BAD_GATEWAY, "no request on a connection");
    }
    request->connection = (struct http_connection){.context = request,
                                                   .variable = variable,
                                                   .read = read_body,
                                                   .write = write_answer,
                                                   .end = end_answer,
                                                   .gone = is_gone};
    return request;
}

const struct http_connection *fastcgi_connection(const struct fastcgi_request *request) {
    return &request->connection;
}

void fastcgi_free(struct fastcgi_request *request) {
    /* Without an answer the connection is still open; otherwise there is nothing left
     * to do. */
    FCGX_Free(&request->fcgx, 1);
    free(request);
}
