/* SPDX-License-Identifier: MIT */
/* The launcher's side of executor_wire.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "common/log.h"
#include "executor/landlock.h"
#include "executor/isolation.h"
#include "executor/launcher/launcher_state.h"
#include "executor/launcher/tier_choice.h"
#include "executor/launcher/unshared_memory.h"

#define WAIT_LIMIT_MS      30000
#define SLOT_WAIT_LIMIT_MS 8000 /* less than a client waits: it shall hear the reason */

/* More than the buffer of a socket has room for, unix(7): 212,992 bytes by default. */
#define RECORDS_AT_ONCE 1024

static void drop(struct client *client) {
    struct client **link = &client->launcher->clients;

    while (*link != client)
        link = &(*link)->next;
    *link = client->next;
    event_loop_remove(&client->launcher->loop, &client->source);
    close(client->source.fd);
    unshared_free(client, sizeof *client);
}

/* Sends one reply; a client that does not take it has gone away or floods. */
static int reply(struct client *client, const struct executor_message *message, int fd) {
    size_t size = executor_message_put(client->sent, message);

    if (io_send_message(client->source.fd, client->sent, size, &fd, fd >= 0 ? 1 : 0,
                        NULL) == 0)
        return 0;
    shutdown(client->source.fd, SHUT_RDWR);
    return -1;
}

static void reply_failure(struct client *client, const struct viv_error *failure) {
    const struct executor_message message = {
        .what = (uint16_t)failure->code,
        .bytes = {failure->message, strlen(failure->message)},
    };

    reply(client, &message, -1);
}

static void reply_done(struct client *client, uint64_t sandbox, struct slice bytes) {
    reply(client, &(struct executor_message){.sandbox = sandbox, .bytes = bytes}, -1);
}

/* Returns -1 when the client does not have the channel. */
static int reply_channel(struct client *client, struct sandbox *sandbox) {
    struct viv_error err;
    CLEANUP(close_fd) int channel = sandbox_open_channel(sandbox, &err);

    if (channel >= 0)
        return reply(client, &(struct executor_message){.sandbox = sandbox->number},
                     channel);
    reply_failure(client, &err);
    return -1;
}

static struct managed_sandbox *find(struct launcher *launcher, uint64_t number) {
    struct managed_sandbox *managed = launcher->sandboxes;

    while (managed && managed->sandbox.number != number)
        managed = managed->next;
    return managed && managed->sandbox.state == SANDBOX_TAKEN ? managed : NULL;
}

static void set_record(struct sandbox *sandbox, const char *record, size_t size) {
    memcpy(sandbox->record, record, size);
    sandbox->record_size = size;
}

static struct client *longest_waiting(struct launcher *launcher) {
    struct client *first = NULL;

    for (struct client *client = launcher->clients; client; client = client->next)
        if (client->waiting && (!first || client->order < first->order))
            first = client;
    return first;
}

unsigned launcher_count_waiting(const struct launcher *launcher) {
    unsigned count = 0;

    for (const struct client *client = launcher->clients; client; client = client->next)
        count += client->waiting;
    return count;
}

bool launcher_serve_waiting(struct launcher *launcher, struct managed_sandbox *managed) {
    struct client *client = longest_waiting(launcher);

    if (!client)
        return false;
    client->waiting = false;
    managed->sandbox.state = SANDBOX_TAKEN;
    set_record(&managed->sandbox, client->record, client->record_size);
    client->given = managed->sandbox.number;
    /* One that nobody has would be nobody's to end. */
    if (reply_channel(client, &managed->sandbox))
        launcher_end_sandbox(managed);
    return true;
}

void launcher_fail_waiting(struct launcher *launcher, const struct viv_error *failure) {
    struct client *client = longest_waiting(launcher);

    if (!client)
        return;
    client->waiting = false;
    reply_failure(client, failure);
}

