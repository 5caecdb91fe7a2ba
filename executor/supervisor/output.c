/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include "common/cleanup.h"

/* Queues bytes for the client of the running call; the call's limit bounds the queue. */
static void queue(struct call *call, struct client_channel *client, int stream,
                  struct slice bytes) {
    const char number = (char)(stream + 1);

    bytes.size = call_admit_output(call, stream, bytes.size);
    if (bytes.size == 0 || call->client_gone)
        return;
    if (client_channel_queue(client, SESSION_OUTPUT, call->sequence,
                             (struct slice){&number, 1}, bytes))
        call->output[stream].truncated = true;
}

/* Reads at most `limit` bytes that are there now; returns their number. */
static size_t pump(struct worker_process *worker, int stream, size_t limit,
                   struct call *call, struct client_channel *client) {
    char block[SESSION_OUTPUT_MAX];

    if (limit > sizeof block)
        limit = sizeof block;
    ssize_t got = read(worker->output[stream], block, limit);
    if (got < 0)
        return 0;
    if (got == 0)
        close_and_clear(&worker->output[stream]);
    else if (call->phase == CALL_RUNNING)
        queue(call, client, stream, (struct slice){block, (size_t)got});
    return (size_t)got;
}

void output_pump(struct worker_process *worker, int stream, struct call *call,
                 struct client_channel *client) {
    pump(worker, stream, SESSION_OUTPUT_MAX, call, client);
}

void output_pump_all(struct worker_process *worker, struct call *call,
                     struct client_channel *client) {
    for (int stream = 0; stream < 2; stream++) {
        int there = 0;
        if (worker->output[stream] < 0 || ioctl(worker->output[stream], FIONREAD, &there))
            continue;
        while (there > 0) {
            size_t got = pump(worker, stream, (size_t)there, call, client);
            if (got == 0)
                break;
            there -= (int)got;
        }
    }
}
