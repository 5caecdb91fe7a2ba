/* SPDX-License-Identifier: MIT */
/*
 * An executor of make-believe for tests: it answers the operations of executor_wire.h in
 * a thread, and its sandboxes are those of fake_sandbox.h. What it does is set by the
 * fields and read from them under the lock.
 */
#ifndef VIV_TESTS_FAKE_EXECUTOR_H
#define VIV_TESTS_FAKE_EXECUTOR_H

#include <sys/un.h>

#include "common/executor_wire.h"
#include "common/io.h"
#include "tests/unit/fake_sandbox.h"

#define FAKE_SANDBOXES_MAX   64
#define FAKE_CONNECTIONS_MAX 64

struct fake_entry {
    bool alive;
    char record[EXECUTOR_BYTES_MAX];
    size_t record_size;
    struct fake_sandbox sandbox;
};

struct fake_executor {
    char directory[64], path[96];
    pthread_mutex_t lock;
    enum viv_code refusal; /* of ACQUIRE and ATTACH; VIV_OK: none */
    const char *status;
    bool silent; /* answers nothing */
    unsigned acquired, attached, ended, records;
    struct fake_entry entries[FAKE_SANDBOXES_MAX]; /* of sandbox 1, 2, ... */
    size_t count;
    atomic_bool gate; /* see fake_sandbox.h */
    int listener, stop;
    pthread_t thread;
};

static inline struct fake_entry *fake_find(struct fake_executor *fake, uint64_t sandbox) {
    if (sandbox == 0 || sandbox > fake->count || !fake->entries[sandbox - 1].alive)
        return NULL;
    return &fake->entries[sandbox - 1];
}

static inline void fake_set_record(struct fake_entry *entry, struct slice record) {
    memcpy(entry->record, record.data, record.size);
    entry->record_size = record.size;
}

static inline void fake_kill(struct fake_entry *entry) {
    entry->alive = false;
    shutdown(entry->sandbox.channel, SHUT_RDWR);
}

static inline void fake_reply(int connection, enum viv_code code, uint64_t sandbox,
                              struct slice bytes, int fd) {
    char message[EXECUTOR_MESSAGE_MAX];
    size_t size = executor_message_put(
        message, &(struct executor_message){(uint16_t)code, sandbox, bytes});

    io_send_message(connection, message, size, &fd, fd >= 0, NULL);
    close_fd_cleanup(&fd);
}

static inline void fake_acquire(struct fake_executor *fake, int connection,
                                struct slice record) {
    const char *why = "no room";

    fake->acquired++;
    if (fake->refusal != VIV_OK || fake->count == FAKE_SANDBOXES_MAX) {
        fake_reply(connection, fake->refusal, 0, (struct slice){why, strlen(why)}, -1);
        return;
    }
    struct fake_entry *entry = &fake->entries[fake->count++];
    entry->alive = true;
    fake_set_record(entry, record);
    fake_reply(connection, VIV_OK, fake->count, (struct slice){NULL, 0},
               fake_sandbox_start(&entry->sandbox, &fake->gate));
}

static inline void fake_attach(struct fake_executor *fake, int connection,
                               uint64_t sandbox) {
    struct fake_entry *entry = fake_find(fake, sandbox);

    fake->attached++;
    if (!entry) {
        fake_reply(connection, VIV_NOT_FOUND, sandbox, (struct slice){"gone", 4}, -1);
        return;
    }
    if (fake->refusal != VIV_OK) {
        fake_reply(connection, fake->refusal, sandbox, (struct slice){"no", 2}, -1);
        return;
    }
    fake_sandbox_stop(&entry->sandbox);
    fake_reply(connection, VIV_OK, sandbox, (struct slice){NULL, 0},
               fake_sandbox_start(&entry->sandbox, &fake->gate));
}

static inline void fake_next(struct fake_executor *fake, int connection, uint64_t after) {
    for (uint64_t number = after + 1; number <= fake->count; number++) {
        struct fake_entry *entry = fake_find(fake, number);
        if (entry) {
            fake_reply(connection, VIV_OK, number,
                       (struct slice){entry->record, entry->record_size}, -1);
            return;
        }
    }
    fake_reply(connection, VIV_OK, 0, (struct slice){NULL, 0}, -1);
}

