/* SPDX-License-Identifier: MIT */
#include "executor/launcher/slots.h"

#include <stdio.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/io.h"
#include "common/log.h"
#include "executor/launcher/janitor.h"

#define FIRST_LIMIT_MS 120000 /* a tree may have to be copied first */
#define RETRY_FIRST_MS 200
#define RETRY_LAST_MS  10000

static int ask(int socket, uint32_t slot, struct viv_error *err) {
    const struct janitor_request request = {.slot = slot};

    return io_send_message(socket, &request, sizeof request, NULL, 0, err);
}

/* Takes one answer; *folder is -1 when the janitor failed. Fails when there is none. */
static int receive(int socket, struct janitor_reply *reply, int *folder,
                   struct viv_error *err) {
    size_t fd_count;
    ssize_t got =
        io_receive_message(socket, reply, sizeof *reply, folder, 1, &fd_count, err);

    /* The message is there, its descriptor is not: as if the janitor had failed. */
    if (got < 0 && err->code == VIV_CAPACITY) {
        snprintf(reply->reason, sizeof reply->reason, "too many open files");
        *folder = -1;
        return 0;
    }
    if (got < 0)
        return -1;
    if (fd_count == 0)
        *folder = -1;
    if (got != sizeof *reply) {
        close_fd_cleanup(folder);
        return viv_fail(err, VIV_BAD_GATEWAY, "the janitor is gone");
    }
    reply->reason[sizeof reply->reason - 1] = '\0';
    return 0;
}

int slots_ask_for_zygote(int socket, struct viv_error *err) {
    return slots_ask(socket, JANITOR_ZYGOTE, err);
}

int slots_ask(int socket, uint32_t slot, struct viv_error *err) {
    struct janitor_reply reply;
    int folder;

    if (ask(socket, slot, err) ||
        io_wait(socket, false, viv_after_ms(FIRST_LIMIT_MS), err) ||
        receive(socket, &reply, &folder, err))
        return -1;
    if (folder < 0)
        return viv_fail(err, VIV_SYSTEM, "%s", reply.reason);
    return folder;
}

static void answered(struct slots *slots, const struct janitor_reply *reply, int folder) {
    struct slot *slot = &slots->all[reply->slot];

    if (folder >= 0) {
        *slot = (struct slot){.state = SLOT_FREE, .folder = folder};
        slots->failures = 0;
        slots->reason[0] = '\0';
        return;
    }
    int64_t wait_ms = viv_backoff_ms(++slots->failures, RETRY_FIRST_MS, RETRY_LAST_MS);
    slot->state = SLOT_UNPREPARED;
    slot->not_before = viv_after_ms(wait_ms);
    snprintf(slots->reason, sizeof slots->reason, "%s", reply->reason);
    viv_log_failure(VIV_LOG_ERROR, "slot_not_prepared", reply->reason,
                    "slot=%u retry_ms=%lld", reply->slot, (long long)wait_ms);
}

static void says(struct event_source *source) {
    struct slots *slots = (struct slots *)source;
    struct janitor_reply reply;
    struct viv_error err;
    int folder = -1;

    if (receive(source->fd, &reply, &folder, &err)) {
        if (err.code == VIV_UNAVAILABLE)
            return;
        slots->lost = true;
        viv_log_failure(VIV_LOG_ERROR, "janitor_lost", err.message, NULL);
        return;
    }
    if (reply.slot < slots->count && slots->all[reply.slot].state == SLOT_ASKED)
        answered(slots, &reply, folder);
    else
        close_fd_cleanup(&folder);
}

int slots_init(struct slots *slots, int socket, uint32_t count, struct event_loop *loop,
               struct viv_error *err) {
    *slots = (struct slots){
        .source = {socket, says},
        .count = count,
        .all = viv_xcalloc(count, sizeof *slots->all),
    };
    if (io_set_nonblocking(socket, err))
        return -1;
    return event_loop_add(loop, &slots->source, err);
}

static uint64_t count(const struct slots *slots, enum slot_state state) {
    uint64_t found = 0;

    for (uint32_t i = 0; i < slots->count; i++)
        found += slots->all[i].state == state;
    return found;
}

void slots_prepare(struct slots *slots, uint64_t wanted) {
    uint64_t there = count(slots, SLOT_FREE) + count(slots, SLOT_ASKED);

    for (uint32_t i = 0; i < slots->count; i++) {
        struct slot *slot = &slots->all[i];
        if (slot->state != SLOT_UNPREPARED || viv_now() < slot->not_before ||
            (there >= wanted && !slot->used))
            continue;
        /* When the janitor has enough to do, the rest is asked for later. */
        if (ask(slots->source.fd, i, NULL))
            return;
        slot->state = SLOT_ASKED;
        there++;
    }
}

int64_t slots_take(struct slots *slots) {
    for (uint32_t i = 0; i < slots->count; i++)
        if (slots->all[i].state == SLOT_FREE) {
            slots->all[i].state = SLOT_TAKEN;
            return i;
        }
    return -1;
}

void slots_give_back(struct slots *slots, uint32_t slot) {
    close(slots->all[slot].folder);
    slots->all[slot] = (struct slot){.state = SLOT_UNPREPARED, .used = true};
}
