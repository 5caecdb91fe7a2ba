/* SPDX-License-Identifier: MIT */
/* The frame reader: bytes mean the same in whatever pieces they come. The first byte of
 * an input says how they are cut. */
#include "tests/fuzz/fuzz.h"

#include "common/frame.h"
#include "common/session_wire.h"

/* Reads frames until there are no more, and adds what they were to `seen`. */
static int drain(struct frame_reader *reader, struct buffer *seen) {
    struct frame frame;
    char header[FRAME_HEADER_SIZE];
    int found;

    while ((found = frame_reader_next(reader, &frame, NULL)) > 0) {
        MUST((int64_t)frame.payload.size <= reader->cap(frame.type));
        frame_put_header(header, frame.type, frame.sequence,
                         (uint32_t)frame.payload.size);
        buffer_append(seen, header, sizeof header, SIZE_MAX, NULL);
        buffer_append(seen, frame.payload.data, frame.payload.size, SIZE_MAX, NULL);
    }
    return found;
}

/* Feeds the bytes in pieces and returns whether they ended in garbage. */
static int read_in_pieces(struct slice bytes, size_t piece, frame_cap *cap,
                          struct buffer *seen) {
    struct frame_reader reader = {.cap = cap};
    int found = 0;

    while (bytes.size > 0 && found == 0) {
        size_t taken = bytes.size < piece ? bytes.size : piece;
        found = drain(&reader, seen); /* drops what was taken before */
        buffer_append(&reader.bytes, bytes.data, taken, SIZE_MAX, NULL);
        bytes = (struct slice){bytes.data + taken, bytes.size - taken};
        if (found == 0)
            found = drain(&reader, seen);
    }
    frame_reader_clear(&reader);
    return found;
}

static void check_direction(struct slice bytes, size_t piece, frame_cap *cap) {
    struct buffer whole = {0}, pieces = {0};

    int whole_found = read_in_pieces(bytes, SIZE_MAX, cap, &whole);
    int pieces_found = read_in_pieces(bytes, piece, cap, &pieces);
    MUST(whole_found == pieces_found);
    MUST(whole.size == pieces.size && whole.size <= bytes.size);
    /* A frame that is taken is one that this end would have written. */
    MUST(whole.size == 0 || (memcmp(whole.data, pieces.data, whole.size) == 0 &&
                             memcmp(whole.data, bytes.data, whole.size) == 0));
    buffer_clear(&whole);
    buffer_clear(&pieces);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0)
        return 0;
    struct slice bytes = {(const char *)data + 1, size - 1};
    size_t piece = (size_t)data[0] + 1;

    check_direction(bytes, piece, session_cap_to_client);
    check_direction(bytes, piece, session_cap_to_supervisor);
    return 0;
}
