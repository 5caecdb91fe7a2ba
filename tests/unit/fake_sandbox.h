/* SPDX-License-Identifier: MIT */
/*
 * A supervisor of make-believe for tests: the other end of a session channel, in a
 * thread. It takes requests by the protocol, and the code of a request is a list of what
 * it does to answer, one a line:
 *
 *     print TEXT, error TEXT      output
 *     input                       prints the standard input
 *     uploads                     prints name and size of each file that came
 *     value TYPE JSON             the value of the final expression
 *     raise TYPE LINE TEXT        an exception
 *     file NAME SIZE              an output file, full of 'x'
 *     left REASON NAME SIZE       a file that is left out
 *     timeout, memory, broke      the verdict
 *     crash SIGNAL, exit STATUS   the verdict
 *     lost                        the variables are lost
 *     cut                         the output is truncated
 *     refuse REASON INDEX         nothing is run
 *     wait                        until the sandbox's gate is open
 *     await                       until INTERRUPT comes for this call: prints
 *                                 "interrupted"
 *     stubborn                    the verdict: the interrupt did not end it
 *     checkpoint N, restored N    the call whose end a crash would go back to, or went
 *                                 back to
 *     raw TYPE TEXT               a frame of that type
 *     die, hang                   closes the channel, or answers nothing more
 *     late                        after the verdict, one more frame
 */
#ifndef VIV_TESTS_FAKE_SANDBOX_H
#define VIV_TESTS_FAKE_SANDBOX_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/frame.h"
#include "common/session_wire.h"

struct fake_sandbox {
    int channel; /* the supervisor's end */
    pthread_t thread;
    atomic_bool *gate; /* of all the test's sandboxes */
    /* The call under way. */
    struct session_exec exec;
    uint32_t sequence;
    struct buffer text;    /* the code, then the standard input */
    struct buffer uploads; /* "name size\n" for each */
    size_t upload_size;
    struct buffer claims;
    struct session_done done;
    bool claimed, late;
    atomic_int runs; /* how often a call has begun to run */
};

static inline void fake_send(struct fake_sandbox *fake, uint8_t type, const void *data,
                             size_t size) {
    struct iovec payload = {(void *)data, size};

    frame_send(fake->channel, type, fake->sequence, &payload, 1, viv_after_ms(20000),
               NULL);
}

static inline void fake_output(struct fake_sandbox *fake, int stream, const char *text,
                               size_t size) {
    char payload[1 + SESSION_OUTPUT_MAX] = {(char)stream};

    if (size == 0)
        return;
    memcpy(payload + 1, text, size);
    fake_send(fake, SESSION_OUTPUT, payload, 1 + size);
}

static inline void fake_claim(struct fake_sandbox *fake, int tag, const void *data,
                              size_t size) {
    char head[5] = {(char)tag};

    put_u32(head + 1, (uint32_t)size);
    buffer_append(&fake->claims, head, sizeof head, SIZE_MAX / 2, NULL);
    buffer_append(&fake->claims, data, size, SIZE_MAX / 2, NULL);
    fake->claimed = true;
}

static inline void fake_raise(struct fake_sandbox *fake, const char *arguments) {
    char type[64], line_bytes[4];
    unsigned line;
    int used = 0;

    sscanf(arguments, "%63s %u %n", type, &line, &used);
    put_u32(line_bytes, line);
    fake_claim(fake, CLAIM_STATUS, "\1", 1);
    fake_claim(fake, CLAIM_ERROR_TYPE, type, strlen(type));
    fake_claim(fake, CLAIM_ERROR_TEXT, arguments + used, strlen(arguments + used));
    if (line > 0)
        fake_claim(fake, CLAIM_ERROR_LINE, line_bytes, sizeof line_bytes);
}

static inline void fake_value(struct fake_sandbox *fake, const char *arguments) {
    char type[64];
    int used = 0;

    sscanf(arguments, "%63s %n", type, &used);
    fake_claim(fake, CLAIM_STATUS, "\0", 1);
    fake_claim(fake, CLAIM_VALUE, arguments + used, strlen(arguments + used));
    fake_claim(fake, CLAIM_VALUE_TYPE, type, strlen(type));
}

/* Claims come before files. */
static inline void fake_flush_claims(struct fake_sandbox *fake) {
    if (!fake->claimed && fake->done.outcome == SESSION_RAN)
        fake_claim(fake, CLAIM_STATUS, "\0", 1);
    if (fake->claims.size > 0)
        fake_send(fake, SESSION_RESULT, fake->claims.data, fake->claims.size);
    buffer_clear(&fake->claims);
}

