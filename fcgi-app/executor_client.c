/* SPDX-License-Identifier: MIT */
#include "fcgi-app/executor_client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "common/log.h"

void executor_client_init(struct executor_client *client, const char *path) {
    *client = (struct executor_client){.path = path, .record_fd = -1};
    pthread_mutex_init(&client->lock, NULL);
}

void executor_client_clear(struct executor_client *client) {
    close_and_clear(&client->record_fd);
    pthread_mutex_destroy(&client->lock);
}

/* A connection. Where the executor's queue of connections is full, unix(7) lets
 * connect(2) wait, as long as the time to send. */
static int connect_to(const char *path, viv_time deadline, struct viv_error *err) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int ms = viv_poll_timeout(deadline), failed;
    struct timeval wait = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 + 1};

    if (fd < 0)
        return viv_fail(err, VIV_UNAVAILABLE, "socket: %m");
    if (strlen(path) >= sizeof address.sun_path)
        return viv_fail(err, VIV_SYSTEM, "the executor's socket has too long a path");
    strcpy(address.sun_path, path);
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait))
        return viv_fail(err, VIV_SYSTEM, "setsockopt: %m");
    do
        failed = connect(fd, (struct sockaddr *)&address, sizeof address);
    while (failed && errno == EINTR); /* the process was stopped: signal(7) */
    if (failed)
        return viv_fail(err, VIV_UNAVAILABLE, "vivarium-executor cannot be reached: %m");
    return steal_fd(&fd);
}

static int send_request(int fd, const struct executor_message *request,
                        struct viv_error *err) {
    char bytes[EXECUTOR_MESSAGE_MAX];
    size_t size = executor_message_put(bytes, request);

    if (io_send_message(fd, bytes, size, NULL, 0, err) == 0)
        return 0;
    err->code = VIV_UNAVAILABLE;
    return -1;
}

/* A reply, and the descriptor that came with it, or -1. */
struct reply {
    char bytes[EXECUTOR_MESSAGE_MAX];
    struct executor_message message; /* borrows from bytes */
    int fd;
};

static int receive_reply(int fd, struct reply *reply, viv_time deadline,
                         struct viv_error *err) {
    size_t fds;

    if (io_wait(fd, false, deadline, err)) {
        /* A reply that is on its way brings a sandbox that nobody else would ever end.
         * After shutdown(2) no further one can come, and one that is there can still be
         * read. */
        shutdown(fd, SHUT_RDWR);
    }
    ssize_t size = io_receive_message(fd, reply->bytes, sizeof reply->bytes, &reply->fd,
                                      1, &fds, err);
    if (fds == 0)
        reply->fd = -1;
    if (size < 0)
        return -1;
    if (size == 0)
        return viv_fail(err, VIV_UNAVAILABLE, "vivarium-executor did not answer");
    return executor_message_get((struct slice){reply->bytes, (size_t)size},
                                &reply->message, err);
}

/* The failure that a reply reports, in its own words. */
static int check_code(const struct executor_message *message, struct viv_error *err) {
    if (message->what == VIV_OK)
        return 0;
    enum viv_code code =
        message->what < VIV_CODE_COUNT ? (enum viv_code)message->what : VIV_SYSTEM;
    return viv_fail(err, code, "vivarium-executor: %.*s", (int)message->bytes.size,
                    message->bytes.data);
}

/* One operation from connection to reply. reply->fd is the caller's, also on failure. */
static int ask(struct executor_client *client, const struct executor_message *request,
               struct reply *reply, viv_time deadline, struct viv_error *err) {
    reply->fd = -1;
    CLEANUP(close_fd) int fd = connect_to(client->path, deadline, err);
    if (fd < 0 || send_request(fd, request, err) ||
        receive_reply(fd, reply, deadline, err))
        return -1;
    return check_code(&reply->message, err);
}

/* Whether the descriptor is what a session channel has to be. */
static int check_channel(int fd, struct viv_error *err) {
    int domain = 0, type = 0;
    socklen_t size = sizeof domain;

    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) || domain != AF_UNIX ||
        type != SOCK_STREAM)
        return viv_fail(err, VIV_BAD_GATEWAY,
                        "vivarium-executor sent no session channel");
    return io_set_nonblocking(fd, err);
}

static int ask_for_channel(struct executor_client *client,
                           const struct executor_message *request, viv_time deadline,
                           uint64_t *sandbox, int *channel, struct viv_error *err) {
    struct reply reply;
    int failed = ask(client, request, &reply, deadline, err);
    CLEANUP(close_fd) int fd = reply.fd;

    if (failed || check_channel(fd, err))
        return -1;
    if (reply.message.sandbox == 0)
        return viv_fail(err, VIV_BAD_GATEWAY, "vivarium-executor sent no sandbox");
    *sandbox = reply.message.sandbox;
    *channel = steal_fd(&fd);
    return 0;
}

