/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "executor/supervisor/output.h"
#include "tests/unit/child.h"

/* A running call, a worker's pipes, and what its client was sent. */
struct bench {
    struct worker_process worker;
    struct call call;
    struct client_channel channel;
    int pipes[2]; /* the worker's ends */
    int client;
    struct frame_reader reader;
    struct buffer got[2]; /* the streams at the client */
};

static struct bench bench_new(uint32_t limit) {
    struct bench bench = {
        .call = {.phase = CALL_RUNNING, .sequence = 3, .exec = {.max_output = limit}},
        .reader = {.cap = session_cap_to_client},
    };
    int pair[2];

    worker_process_init(&bench.worker);
    for (int stream = 0; stream < 2; stream++) {
        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        bench.worker.output[stream] = pair[0];
        bench.pipes[stream] = pair[1];
        assert_int_equal(io_set_nonblocking(pair[0], NULL), 0);
    }
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    client_channel_init(&bench.channel);
    client_channel_open(&bench.channel, pair[0]);
    bench.client = pair[1];
    return bench;
}

static void bench_cleanup(struct bench *bench) {
    worker_process_forget(&bench->worker);
    client_channel_close(&bench->channel);
    frame_reader_clear(&bench->reader);
    for (int stream = 0; stream < 2; stream++) {
        close_fd_cleanup(&bench->pipes[stream]);
        buffer_clear(&bench->got[stream]);
    }
    close_fd_cleanup(&bench->client);
}

static void put(const struct bench *bench, int stream, const char *text) {
    assert_int_equal(write(bench->pipes[stream], text, strlen(text)),
                     (ssize_t)strlen(text));
}

static void pump_all(struct bench *bench) {
    output_pump_all(&bench->worker, &bench->call, &bench->channel);
}

/* Takes all that was sent to the client. */
static void receive(struct bench *bench) {
    struct frame frame;

    if (bench->channel.queue.size == 0)
        return;
    assert_int_equal(client_channel_flush(&bench->channel), 0);
    assert_int_equal(frame_reader_fill(&bench->reader, bench->client, NULL), 1);
    while (frame_reader_next(&bench->reader, &frame, NULL) == 1) {
        assert_int_equal(frame.type, SESSION_OUTPUT);
        assert_int_equal(frame.sequence, 3);
        assert_in_range(frame.payload.data[0], 1, 2);
        assert_true(frame.payload.size > 1);
        buffer_append(&bench->got[frame.payload.data[0] - 1], frame.payload.data + 1,
                      frame.payload.size - 1, SIZE_MAX / 2, NULL);
    }
}

static void assert_got(struct bench *bench, const char *out, const char *error) {
    receive(bench);
    assert_slice_equal((struct slice){bench->got[0].data, bench->got[0].size}, out);
    assert_slice_equal((struct slice){bench->got[1].data, bench->got[1].size}, error);
}

static void both_streams_reach_the_client(void **state) {
    CLEANUP(bench) struct bench bench = bench_new(100);

    (void)state;
    put(&bench, 0, "one ");
    put(&bench, 1, "error");
    output_pump(&bench.worker, 0, &bench.call, &bench.channel);
    assert_got(&bench, "one ", "");
    put(&bench, 0, "two");
    pump_all(&bench);
    assert_got(&bench, "one two", "error");
    assert_false(bench.call.output[0].truncated);
}

static void each_stream_has_its_limit(void **state) {
    CLEANUP(bench) struct bench bench = bench_new(5);

    (void)state;
    put(&bench, 0, "123");
    pump_all(&bench);
    put(&bench, 0, "4567");
    put(&bench, 1, "12345");
    pump_all(&bench);
    put(&bench, 0, "8");
    pump_all(&bench);
    assert_got(&bench, "12345", "12345");
    assert_true(bench.call.output[0].truncated);
    assert_false(bench.call.output[1].truncated);
}

/* A worker that wrote too much is not held up by a full pipe. */
static void what_is_over_the_limit_is_read_all_the_same(void **state) {
    CLEANUP(bench) struct bench bench = bench_new(1);
    char block[4096] = {'x'};
    int written = 0;

    (void)state;
    assert_int_equal(io_set_nonblocking(bench.pipes[0], NULL), 0);
    for (int i = 0; i < 1000; i++)
        if (write(bench.pipes[0], block, sizeof block) == sizeof block)
            written++;
        else
            pump_all(&bench);
    assert_true(written > 900);
    receive(&bench);
    assert_int_equal(bench.got[0].size, 1);
}

static void what_comes_between_calls_is_dropped(void **state) {
    static const enum call_phase phases[] = {CALL_NONE, CALL_RECEIVING, CALL_WAITING};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(phases); i++) {
        CLEANUP(bench) struct bench bench = bench_new(100);
        bench.call.phase = phases[i];
        put(&bench, 0, "late");
        pump_all(&bench);
        bench.call.phase = CALL_RUNNING;
        put(&bench, 0, "new");
        pump_all(&bench);
        assert_got(&bench, "new", "");
    }
}

static void what_a_client_cannot_have_is_dropped(void **state) {
    CLEANUP(bench) struct bench bench = bench_new(100);

    (void)state;
    bench.call.client_gone = true;
    put(&bench, 0, "x");
    pump_all(&bench);
    assert_int_equal(bench.channel.queue.size, 0);
    client_channel_close(&bench.channel);
    bench.call.client_gone = false;
    put(&bench, 0, "x");
    pump_all(&bench);
    assert_true(bench.call.output[0].truncated);
}

static void an_end_closes_the_stream(void **state) {
    CLEANUP(bench) struct bench bench = bench_new(100);

    (void)state;
    put(&bench, 1, "last");
    close_and_clear(&bench.pipes[0]);
    close_and_clear(&bench.pipes[1]);
    for (int i = 0; i < 2; i++)
        for (int stream = 0; stream < 2; stream++)
            output_pump(&bench.worker, stream, &bench.call, &bench.channel);
    assert_int_equal(bench.worker.output[0], -1);
    assert_int_equal(bench.worker.output[1], -1);
    pump_all(&bench);
    assert_got(&bench, "", "last");
}

static void an_empty_pipe_is_no_end(void **state) {
    CLEANUP(bench) struct bench bench = bench_new(100);

    (void)state;
    output_pump(&bench.worker, 0, &bench.call, &bench.channel);
    pump_all(&bench);
    assert_true(bench.worker.output[0] >= 0);
    put(&bench, 0, "x");
    pump_all(&bench);
    assert_got(&bench, "x", "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_streams_reach_the_client),
        cmocka_unit_test(each_stream_has_its_limit),
        cmocka_unit_test(what_is_over_the_limit_is_read_all_the_same),
        cmocka_unit_test(what_comes_between_calls_is_dropped),
        cmocka_unit_test(what_a_client_cannot_have_is_dropped),
        cmocka_unit_test(an_end_closes_the_stream),
        cmocka_unit_test(an_empty_pipe_is_no_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