static inline void fake_file(struct fake_sandbox *fake, const char *arguments) {
    char name[256], end[SESSION_FILE_END_SIZE];
    unsigned long size, left;
    char *block = calloc(1, SESSION_DATA_MAX);

    fake_flush_claims(fake);
    sscanf(arguments, "%255s %lu", name, &size);
    memset(block, 'x', SESSION_DATA_MAX);
    fake_send(fake, SESSION_FILE, name, strlen(name));
    for (left = size; left > 0; left -= left < SESSION_DATA_MAX ? left : SESSION_DATA_MAX)
        fake_send(fake, SESSION_DATA, block,
                  left < SESSION_DATA_MAX ? left : SESSION_DATA_MAX);
    session_file_end_put(end, &(struct session_file_end){SESSION_INCLUDED, size});
    fake_send(fake, SESSION_FILE_END, end, sizeof end);
    free(block);
}

static inline void fake_left(struct fake_sandbox *fake, const char *arguments) {
    char payload[SESSION_FILE_END_SIZE + 256];
    char name[256];
    unsigned reason;
    unsigned long size;

    fake_flush_claims(fake);
    sscanf(arguments, "%u %255s %lu", &reason, name, &size);
    session_file_end_put(payload,
                         &(struct session_file_end){(enum session_left_out)reason, size});
    memcpy(payload + SESSION_FILE_END_SIZE, name, strlen(name));
    fake_send(fake, SESSION_LEFT_OUT, payload, SESSION_FILE_END_SIZE + strlen(name));
}

/* INTERRUPT is not sent before `runs` says so, and is read past the reader of frames. */
static inline void fake_await(struct fake_sandbox *fake) {
    char expected[FRAME_HEADER_SIZE], header[FRAME_HEADER_SIZE];

    frame_put_header(expected, SESSION_INTERRUPT, fake->sequence, 0);
    ssize_t got = recv(fake->channel, header, sizeof header, MSG_WAITALL);
    if (got == sizeof header && memcmp(header, expected, sizeof header) == 0)
        fake_output(fake, 1, "interrupted", 11);
}

static inline void fake_raw(struct fake_sandbox *fake, const char *arguments) {
    unsigned type;
    int used = 0;

    sscanf(arguments, "%u %n", &type, &used);
    fake_send(fake, (uint8_t)type, arguments + used, strlen(arguments + used));
}

#define IS(name) (strcmp(command, name) == 0)

/* What the verdict will say. */
static inline void fake_verdict(struct session_done *done, const char *command,
                                const char *rest) {
    if (IS("timeout"))
        done->outcome = SESSION_TIMED_OUT;
    else if (IS("memory"))
        done->outcome = SESSION_OUT_OF_MEMORY;
    else if (IS("broke"))
        done->outcome = SESSION_BROKE_PROTOCOL;
    else if (IS("stubborn"))
        done->outcome = SESSION_INTERRUPTED;
    else if (IS("crash") || IS("exit")) {
        done->outcome = SESSION_CRASHED;
        *(IS("crash") ? &done->signal : &done->status) = (uint8_t)atoi(rest);
    } else if (IS("lost"))
        done->variables_lost = true;
    else if (IS("checkpoint"))
        done->checkpoint = (uint32_t)atoi(rest);
    else if (IS("restored"))
        done->restored_to = (uint32_t)atoi(rest);
    else if (IS("cut"))
        done->stdout_truncated = true;
}

