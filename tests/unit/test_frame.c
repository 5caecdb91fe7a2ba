/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/frame.h"
#include "common/io.h"

enum { SMALL = 1, LARGE = 2, EMPTY = 3, SMALL_CAP = 10, LARGE_CAP = 3 << 20 };

static int64_t cap(uint8_t type) {
    switch (type) {
    case SMALL:
        return SMALL_CAP;
    case LARGE:
        return LARGE_CAP;
    case EMPTY:
        return 0;
    default:
        return -1;
    }
}

struct channel {
    int near;
    int far;
    struct frame_reader reader; /* of far */
};

static struct channel channel_new(void) {
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    return (struct channel){fds[0], fds[1], {.cap = cap}};
}

static void channel_close(struct channel *channel) {
    close_and_clear(&channel->near);
    close_and_clear(&channel->far);
    frame_reader_clear(&channel->reader);
}

static int wait_frame(struct channel *channel, struct frame *frame,
                      struct viv_error *err) {
    return frame_reader_wait(&channel->reader, channel->far, frame,
                             viv_now() + 60 * VIV_SECOND, err);
}

static void send_text(const struct channel *channel, uint8_t type, uint32_t sequence,
                      const char *text) {
    struct iovec vector = {(void *)text, strlen(text)};

    assert_int_equal(
        frame_send(channel->near, type, sequence, &vector, 1, VIV_TIME_NEVER, NULL), 0);
}

static void headers_have_their_form(void **state) {
    char header[FRAME_HEADER_SIZE];

    (void)state;
    frame_put_header(header, 0xfe, UINT32_C(0x01020304), UINT32_C(0xa1a2a3a4));
    assert_memory_equal(header, "VIVF\x01\xfe\x00\x00\x04\x03\x02\x01\xa4\xa3\xa2\xa1",
                        FRAME_HEADER_SIZE);
}

static void frames_arrive_as_they_were_sent(void **state) {
    struct channel channel = channel_new();
    struct iovec parts[] = {{"ab", 2}, {"", 0}, {"cde", 3}};
    struct frame frame;

    (void)state;
    assert_int_equal(
        frame_send(channel.near, SMALL, 7, parts, COUNT_OF(parts), VIV_TIME_NEVER, NULL),
        0);
    assert_int_equal(frame_send(channel.near, EMPTY, 8, NULL, 0, VIV_TIME_NEVER, NULL),
                     0);
    send_text(&channel, SMALL, UINT32_MAX, "0123456789");
    assert_int_equal(wait_frame(&channel, &frame, NULL), 0);
    assert_int_equal(frame.type, SMALL);
    assert_int_equal(frame.sequence, 7);
    assert_slice_equal(frame.payload, "abcde");
    assert_int_equal(wait_frame(&channel, &frame, NULL), 0);
    assert_int_equal(frame.type, EMPTY);
    assert_int_equal(frame.payload.size, 0);
    assert_int_equal(wait_frame(&channel, &frame, NULL), 0);
    assert_int_equal(frame.sequence, UINT32_MAX);
    assert_slice_equal(frame.payload, "0123456789");
    channel_close(&channel);
}

static void too_many_vectors_are_refused(void **state) {
    struct channel channel = channel_new();
    struct iovec parts[8] = {0};
    struct viv_error err;

    (void)state;
    assert_int_equal(frame_send(channel.near, EMPTY, 1, parts, 7, VIV_TIME_NEVER, &err),
                     0);
    assert_fails(frame_send(channel.near, EMPTY, 1, parts, 8, VIV_TIME_NEVER, &err), &err,
                 VIV_SYSTEM, "vectors");
    channel_close(&channel);
}

/* Appends a frame of `size` bytes to a buffer. */
static void add_frame(struct buffer *out, uint8_t type, uint32_t sequence,
                      const char *payload, uint32_t size) {
    char header[FRAME_HEADER_SIZE];

    frame_put_header(header, type, sequence, size);
    assert_int_equal(buffer_append(out, header, sizeof header, SIZE_MAX, NULL), 0);
    assert_int_equal(buffer_append(out, payload, size, SIZE_MAX, NULL), 0);
}

