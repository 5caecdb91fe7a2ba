/* SPDX-License-Identifier: MIT */
/*
 * The supervisor's end of the session channel: frames to and from vivarium-fcgi. Small
 * frames are gathered, so that a short answer is one write and wakes its reader once;
 * large ones are written as they come. A client that does not read is given up after a
 * limit, and what goes to a client that is gone goes nowhere.
 */
#ifndef VIV_CLIENT_CHANNEL_H
#define VIV_CLIENT_CHANNEL_H

#include <stdint.h>

#include "common/frame.h"

struct client_channel {
    int fd; /* -1: there is no client */
    struct frame_reader reader;
    struct buffer queue; /* whole frames that the socket did not take yet */
};

void client_channel_init(struct client_channel *channel);

/* Takes over a descriptor; the one before is closed, and what was queued for it
 * dropped. */
void client_channel_open(struct client_channel *channel, int fd);

void client_channel_close(struct client_channel *channel);

/* Queues a frame of at most two parts without writing: for output while code runs. The
 * caller bounds what it queues. Fails when there is no client or no memory. */
int client_channel_queue(struct client_channel *channel, uint8_t type, uint32_t sequence,
                         struct slice first, struct slice second);

/* Sends a frame of at most two parts, together with others where it is small; may block.
 * Fails when the client is gone, and closes the channel then. */
int client_channel_send(struct client_channel *channel, uint8_t type, uint32_t sequence,
                        struct slice first, struct slice second);

/* Writes all that is queued; may block. Fails as client_channel_send(). */
int client_channel_flush(struct client_channel *channel);

/* Writes as much of the queue as the socket takes now. */
void client_channel_flush_some(struct client_channel *channel);

#endif
