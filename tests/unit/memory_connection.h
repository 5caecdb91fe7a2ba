/* SPDX-License-Identifier: MIT */
/* A connection of a web server in memory, for tests of what is behind it. */
#ifndef VIV_TESTS_MEMORY_CONNECTION_H
#define VIV_TESTS_MEMORY_CONNECTION_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "fcgi-app/http.h"

struct memory_connection {
    const char *method, *target, *script, *content_type, *peer, *forwarded_for, *origin;
    struct slice body;
    char length[32]; /* "": the size of the body */
    struct buffer answer;
    size_t takes; /* bytes until nobody takes more; 0: all */
    atomic_bool gone;
    int ended; /* how often */
    struct http_connection connection;
};

static inline const char *memory_variable(void *context, const char *name) {
    struct memory_connection *memory = context;
    const struct {
        const char *name, *value;
    } variables[] = {{"REQUEST_METHOD", memory->method},
                     {"REQUEST_URI", memory->target},
                     {"SCRIPT_NAME", memory->script},
                     {"CONTENT_TYPE", memory->content_type},
                     {"CONTENT_LENGTH", memory->length},
                     {"REMOTE_ADDR", memory->peer},
                     {"HTTP_X_FORWARDED_FOR", memory->forwarded_for},
                     {"HTTP_ORIGIN", memory->origin}};

    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (strcmp(variables[i].name, name) == 0)
            return variables[i].value;
    return NULL;
}

static inline int memory_read(void *context, char *to, size_t size,
                              struct viv_error *err) {
    struct memory_connection *memory = context;

    if (size > memory->body.size)
        return viv_fail(err, VIV_NOT_JSON, "short");
    memcpy(to, memory->body.data, size);
    return 0;
}

static inline int memory_write(void *context, const void *data, size_t size) {
    struct memory_connection *memory = context;

    if (memory->takes > 0 && memory->answer.size + size > memory->takes)
        return -1;
    return buffer_append(&memory->answer, data, size, SIZE_MAX / 2, NULL);
}

static inline void memory_end(void *context) {
    ((struct memory_connection *)context)->ended++;
}

static inline bool memory_gone(void *context) {
    return ((struct memory_connection *)context)->gone;
}

/* A request without a body. */
static inline void memory_init(struct memory_connection *memory, const char *method,
                               const char *target) {
    memset(memory, 0, sizeof *memory);
    memory->method = method;
    memory->target = target;
    memory->peer = "192.0.2.1";
    memory->connection = (struct http_connection){
        memory, memory_variable, memory_read, memory_write, memory_end, memory_gone};
}

static inline void memory_set_body(struct memory_connection *memory, const char *body,
                                   size_t size) {
    memory->content_type = "application/json";
    memory->body = (struct slice){body, size};
    snprintf(memory->length, sizeof memory->length, "%zu", size);
}

static inline const char *memory_body(const struct memory_connection *memory,
                                      size_t *size) {
    const char *end = memory->answer.data ? memmem(memory->answer.data,
                                                   memory->answer.size, "\r\n\r\n", 4)
                                          : NULL;

    if (!end)
        return NULL;
    *size = memory->answer.size - (size_t)(end + 4 - memory->answer.data);
    return end + 4;
}

static inline int memory_status(const struct memory_connection *memory) {
    int status = 0;

    if (memory->answer.size > 8)
        sscanf(memory->answer.data, "Status: %d", &status);
    return status;
}

/* Whether the head of the answer has this whole line. */
static inline bool memory_has_line(const struct memory_connection *memory,
                                   const char *line) {
    size_t size;
    const char *body = memory_body(memory, &size);
    char whole[256];

    snprintf(whole, sizeof whole, "%s\r\n", line);
    return body && memmem(memory->answer.data, (size_t)(body - memory->answer.data),
                          whole, strlen(whole)) != NULL;
}

/* The body as JSON; the caller's. */
static inline json_t *memory_json(const struct memory_connection *memory) {
    size_t size = 0;
    const char *body = memory_body(memory, &size);

    return body ? json_loadb(body, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL)
                : NULL;
}

static inline void memory_clear(struct memory_connection *memory) {
    buffer_clear(&memory->answer);
}

#endif