/* Writes a buffer byte by byte. */
static void *trickle(void *context) {
    struct channel *channel = context;
    struct buffer out = {0};

    for (uint32_t i = 0; i < 50; i++)
        add_frame(&out, i % 2 ? SMALL : EMPTY, i, "abcdefghij", i % 2 ? i % 11 : 0);
    for (size_t i = 0; i < out.size; i++)
        if (write(channel->near, out.data + i, 1) != 1)
            break;
    buffer_clear(&out);
    return NULL;
}

static void single_bytes_make_frames(void **state) {
    struct channel channel = channel_new();
    struct frame frame;
    pthread_t writer;

    (void)state;
    assert_int_equal(pthread_create(&writer, NULL, trickle, &channel), 0);
    for (uint32_t i = 0; i < 50; i++) {
        assert_int_equal(wait_frame(&channel, &frame, NULL), 0);
        assert_int_equal(frame.sequence, i);
        assert_int_equal(frame.type, i % 2 ? SMALL : EMPTY);
        assert_int_equal(frame.payload.size, i % 2 ? i % 11 : 0);
        assert_memory_equal(frame.payload.data, "abcdefghij", frame.payload.size);
    }
    pthread_join(writer, NULL);
    channel_close(&channel);
}

static void *send_large(void *context) {
    struct channel *channel = context;
    char *data = viv_xmalloc(LARGE_CAP);
    struct iovec vector = {data, LARGE_CAP};

    memset(data, 'L', LARGE_CAP);
    frame_send(channel->near, LARGE, 1, &vector, 1, viv_now() + 60 * VIV_SECOND, NULL);
    frame_send(channel->near, EMPTY, 2, NULL, 0, viv_now() + 60 * VIV_SECOND, NULL);
    free(data);
    return NULL;
}

static void the_largest_frame_passes(void **state) {
    struct channel channel = channel_new();
    struct frame frame;
    pthread_t writer;

    (void)state;
    assert_int_equal(pthread_create(&writer, NULL, send_large, &channel), 0);
    assert_int_equal(wait_frame(&channel, &frame, NULL), 0);
    assert_int_equal(frame.payload.size, LARGE_CAP);
    for (size_t i = 0; i < LARGE_CAP; i += 4093)
        assert_int_equal(frame.payload.data[i], 'L');
    assert_int_equal(wait_frame(&channel, &frame, NULL), 0);
    assert_int_equal(frame.type, EMPTY);
    pthread_join(writer, NULL);
    channel_close(&channel);
}

/* A reader that holds `size` bytes which came from nowhere. */
static int next_of(const char *bytes, size_t size, struct frame *frame,
                   struct viv_error *err) {
    struct frame_reader reader = {.cap = cap};

    assert_int_equal(buffer_append(&reader.bytes, bytes, size, SIZE_MAX, NULL), 0);
    int found = frame_reader_next(&reader, frame, err);
    frame_reader_clear(&reader);
    return found;
}

static void every_odd_header_is_garbage(void **state) {
    char header[FRAME_HEADER_SIZE];
    struct frame frame;
    struct viv_error err;

    (void)state;
    for (size_t at = 0; at < 8; at++) {
        for (int flip = 1; flip < 256; flip++) {
            frame_put_header(header, EMPTY, 1, 0);
            header[at] = (char)(header[at] ^ flip);
            if (at == 5 && cap((uint8_t)header[at]) >= 0)
                continue;
            assert_fails(next_of(header, sizeof header, &frame, &err), &err,
                         VIV_BAD_GATEWAY, at == 5 ? "unexpected type" : "not a frame");
        }
    }
}

