/* SPDX-License-Identifier: MIT */
/*
 * Frames on a stream socket: a fixed header, then `length` bytes. Used between
 * vivarium-fcgi and a supervisor and between a supervisor and its worker; what the types
 * mean is said in session_wire.h and executor/worker_wire.h.
 *
 *     offset 0  u32  magic "VIVF"      8  u32  sequence: the number of the call
 *            4  u8   version           12 u32  length of the payload
 *            5  u8   type
 *            6  u16  flags, zero
 *
 * Numbers are little-endian. Every byte is taken as an attacker's: a header with anything
 * odd in it, or a length over the cap of its type, is an error before anything is
 * allocated, and a reader that met one never resynchronises.
 */
#ifndef VIV_FRAME_H
#define VIV_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "common/bytes.h"
#include "common/clock.h"
#include "common/error.h"

#define FRAME_HEADER_SIZE 16
#define FRAME_VERSION     1

/* The largest payload that `type` may have in one direction of one channel; -1 where the
 * type is not allowed there. */
typedef int64_t frame_cap(uint8_t type);

struct frame {
    uint8_t type;
    uint32_t sequence;
    struct slice payload; /* borrowed from the reader until its next call */
};

struct frame_reader {
    frame_cap *cap;
    struct buffer bytes;
    size_t taken; /* bytes at the front that the last frame used up */
};

/* Writes the header of a frame into `header`. */
void frame_put_header(char header[FRAME_HEADER_SIZE], uint8_t type, uint32_t sequence,
                      uint32_t length);

/* Sends one frame whose payload is the `count` (at most 7) vectors. Blocks until
 * `deadline`; fails as io_write_full(). */
int frame_send(int fd, uint8_t type, uint32_t sequence, const struct iovec *payload,
               int count, viv_time deadline, struct viv_error *err);

/* Reads what the descriptor has now. Returns 1 when bytes came, 0 when it would block, -1
 * at end of file (VIV_BAD_GATEWAY) or on failure. A blocking descriptor blocks. */
int frame_reader_fill(struct frame_reader *reader, int fd, struct viv_error *err);

/* The next whole frame. Returns 1 with *frame, 0 when more bytes are needed, -1 with
 * VIV_BAD_GATEWAY for garbage. */
int frame_reader_next(struct frame_reader *reader, struct frame *frame,
                      struct viv_error *err);

/* Waits for the next whole frame until `deadline`. Returns 0, or -1 as the two above or
 * with VIV_TIMED_OUT. */
int frame_reader_wait(struct frame_reader *reader, int fd, struct frame *frame,
                      viv_time deadline, struct viv_error *err);

/* Bytes that were read and belong to no frame that was taken. */
size_t frame_reader_pending(const struct frame_reader *reader);

void frame_reader_clear(struct frame_reader *reader);

static inline void frame_reader_clear_cleanup(struct frame_reader *reader) {
    frame_reader_clear(reader);
}

#endif