viv_time launcher_expire_waiting(struct launcher *launcher) {
    viv_time now = viv_now(), next = VIV_TIME_NEVER;
    struct viv_error failure;

    if (isolation_has_namespaces(launcher->setup.tier))
        viv_fail(&failure, VIV_UNAVAILABLE, "no sandbox became ready in time");
    else
        viv_fail(&failure, VIV_CAPACITY,
                 "no place for another session became ready in time");
    for (struct client *client = launcher->clients; client; client = client->next) {
        if (!client->waiting)
            continue;
        if (client->waits_until <= now) {
            client->waiting = false;
            reply_failure(client, &failure);
        } else if (client->waits_until < next) {
            next = client->waits_until;
        }
    }
    return next;
}

/* Whether there is room for another session. */
static int admit(struct launcher *launcher, struct viv_error *err) {
    const uint64_t most = launcher_most_sessions(launcher);

    if (launcher_count(launcher, SANDBOX_TAKEN) + launcher_count_waiting(launcher) >=
        most)
        return viv_fail(err, VIV_CAPACITY, "all %llu sessions are in use",
                        (unsigned long long)most);
    return launcher_host_has_room(launcher, err);
}

static void acquire(struct client *client, struct slice record) {
    struct launcher *launcher = client->launcher;
    struct managed_sandbox *ready = launcher->sandboxes;
    struct viv_error err;

    if (client->waiting || admit(launcher, &err)) {
        if (client->waiting)
            viv_fail(&err, VIV_BAD_GATEWAY, "one request at a time");
        reply_failure(client, &err);
        return;
    }
    memcpy(client->record, record.data, record.size);
    client->record_size = record.size;
    client->waiting = true;
    client->waits_until =
        viv_after_ms(isolation_has_namespaces(launcher->setup.tier) ? WAIT_LIMIT_MS
                                                                    : SLOT_WAIT_LIMIT_MS);
    client->order = ++launcher->last_order;
    while (ready && ready->sandbox.state != SANDBOX_READY)
        ready = ready->next;
    if (ready)
        launcher_serve_waiting(launcher, ready);
    /* The answer is out; now the pool. */
    launcher_refill(launcher);
}

static void attach(struct client *client, uint64_t number) {
    struct managed_sandbox *managed = find(client->launcher, number);
    struct viv_error err;

    if (managed) {
        reply_channel(client, &managed->sandbox);
        return;
    }
    viv_fail(&err, VIV_NOT_FOUND, "the sandbox is gone");
    reply_failure(client, &err);
}

static void next_record(struct client *client, uint64_t after) {
    struct managed_sandbox *next = NULL;

    for (struct managed_sandbox *one = client->launcher->sandboxes; one; one = one->next)
        if (one->sandbox.state == SANDBOX_TAKEN && one->sandbox.number > after)
            next = one; /* the newest comes first, so the last one found is the lowest */
    if (next)
        reply_done(client, next->sandbox.number,
                   (struct slice){next->sandbox.record, next->sandbox.record_size});
    else
        reply_done(client, 0, (struct slice){0});
}

static void status(struct client *client) {
    struct launcher *launcher = client->launcher;
    const char *reason = launcher->reason[0]           ? launcher->reason
                         : launcher->zygotes.reason[0] ? launcher->zygotes.reason
                         : launcher->slots.reason[0]   ? launcher->slots.reason
                         : !launcher->proven           ? "starting"
                                                       : NULL;
    const enum isolation_tier tier = launcher->setup.tier;
    const bool namespaces = isolation_has_namespaces(tier);
    char text[EXECUTOR_BYTES_MAX], controllers[TIER_CONTROLLERS_SIZE];

    tier_controllers(controllers, launcher->setup.cgroups);
    int size = snprintf(
        text, sizeof text,
        "tier=%s\nlandlock=%d\nsandboxes=%u\nready=%u\nslots=%u\nnetwork=%s\ndisk=%s\n"
        "controllers=%s\n%s%s%s%s%s%s%s%s%s",
        isolation_name(tier), landlock_abi(), launcher_count(launcher, SANDBOX_TAKEN),
        launcher_count(launcher, SANDBOX_READY), launcher->slots.count,
        namespaces ? "namespace" : "seccomp", namespaces ? "quota" : "watch", controllers,
        launcher->no_checkpoints[0] ? "no_checkpoints=" : "", launcher->no_checkpoints,
        launcher->no_checkpoints[0] ? "\n" : "", launcher->weaker[0] ? "weaker=" : "",
        launcher->weaker, launcher->weaker[0] ? "\n" : "", reason ? "reason=" : "",
        reason ? reason : "", reason ? "\n" : "");

    /* What is too long was cut. */
    reply_done(client, 0, (struct slice){text, strnlen(text, (size_t)size)});
}

