/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/session_wire.h"
#include "executor/supervisor/client_channel.h"
#include "tests/unit/child.h"

/* A channel with the client at its other end. */
struct bench {
    struct client_channel channel;
    struct frame_reader reader; /* the client's */
    int client;
};

static void open_channel(struct bench *bench) {
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    client_channel_open(&bench->channel, pair[0]);
    bench->client = pair[1];
}

static struct bench bench_new(void) {
    struct bench bench = {.reader = {.cap = session_cap_to_client}};

    client_channel_init(&bench.channel);
    open_channel(&bench);
    return bench;
}

static void bench_cleanup(struct bench *bench) {
    client_channel_close(&bench->channel);
    frame_reader_clear(&bench->reader);
    close_fd_cleanup(&bench->client);
}

/* Whether the client has something to read now. */
static bool something_came(const struct bench *bench) {
    char byte;

    return recv(bench->client, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
}

static void assert_next(struct bench *bench, uint8_t type, uint32_t sequence,
                        const char *payload) {
    struct frame frame;

    assert_int_equal(frame_reader_wait(&bench->reader, bench->client, &frame,
                                       viv_after_ms(60000), NULL),
                     0);
    assert_int_equal(frame.type, type);
    assert_int_equal(frame.sequence, sequence);
    assert_slice_equal(frame.payload, payload);
}

static int send_text(struct bench *bench, uint8_t type, const char *first,
                     const char *second) {
    return client_channel_send(&bench->channel, type, 7, slice_of(first),
                               slice_of(second));
}

static void small_frames_wait_for_each_other(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    assert_int_equal(send_text(&bench, SESSION_OUTPUT, "\1", "hello"), 0);
    assert_int_equal(send_text(&bench, SESSION_FILE, "name", ""), 0);
    assert_false(something_came(&bench));
    assert_int_equal(client_channel_flush(&bench.channel), 0);
    assert_next(&bench, SESSION_OUTPUT, 7, "\1hello");
    assert_next(&bench, SESSION_FILE, 7, "name");
    assert_int_equal(bench.channel.queue.size, 0);
}

static void a_large_frame_comes_behind_what_waited(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();
    CLEANUP(free_ptr) char *large = viv_xmalloc(100001);

    (void)state;
    memset(large, 'x', 100000);
    large[100000] = '\0';
    assert_int_equal(send_text(&bench, SESSION_FILE, "name", ""), 0);
    assert_int_equal(send_text(&bench, SESSION_DATA, large, ""), 0);
    assert_true(something_came(&bench));
    assert_next(&bench, SESSION_FILE, 7, "name");
    assert_next(&bench, SESSION_DATA, 7, large);
}

/* Output is queued while the code runs, whether or not the client reads. */
static void what_the_socket_does_not_take_stays_queued(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();
    CLEANUP(free_ptr) char *block = viv_xcalloc(1, 60000);
    const struct slice number = SLICE("\1");
    struct frame frame;

    (void)state;
    for (int i = 0; i < 50; i++)
        assert_int_equal(client_channel_queue(&bench.channel, SESSION_OUTPUT, 7, number,
                                              (struct slice){block, 60000}),
                         0);
    client_channel_flush_some(&bench.channel);
    assert_true(bench.channel.queue.size > 0);
    for (int i = 0; i < 50; i++) {
        while (frame_reader_next(&bench.reader, &frame, NULL) == 0) {
            client_channel_flush_some(&bench.channel);
            assert_int_equal(frame_reader_fill(&bench.reader, bench.client, NULL), 1);
        }
        assert_int_equal(frame.payload.size, 60001);
    }
    assert_int_equal(bench.channel.queue.size, 0);
    assert_false(something_came(&bench));
}

static void nothing_is_sent_to_a_client_that_is_gone(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    close_and_clear(&bench.client);
    assert_int_equal(send_text(&bench, SESSION_FILE, "name", ""), 0); /* queued only */
    assert_int_equal(client_channel_flush(&bench.channel), -1);
    assert_int_equal(bench.channel.fd, -1);
    assert_int_equal(bench.channel.queue.size, 0);
    assert_int_equal(send_text(&bench, SESSION_FILE, "name", ""), -1);
    assert_int_equal(client_channel_flush(&bench.channel), -1);
    client_channel_flush_some(&bench.channel);
}

static void a_client_that_left_is_noticed_while_code_runs(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    close_and_clear(&bench.client);
    assert_int_equal(send_text(&bench, SESSION_FILE, "name", ""), 0);
    client_channel_flush_some(&bench.channel);
    assert_int_equal(bench.channel.fd, -1);
    assert_int_equal(bench.channel.queue.size, 0);
}

/* The next client sees nothing of what was for the one before, and nothing of what that
 * one sent is taken for its own. */
static void a_new_channel_begins_anew(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();
    struct frame frame;

    (void)state;
    int old = bench.client;
    assert_int_equal(send_text(&bench, SESSION_FILE, "old", ""), 0);
    assert_int_equal(write(old, "half of a header", 10), 10);
    assert_int_equal(frame_reader_fill(&bench.channel.reader, bench.channel.fd, NULL), 1);
    open_channel(&bench);
    char byte;
    assert_int_equal(read(old, &byte, 1), 0);
    close(old);
    assert_int_equal(frame_reader_pending(&bench.channel.reader), 0);
    assert_int_equal(frame_reader_next(&bench.channel.reader, &frame, NULL), 0);
    assert_int_equal(client_channel_flush(&bench.channel), 0);
    assert_false(something_came(&bench));
    assert_int_equal(send_text(&bench, SESSION_FILE, "new", ""), 0);
    assert_int_equal(client_channel_flush(&bench.channel), 0);
    assert_next(&bench, SESSION_FILE, 7, "new");
}

static void its_descriptor_does_not_block(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    assert_true(fcntl(bench.channel.fd, F_GETFL) & O_NONBLOCK);
    assert_false(fcntl(bench.client, F_GETFL) & O_NONBLOCK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_frames_wait_for_each_other),
        cmocka_unit_test(a_large_frame_comes_behind_what_waited),
        cmocka_unit_test(what_the_socket_does_not_take_stays_queued),
        cmocka_unit_test(nothing_is_sent_to_a_client_that_is_gone),
        cmocka_unit_test(a_client_that_left_is_noticed_while_code_runs),
        cmocka_unit_test(a_new_channel_begins_anew),
        cmocka_unit_test(its_descriptor_does_not_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
