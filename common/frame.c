/* SPDX-License-Identifier: MIT */
#include "common/frame.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/io.h"

#define FRAME_MAGIC     UINT32_C(0x46564956) /* "VIVF" */
#define FILL_SIZE       (64 * 1024)
#define KEPT_CAPACITY   (4 * FILL_SIZE)
#define PAYLOAD_VECTORS 7

void frame_put_header(char header[FRAME_HEADER_SIZE], uint8_t type, uint32_t sequence,
                      uint32_t length) {
    put_u32(header, FRAME_MAGIC);
    header[4] = FRAME_VERSION;
    header[5] = (char)type;
    put_u16(header + 6, 0);
    put_u32(header + 8, sequence);
    put_u32(header + 12, length);
}

int frame_send(int fd, uint8_t type, uint32_t sequence, const struct iovec *payload,
               int count, viv_time deadline, struct viv_error *err) {
    char header[FRAME_HEADER_SIZE];
    struct iovec vectors[PAYLOAD_VECTORS + 1] = {{header, sizeof header}};
    size_t length = 0;

    if (count > PAYLOAD_VECTORS)
        return viv_fail(err, VIV_SYSTEM, "too many vectors");
    for (int i = 0; i < count; i++) {
        vectors[i + 1] = payload[i];
        length += payload[i].iov_len;
    }
    if (length > UINT32_MAX)
        return viv_fail(err, VIV_SYSTEM, "frame of %zu bytes", length);
    frame_put_header(header, type, sequence, (uint32_t)length);
    return io_write_full(fd, vectors, count + 1, deadline, err);
}

/* Bytes still missing for the frame at the front, as far as they are known. */
static size_t missing(const struct frame_reader *reader) {
    size_t have = reader->bytes.size;

    if (have < FRAME_HEADER_SIZE)
        return FRAME_HEADER_SIZE - have;
    /* The header was checked by frame_reader_next() before this is asked. */
    size_t whole = FRAME_HEADER_SIZE + (size_t)get_u32(reader->bytes.data + 12);
    return whole > have ? whole - have : 0;
}

static void drop_taken(struct frame_reader *reader) {
    if (reader->taken == 0)
        return;
    buffer_consume(&reader->bytes, reader->taken);
    reader->taken = 0;
    /* One large frame must not hold its memory for the life of the channel. */
    if (reader->bytes.size == 0 && reader->bytes.capacity > KEPT_CAPACITY)
        buffer_clear(&reader->bytes);
}

int frame_reader_fill(struct frame_reader *reader, int fd, struct viv_error *err) {
    drop_taken(reader);
    size_t wanted = missing(reader);
    if (wanted < FILL_SIZE)
        wanted = FILL_SIZE;
    if (buffer_reserve(&reader->bytes, wanted, SIZE_MAX / 2, err))
        return -1;
    for (;;) {
        ssize_t got = read(fd, reader->bytes.data + reader->bytes.size, wanted);
        if (got > 0) {
            reader->bytes.size += (size_t)got;
            return 1;
        }
        if (got == 0 || errno == ECONNRESET)
            return viv_fail(err, VIV_BAD_GATEWAY, "the other end is gone");
        if (errno == EAGAIN)
            return 0;
        if (errno != EINTR)
            return viv_fail(err, VIV_SYSTEM, "read: %m");
    }
}

int frame_reader_next(struct frame_reader *reader, struct frame *frame,
                      struct viv_error *err) {
    drop_taken(reader);
    if (reader->bytes.size < FRAME_HEADER_SIZE)
        return 0;
    const char *header = reader->bytes.data;
    uint8_t type = (uint8_t)header[5];
    uint32_t length = get_u32(header + 12);
    if (get_u32(header) != FRAME_MAGIC || header[4] != FRAME_VERSION ||
        get_u16(header + 6))
        return viv_fail(err, VIV_BAD_GATEWAY, "not a frame");
    int64_t cap = reader->cap(type);
    if (cap < 0)
        return viv_fail(err, VIV_BAD_GATEWAY, "frame of an unexpected type %u", type);
    if (length > cap)
        return viv_fail(err, VIV_BAD_GATEWAY, "frame of type %u is too long: %u", type,
                        length);
    if (reader->bytes.size < FRAME_HEADER_SIZE + (size_t)length)
        return 0;
    frame->type = type;
    frame->sequence = get_u32(header + 8);
    frame->payload = (struct slice){header + FRAME_HEADER_SIZE, length};
    reader->taken = FRAME_HEADER_SIZE + (size_t)length;
    return 1;
}

int frame_reader_wait(struct frame_reader *reader, int fd, struct frame *frame,
                      viv_time deadline, struct viv_error *err) {
    for (;;) {
        int found = frame_reader_next(reader, frame, err);
        if (found != 0)
            return found > 0 ? 0 : -1;
        if (io_wait(fd, false, deadline, err) || frame_reader_fill(reader, fd, err) < 0)
            return -1;
    }
}

size_t frame_reader_pending(const struct frame_reader *reader) {
    return reader->bytes.size - reader->taken;
}

void frame_reader_clear(struct frame_reader *reader) {
    buffer_clear(&reader->bytes);
    reader->taken = 0;
}