static void take(struct client *client, const struct executor_message *request) {
    struct managed_sandbox *managed;
    struct viv_error err;

    switch (request->what) {
    case EXECUTOR_ACQUIRE:
        acquire(client, request->bytes);
        break;
    case EXECUTOR_ATTACH:
        attach(client, request->sandbox);
        break;
    case EXECUTOR_RECORD:
        managed = find(client->launcher, request->sandbox);
        if (managed)
            set_record(&managed->sandbox, request->bytes.data, request->bytes.size);
        break;
    case EXECUTOR_NEXT:
        next_record(client, request->sandbox);
        break;
    case EXECUTOR_END:
        managed = find(client->launcher, request->sandbox);
        if (managed)
            launcher_end_sandbox(managed);
        reply_done(client, request->sandbox, (struct slice){0});
        break;
    case EXECUTOR_STATUS:
        status(client);
        break;
    default:
        viv_fail(&err, VIV_BAD_GATEWAY, "unknown operation %u", request->what);
        reply_failure(client, &err);
    }
}

/* Whether the client went away without having read all that was sent to it: the kernel
 * then resets the connection. */
static bool left_something_unread(const struct client *client) {
    int error = 0;
    socklen_t size = sizeof error;

    return getsockopt(client->source.fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 &&
           error == ECONNRESET;
}

static void client_left(struct client *client, bool unread) {
    struct managed_sandbox *given =
        unread && client->given ? find(client->launcher, client->given) : NULL;

    if (given)
        launcher_end_sandbox(given);
    drop(client);
}

/* Takes one request; true for a record, so that another one may follow at once. The
 * client may be gone afterwards. */
static bool take_next(struct client *client) {
    struct executor_message request;
    struct viv_error err;
    size_t fd_count;
    bool unread = left_something_unread(client);
    ssize_t got = io_receive_message(client->source.fd, client->received,
                                     sizeof client->received, NULL, 0, &fd_count, &err);

    if (got == 0 || (got < 0 && err.code != VIV_UNAVAILABLE)) {
        client_left(client, unread);
        return false;
    }
    if (got < 0)
        return false;
    client->given = 0;
    if (executor_message_get((struct slice){client->received, (size_t)got}, &request,
                             &err)) {
        viv_log_failure(VIV_LOG_WARNING, "client_refused", err.message, NULL);
        reply_failure(client, &err);
        return false;
    }
    take(client, &request);
    return request.what == EXECUTOR_RECORD;
}

/* Records that wait are all taken before anybody else is served: one that was sent
 * earlier, perhaps by a vivarium-fcgi that is gone, must not come after a later question
 * for it, or over a later one of another connection. */
static void client_ready(struct event_source *source) {
    for (int count = 0; count < RECORDS_AT_ONCE && take_next((struct client *)source);)
        count++;
}

void launcher_add_client(struct launcher *launcher, int fd) {
    struct client *client = unshared_alloc(sizeof *client);

    client->launcher = launcher;
    client->source = (struct event_source){fd, client_ready};
    if (io_set_nonblocking(fd, NULL) ||
        event_loop_add(&launcher->loop, &client->source, NULL)) {
        close(fd);
        unshared_free(client, sizeof *client);
        return;
    }
    client->next = launcher->clients;
    launcher->clients = client;
}