/* Does one line. Returns false when the call is over without a verdict. */
static inline bool fake_do(struct fake_sandbox *fake, const char *line) {
    const char *space = strchr(line, ' ');
    const char *rest = space ? space + 1 : "";
    size_t word = space ? (size_t)(space - line) : strlen(line);
    char command[16] = "";

    snprintf(command, sizeof command, "%.*s", (int)word, line);
    if (IS("print") || IS("error")) {
        fake_output(fake, IS("print") ? 1 : 2, rest, strlen(rest));
    } else if (IS("input")) {
        fake_output(fake, 1, fake->text.data + fake->exec.code_size,
                    fake->exec.stdin_size);
    } else if (IS("uploads")) {
        fake_output(fake, 1, fake->uploads.data, fake->uploads.size);
    } else if (IS("value")) {
        fake_value(fake, rest);
    } else if (IS("raise")) {
        fake_raise(fake, rest);
    } else if (IS("file")) {
        fake_file(fake, rest);
    } else if (IS("left")) {
        fake_left(fake, rest);
    } else if (IS("refuse")) {
        char payload[SESSION_REFUSED_SIZE] = {(char)atoi(rest)};
        put_u32(payload + 1, (uint32_t)atoi(strchr(rest, ' ')));
        fake_send(fake, SESSION_REFUSED, payload, sizeof payload);
        return false;
    } else if (IS("wait")) {
        while (!*fake->gate)
            usleep(1000);
    } else if (IS("await")) {
        fake_await(fake);
    } else if (IS("raw")) {
        fake_raw(fake, rest);
        return true;
    } else if (IS("die")) {
        shutdown(fake->channel, SHUT_RDWR);
        return false;
    } else if (IS("hang")) {
        return false;
    } else if (IS("late")) {
        fake->late = true;
    } else {
        fake_verdict(&fake->done, command, rest);
    }
    return true;
}
#undef IS

static inline void fake_run(struct fake_sandbox *fake) {
    char *code = strndup(fake->text.data ? fake->text.data : "", fake->exec.code_size);
    char payload[SESSION_DONE_SIZE], *rest = code, *line;
    bool goes_on = true;

    fake->runs++;
    fake->done = (struct session_done){.outcome = SESSION_RAN, .runtime_ms = 7};
    memcpy(fake->done.nonce, fake->exec.nonce, sizeof fake->done.nonce);
    fake->claimed = fake->late = false;
    while (goes_on && (line = strsep(&rest, "\n")))
        goes_on = fake_do(fake, line);
    free(code);
    if (goes_on) {
        if (!fake->claimed || fake->claims.size > 0)
            fake_flush_claims(fake);
        session_done_put(payload, &fake->done);
        fake_send(fake, SESSION_DONE, payload, sizeof payload);
        if (fake->late)
            fake_output(fake, 1, "late", 4);
    }
    buffer_clear(&fake->claims);
}

static inline void fake_end_upload(struct fake_sandbox *fake) {
    char size[32];

    if (fake->uploads.size == 0 || fake->uploads.data[fake->uploads.size - 1] == '\n')
        return;
    snprintf(size, sizeof size, " %zu\n", fake->upload_size);
    buffer_append(&fake->uploads, size, strlen(size), SIZE_MAX / 2, NULL);
}

static inline void fake_take(struct fake_sandbox *fake, const struct frame *frame) {
    struct slice rest;

    if (frame->type == SESSION_DATA) {
        fake->upload_size += frame->payload.size;
        return;
    }
    fake_end_upload(fake);
    if (frame->type == SESSION_EXEC) {
        buffer_clear(&fake->text);
        buffer_clear(&fake->uploads);
        fake->sequence = frame->sequence;
        if (session_exec_get(frame->payload, &fake->exec, &rest, NULL) == 0)
            buffer_append(&fake->text, rest.data, rest.size, SIZE_MAX / 2, NULL);
    } else if (frame->type == SESSION_FILE) {
        fake->upload_size = 0;
        buffer_append(&fake->uploads, frame->payload.data, frame->payload.size,
                      SIZE_MAX / 2, NULL);
    } else if (frame->type == SESSION_RUN) {
        fake_run(fake);
    }
}

static inline void *fake_sandbox_main(void *context) {
    struct fake_sandbox *fake = context;
    struct frame_reader reader = {.cap = session_cap_to_supervisor};
    struct frame frame;

    while (frame_reader_wait(&reader, fake->channel, &frame, VIV_TIME_NEVER, NULL) == 0)
        fake_take(fake, &frame);
    frame_reader_clear(&reader);
    buffer_clear(&fake->text);
    buffer_clear(&fake->uploads);
    return NULL;
}

/* Starts one; returns the client's end of its channel. */
static inline int fake_sandbox_start(struct fake_sandbox *fake, atomic_bool *gate) {
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        abort();
    *fake = (struct fake_sandbox){.channel = ends[0], .gate = gate};
    if (pthread_create(&fake->thread, NULL, fake_sandbox_main, fake))
        abort();
    return ends[1];
}

static inline void fake_sandbox_stop(struct fake_sandbox *fake) {
    shutdown(fake->channel, SHUT_RDWR);
    pthread_join(fake->thread, NULL);
    close_and_clear(&fake->channel);
}

#endif