static void lengths_over_the_cap_are_garbage(void **state) {
    const uint32_t lengths[] = {SMALL_CAP + 1, 1U << 31, UINT32_MAX};
    char header[FRAME_HEADER_SIZE];
    struct frame frame;
    struct viv_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        frame_put_header(header, SMALL, 1, lengths[i]);
        assert_fails(next_of(header, sizeof header, &frame, &err), &err, VIV_BAD_GATEWAY,
                     "too long");
    }
    frame_put_header(header, EMPTY, 1, 1);
    assert_fails(next_of(header, sizeof header, &frame, &err), &err, VIV_BAD_GATEWAY, "");
    frame_put_header(header, SMALL, 1, SMALL_CAP);
    assert_int_equal(next_of(header, sizeof header, &frame, &err), 0);
}

static void parts_of_a_frame_are_not_one(void **state) {
    struct buffer out = {0};
    struct frame frame;

    (void)state;
    add_frame(&out, SMALL, 1, "abc", 3);
    for (size_t size = 0; size < out.size; size++)
        assert_int_equal(next_of(out.data, size, &frame, NULL), 0);
    assert_int_equal(next_of(out.data, out.size, &frame, NULL), 1);
    buffer_clear(&out);
}

static void the_end_is_told(void **state) {
    struct channel channel = channel_new();
    struct frame frame;
    struct viv_error err;

    (void)state;
    send_text(&channel, SMALL, 1, "abc");
    assert_int_equal(write(channel.near, "VIVF", 4), 4);
    close_and_clear(&channel.near);
    assert_int_equal(wait_frame(&channel, &frame, &err), 0);
    assert_slice_equal(frame.payload, "abc");
    assert_fails(wait_frame(&channel, &frame, &err), &err, VIV_BAD_GATEWAY, "gone");
    channel_close(&channel);
}

static void waiting_has_a_deadline(void **state) {
    struct channel channel = channel_new();
    struct frame frame;
    struct viv_error err;

    (void)state;
    assert_int_equal(write(channel.near, "VIVF", 4), 4);
    assert_fails(frame_reader_wait(&channel.reader, channel.far, &frame,
                                   viv_now() + 20 * VIV_MS, &err),
                 &err, VIV_TIMED_OUT, "");
    channel_close(&channel);
}

static void filling_tells_that_it_would_block(void **state) {
    struct channel channel = channel_new();
    struct frame frame;

    (void)state;
    assert_int_equal(io_set_nonblocking(channel.far, NULL), 0);
    assert_int_equal(frame_reader_fill(&channel.reader, channel.far, NULL), 0);
    send_text(&channel, SMALL, 1, "abc");
    assert_int_equal(frame_reader_fill(&channel.reader, channel.far, NULL), 1);
    assert_int_equal(frame_reader_next(&channel.reader, &frame, NULL), 1);
    assert_int_equal(frame_reader_next(&channel.reader, &frame, NULL), 0);
    channel_close(&channel);
}

static void pending_bytes_are_told(void **state) {
    struct channel channel = channel_new();
    struct frame frame;

    (void)state;
    assert_int_equal(frame_reader_pending(&channel.reader), 0);
    send_text(&channel, SMALL, 1, "abc");
    assert_int_equal(write(channel.near, "VIVF", 4), 4);
    assert_int_equal(wait_frame(&channel, &frame, NULL), 0);
    assert_int_equal(frame_reader_pending(&channel.reader), 4);
    channel_close(&channel);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_have_their_form),
        cmocka_unit_test(frames_arrive_as_they_were_sent),
        cmocka_unit_test(too_many_vectors_are_refused),
        cmocka_unit_test(single_bytes_make_frames),
        cmocka_unit_test(the_largest_frame_passes),
        cmocka_unit_test(every_odd_header_is_garbage),
        cmocka_unit_test(lengths_over_the_cap_are_garbage),
        cmocka_unit_test(parts_of_a_frame_are_not_one),
        cmocka_unit_test(the_end_is_told),
        cmocka_unit_test(waiting_has_a_deadline),
        cmocka_unit_test(filling_tells_that_it_would_block),
        cmocka_unit_test(pending_bytes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
