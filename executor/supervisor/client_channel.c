/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/client_channel.h"

#include <errno.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "common/session_wire.h"

#define CLIENT_LIMIT_MS 30000        /* to take one write */
#define GATHERED_MAX    (32U * 1024) /* bytes that wait for each other */

void client_channel_init(struct client_channel *channel) {
    *channel = (struct client_channel){
        .fd = -1,
        .reader = {.cap = session_cap_to_supervisor},
    };
}

void client_channel_close(struct client_channel *channel) {
    close_and_clear(&channel->fd);
    frame_reader_clear(&channel->reader);
    buffer_clear(&channel->queue);
}

void client_channel_open(struct client_channel *channel, int fd) {
    client_channel_close(channel);
    channel->fd = fd;
    if (io_set_nonblocking(fd, NULL))
        client_channel_close(channel);
}

int client_channel_queue(struct client_channel *channel, uint8_t type, uint32_t sequence,
                         struct slice first, struct slice second) {
    char header[FRAME_HEADER_SIZE];
    size_t length = first.size + second.size;
    struct buffer *queue = &channel->queue;

    if (channel->fd < 0 ||
        buffer_reserve(queue, sizeof header + length, SIZE_MAX / 2, NULL))
        return -1;
    frame_put_header(header, type, sequence, (uint32_t)length);
    buffer_append(queue, header, sizeof header, SIZE_MAX / 2, NULL);
    buffer_append(queue, first.data, first.size, SIZE_MAX / 2, NULL);
    buffer_append(queue, second.data, second.size, SIZE_MAX / 2, NULL);
    return 0;
}

int client_channel_flush(struct client_channel *channel) {
    struct iovec queued = {channel->queue.data, channel->queue.size};

    if (channel->fd < 0)
        return -1;
    if (io_write_full(channel->fd, &queued, 1, viv_after_ms(CLIENT_LIMIT_MS), NULL)) {
        client_channel_close(channel);
        return -1;
    }
    channel->queue.size = 0;
    if (channel->queue.capacity > GATHERED_MAX)
        buffer_clear(&channel->queue);
    return 0;
}

int client_channel_send(struct client_channel *channel, uint8_t type, uint32_t sequence,
                        struct slice first, struct slice second) {
    struct iovec payload[2] = {{(void *)first.data, first.size},
                               {(void *)second.data, second.size}};

    if (channel->queue.size + first.size + second.size <= GATHERED_MAX)
        return client_channel_queue(channel, type, sequence, first, second);
    if (client_channel_flush(channel))
        return -1;
    if (frame_send(channel->fd, type, sequence, payload, 2, viv_after_ms(CLIENT_LIMIT_MS),
                   NULL) == 0)
        return 0;
    client_channel_close(channel);
    return -1;
}

void client_channel_flush_some(struct client_channel *channel) {
    struct buffer *queue = &channel->queue;
    size_t done = 0;

    while (channel->fd >= 0 && done < queue->size) {
        ssize_t sent = send(channel->fd, queue->data + done, queue->size - done,
                            MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent > 0)
            done += (size_t)sent;
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR) {
            client_channel_close(channel);
            return;
        }
    }
    buffer_consume(queue, done);
}
