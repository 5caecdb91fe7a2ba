/* SPDX-License-Identifier: MIT */
/* The web server's side of FastCGI, for tests: one request a connection, request id 1. */
#ifndef VIV_TESTS_FASTCGI_CLIENT_H
#define VIV_TESTS_FASTCGI_CLIENT_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/bytes.h"

enum { FCGI_BEGIN = 1, FCGI_END = 3, FCGI_PARAMS_IN = 4, FCGI_IN = 5, FCGI_OUT = 6 };

static inline void client_send(int fd, const void *data, size_t size) {
    const char *next = data;

    while (size > 0) {
        ssize_t sent = send(fd, next, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* the other side has closed: its answer tells */
        next += sent;
        size -= (size_t)sent;
    }
}

static inline void client_record(int fd, int type, const void *data, size_t size) {
    unsigned char header[8] = {
        1, (unsigned char)type, 0, 1, (unsigned char)(size >> 8), (unsigned char)size, 0,
        0};

    client_send(fd, header, sizeof header);
    client_send(fd, data, size);
}

static inline void client_begin(int fd, bool keep) {
    const unsigned char body[8] = {0, 1, keep};

    client_record(fd, FCGI_BEGIN, body, sizeof body);
}

/* Variables as "NAME", "value", ..., NULL. */
static inline void client_variables(int fd, const char *const *variables) {
    char bytes[4096];
    size_t size = 0;

    for (; *variables; variables += 2) {
        size_t name = strlen(variables[0]), value = strlen(variables[1]);
        bytes[size++] = (char)name;
        bytes[size++] = (char)value;
        memcpy(bytes + size, variables[0], name);
        memcpy(bytes + size + name, variables[1], value);
        size += name + value;
    }
    client_record(fd, FCGI_PARAMS_IN, bytes, size);
    client_record(fd, FCGI_PARAMS_IN, "", 0);
}

static inline void client_body(int fd, const char *body, size_t size) {
    while (size > 0) {
        size_t piece = size < 32768 ? size : 32768;
        client_record(fd, FCGI_IN, body, piece);
        body += piece;
        size -= piece;
    }
    client_record(fd, FCGI_IN, "", 0);
}

static inline bool client_receive(int fd, void *data, size_t size) {
    char *next = data;

    while (size > 0) {
        ssize_t got = read(fd, next, size);
        if (got <= 0)
            return false;
        next += got;
        size -= (size_t)got;
    }
    return true;
}

/* Reads the answer to its end, and to the end of the connection, which is closed. Returns
 * whether the request was ended by the protocol. */
static inline bool client_answer(int fd, struct buffer *answer) {
    unsigned char header[8];
    char *content = malloc(65536 + 256);
    bool ended = false;

    while (client_receive(fd, header, sizeof header)) {
        size_t size = (size_t)header[4] << 8 | header[5];
        if (!client_receive(fd, content, size + header[6]))
            break;
        if (header[1] == FCGI_OUT)
            buffer_append(answer, content, size, SIZE_MAX / 2, NULL);
        ended = ended || header[1] == FCGI_END;
    }
    free(content);
    close(fd);
    return ended;
}

#endif