static inline void fake_answer(struct fake_executor *fake, int connection,
                               const struct executor_message *request) {
    struct slice none = {NULL, 0};
    struct fake_entry *entry = fake_find(fake, request->sandbox);

    switch (request->what) {
    case EXECUTOR_ACQUIRE:
        fake_acquire(fake, connection, request->bytes);
        break;
    case EXECUTOR_ATTACH:
        fake_attach(fake, connection, request->sandbox);
        break;
    case EXECUTOR_RECORD:
        fake->records++;
        if (entry)
            fake_set_record(entry, request->bytes);
        break;
    case EXECUTOR_NEXT:
        fake_next(fake, connection, request->sandbox);
        break;
    case EXECUTOR_END:
        fake->ended++;
        if (entry)
            fake_kill(entry);
        fake_reply(connection, VIV_OK, request->sandbox, none, -1);
        break;
    default:
        fake_reply(connection, VIV_OK, 0,
                   (struct slice){fake->status, strlen(fake->status)}, -1);
    }
}

/* Takes one message; false at the end of the connection. */
static inline bool fake_serve(struct fake_executor *fake, int connection) {
    char bytes[EXECUTOR_MESSAGE_MAX];
    struct executor_message request;
    size_t fds;
    ssize_t size =
        io_receive_message(connection, bytes, sizeof bytes, NULL, 0, &fds, NULL);

    if (size <= 0)
        return false;
    pthread_mutex_lock(&fake->lock);
    if (!fake->silent &&
        executor_message_get((struct slice){bytes, (size_t)size}, &request, NULL) == 0)
        fake_answer(fake, connection, &request);
    pthread_mutex_unlock(&fake->lock);
    return true;
}

static inline void *fake_executor_main(void *context) {
    struct fake_executor *fake = context;
    struct pollfd waited[2 + FAKE_CONNECTIONS_MAX] = {
        {.fd = fake->listener, .events = POLLIN}, {.fd = fake->stop, .events = POLLHUP}};
    nfds_t count = 2;

    while (poll(waited, count, -1) >= 0 && !waited[1].revents) {
        for (nfds_t i = 2; i < count; i++) {
            if (!waited[i].revents || fake_serve(fake, waited[i].fd))
                continue;
            close(waited[i].fd);
            waited[i--] = waited[--count];
        }
        if (waited[0].revents && count < 2 + FAKE_CONNECTIONS_MAX)
            waited[count++] =
                (struct pollfd){.fd = accept4(fake->listener, NULL, NULL, SOCK_CLOEXEC),
                                .events = POLLIN};
    }
    for (nfds_t i = 2; i < count; i++)
        close(waited[i].fd);
    close(fake->stop);
    return NULL;
}

static inline void fake_executor_start(struct fake_executor *fake, int *stop) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int pipe_ends[2];

    memset(fake, 0, sizeof *fake);
    snprintf(fake->directory, sizeof fake->directory, "/tmp/viv-test-XXXXXX");
    if (!mkdtemp(fake->directory) || pipe(pipe_ends))
        abort();
    snprintf(fake->path, sizeof fake->path, "%s/executor.sock", fake->directory);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", fake->path);
    fake->status =
        "tier=full\nlandlock=6\nsandboxes=1\nready=2\nslots=0\nnetwork=namespace\n"
        "disk=quota\ncontrollers=memory,pids,cpu\n";
    pthread_mutex_init(&fake->lock, NULL);
    fake->stop = pipe_ends[0];
    *stop = pipe_ends[1];
    fake->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (bind(fake->listener, (struct sockaddr *)&address, sizeof address) ||
        listen(fake->listener, 64) ||
        pthread_create(&fake->thread, NULL, fake_executor_main, fake))
        abort();
}

/* Ends the executor as if it had died, its sandboxes with it. */
static inline void fake_executor_stop(struct fake_executor *fake, int stop) {
    close(stop);
    pthread_join(fake->thread, NULL);
    fake->gate = true;
    close(fake->listener);
    unlink(fake->path);
    rmdir(fake->directory);
    for (size_t i = 0; i < fake->count; i++)
        fake_sandbox_stop(&fake->entries[i].sandbox);
    pthread_mutex_destroy(&fake->lock);
}

#endif