int executor_acquire(struct executor_client *client, struct slice record,
                     uint64_t *sandbox, int *channel, struct viv_error *err) {
    const struct executor_message request = {EXECUTOR_ACQUIRE, 0, record};

    return ask_for_channel(client, &request, viv_after_ms(EXECUTOR_ACQUIRE_MS), sandbox,
                           channel, err);
}

int executor_attach(struct executor_client *client, uint64_t sandbox, int *channel,
                    struct viv_error *err) {
    const struct executor_message request = {EXECUTOR_ATTACH, sandbox, {NULL, 0}};
    uint64_t attached;

    return ask_for_channel(client, &request, viv_after_ms(EXECUTOR_ANSWER_MS), &attached,
                           channel, err);
}

/* An operation whose reply has no descriptor. */
static int ask_plainly(struct executor_client *client,
                       const struct executor_message *request, struct reply *reply,
                       viv_time deadline, struct viv_error *err) {
    int failed = ask(client, request, reply, deadline, err);

    close_and_clear(&reply->fd);
    return failed;
}

int executor_end(struct executor_client *client, uint64_t sandbox,
                 struct viv_error *err) {
    const struct executor_message request = {EXECUTOR_END, sandbox, {NULL, 0}};
    struct reply reply;

    if (ask_plainly(client, &request, &reply, viv_after_ms(EXECUTOR_ANSWER_MS), err) ==
            0 ||
        err->code == VIV_NOT_FOUND)
        return 0;
    return -1;
}

int executor_next(struct executor_client *client, uint64_t after,
                  struct executor_entry *entry, struct viv_error *err) {
    const struct executor_message request = {EXECUTOR_NEXT, after, {NULL, 0}};
    struct reply reply;

    if (ask_plainly(client, &request, &reply, viv_after_ms(EXECUTOR_ANSWER_MS), err))
        return -1;
    if (reply.message.sandbox != 0 && reply.message.sandbox <= after)
        return viv_fail(err, VIV_BAD_GATEWAY, "vivarium-executor lists a sandbox twice");
    entry->sandbox = reply.message.sandbox;
    entry->record_size = reply.message.bytes.size;
    memcpy(entry->record, reply.message.bytes.data, entry->record_size);
    return 0;
}

/* Copies the value of the line `key=value` into `to`, cut to its size. */
static void copy_value(struct slice lines, const char *key, char *to, size_t size) {
    size_t key_size = strlen(key);

    to[0] = '\0';
    while (lines.size > 0) {
        const char *end = memchr(lines.data, '\n', lines.size);
        size_t length = end ? (size_t)(end - lines.data) : lines.size;
        if (length > key_size && lines.data[key_size] == '=' &&
            memcmp(lines.data, key, key_size) == 0)
            snprintf(to, size, "%.*s", (int)(length - key_size - 1),
                     lines.data + key_size + 1);
        size_t taken = length + (end != NULL);
        lines = (struct slice){lines.data + taken, lines.size - taken};
    }
}

static unsigned read_number(struct slice lines, const char *key) {
    char text[EXECUTOR_WORD_SIZE];

    copy_value(lines, key, text, sizeof text);
    return (unsigned)strtoul(text, NULL, 10);
}

int executor_status(struct executor_client *client, viv_time deadline,
                    struct executor_status *status, struct viv_error *err) {
    const struct executor_message request = {EXECUTOR_STATUS, 0, {NULL, 0}};
    struct reply reply;

    if (ask_plainly(client, &request, &reply, deadline, err))
        return -1;
    const struct slice lines = reply.message.bytes;
    copy_value(lines, "tier", status->tier, sizeof status->tier);
    copy_value(lines, "network", status->network, sizeof status->network);
    copy_value(lines, "disk", status->disk, sizeof status->disk);
    copy_value(lines, "controllers", status->controllers, sizeof status->controllers);
    copy_value(lines, "weaker", status->weaker, sizeof status->weaker);
    copy_value(lines, "no_checkpoints", status->no_checkpoints,
               sizeof status->no_checkpoints);
    copy_value(lines, "reason", status->reason, sizeof status->reason);
    status->landlock = read_number(lines, "landlock");
    status->slots = read_number(lines, "slots");
    return 0;
}

/* Sends on the kept connection; false when there is none, or it does not take the
 * message. */
static bool send_record(struct executor_client *client,
                        const struct executor_message *request) {
    struct viv_error err;

    if (client->record_fd < 0)
        return false;
    if (send_request(client->record_fd, request, &err) == 0)
        return true;
    close_and_clear(&client->record_fd);
    return false;
}

void executor_record(struct executor_client *client, uint64_t sandbox,
                     executor_record_source *source, void *context) {
    char record[EXECUTOR_BYTES_MAX];
    struct viv_error err;

    pthread_mutex_lock(&client->lock);
    size_t size = source(context, record);
    const struct executor_message request = {EXECUTOR_RECORD, sandbox, {record, size}};
    if (size > 0 && !send_record(client, &request)) {
        client->record_fd = connect_to(client->path, viv_now(), &err);
        send_record(client, &request);
    }
    pthread_mutex_unlock(&client->lock);
}
