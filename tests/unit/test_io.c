/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"

/* A pair of connected sockets of `type`. */
struct pair {
    int near;
    int far;
};

static struct pair pair_new(int type) {
    int fds[2];

    assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds), 0);
    return (struct pair){fds[0], fds[1]};
}

static void pair_close(struct pair *pair) {
    close_and_clear(&pair->near);
    close_and_clear(&pair->far);
}

static int open_descriptors(void) {
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void waits_until_the_deadline(void **state) {
    struct pair pair = pair_new(SOCK_STREAM);
    struct viv_error err;

    (void)state;
    assert_fails(io_wait(pair.near, false, viv_now() + 20 * VIV_MS, &err), &err,
                 VIV_TIMED_OUT, "deadline");
    assert_fails(io_wait(pair.near, false, viv_now() - 1, &err), &err, VIV_TIMED_OUT, "");
    assert_int_equal(io_wait(pair.near, true, VIV_TIME_NEVER, &err), 0);
    assert_int_equal(write(pair.far, "x", 1), 1);
    assert_int_equal(io_wait(pair.near, false, VIV_TIME_NEVER, &err), 0);
    pair_close(&pair);
}

static void makes_descriptors_non_blocking(void **state) {
    struct pair pair = pair_new(SOCK_STREAM);
    char byte;
    struct viv_error err;

    (void)state;
    assert_int_equal(io_set_nonblocking(pair.near, &err), 0);
    assert_true(fcntl(pair.near, F_GETFL) & O_NONBLOCK);
    assert_int_equal(read(pair.near, &byte, 1), -1);
    assert_fails(io_set_nonblocking(-1, &err), &err, VIV_SYSTEM, "fcntl");
    pair_close(&pair);
}

static void *read_everything(void *context) {
    int fd = *(int *)context;
    size_t *total = viv_xcalloc(1, sizeof *total);
    char block[4096];
    ssize_t got;

    while ((got = read(fd, block, sizeof block)) > 0)
        *total += (size_t)got;
    return total;
}

static void writes_more_than_a_socket_holds(void **state) {
    struct pair pair = pair_new(SOCK_STREAM);
    const size_t size = (size_t)4 << 20;
    CLEANUP(free_ptr) char *data = viv_xcalloc(1, size);
    struct iovec vectors[] = {{data, 0}, {data, size}, {data, 0}, {data, 5}, {data, 0}};
    pthread_t reader;
    void *total;

    (void)state;
    assert_int_equal(pthread_create(&reader, NULL, read_everything, &pair.far), 0);
    assert_int_equal(io_write_full(pair.near, vectors, COUNT_OF(vectors),
                                   viv_now() + 60 * VIV_SECOND, NULL),
                     0);
    close_and_clear(&pair.near);
    pthread_join(reader, &total);
    assert_int_equal(*(size_t *)total, size + 5);
    free(total);
    pair_close(&pair);
}

static void stops_writing_at_the_deadline(void **state) {
    struct pair pair = pair_new(SOCK_STREAM);
    const size_t size = (size_t)4 << 20;
    CLEANUP(free_ptr) char *data = viv_xcalloc(1, size);
    struct iovec vector = {data, size};
    struct viv_error err;

    (void)state;
    assert_fails(io_write_full(pair.near, &vector, 1, viv_now() + 20 * VIV_MS, &err),
                 &err, VIV_TIMED_OUT, "");
    pair_close(&pair);
}

static void survives_a_reader_that_left(void **state) {
    struct pair pair = pair_new(SOCK_STREAM);
    struct iovec vector = {"x", 1};
    struct viv_error err;

    (void)state;
    close_and_clear(&pair.far);
    /* A SIGPIPE would end the test here. */
    assert_fails(io_write_full(pair.near, &vector, 1, VIV_TIME_NEVER, &err), &err,
                 VIV_BAD_GATEWAY, "gone");
    pair_close(&pair);
}

static void messages_carry_descriptors(void **state) {
    struct pair pair = pair_new(SOCK_SEQPACKET);
    int ends[2], received[IO_FDS_MAX];
    size_t count;
    char text[8];
    struct viv_error err;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(io_send_message(pair.near, "hello", 5, ends, 2, &err), 0);
    assert_int_equal(io_receive_message(pair.far, text, sizeof text, received, IO_FDS_MAX,
                                        &count, &err),
                     5);
    assert_memory_equal(text, "hello", 5);
    assert_int_equal(count, 2);
    assert_true(fcntl(received[0], F_GETFD) & FD_CLOEXEC);
    assert_int_equal(write(received[1], "y", 1), 1);
    assert_int_equal(read(ends[0], text, 1), 1);
    assert_int_equal(text[0], 'y');
    for (int i = 0; i < 2; i++) {
        close(ends[i]);
        close(received[i]);
    }
    pair_close(&pair);
}

static void messages_keep_their_borders(void **state) {
    struct pair pair = pair_new(SOCK_SEQPACKET);
    size_t count;
    char text[8];
    struct viv_error err;

    (void)state;
    assert_int_equal(io_send_message(pair.near, "one", 3, NULL, 0, &err), 0);
    assert_int_equal(io_send_message(pair.near, "three", 5, NULL, 0, &err), 0);
    assert_int_equal(
        io_receive_message(pair.far, text, sizeof text, NULL, 0, &count, &err), 3);
    assert_int_equal(
        io_receive_message(pair.far, text, sizeof text, NULL, 0, &count, &err), 5);
    assert_int_equal(count, 0);
    close_and_clear(&pair.near);
    assert_int_equal(
        io_receive_message(pair.far, text, sizeof text, NULL, 0, &count, &err), 0);
    pair_close(&pair);
}

/* Sends a message with `sent` descriptors to a reader that takes `fds_max` of them and
 * four bytes: it must fail and leave no descriptor open. */
static void refuses_message(const char *text, size_t sent, size_t fds_max) {
    struct pair pair = pair_new(SOCK_SEQPACKET);
    int fds[IO_FDS_MAX], received[IO_FDS_MAX];
    size_t count = 99;
    char room[4];
    struct viv_error err;

    for (size_t i = 0; i < sent; i++)
        fds[i] = pair.near;
    int before = open_descriptors();
    assert_int_equal(io_send_message(pair.near, text, strlen(text), fds, sent, &err), 0);
    assert_fails(
        io_receive_message(pair.far, room, sizeof room, received, fds_max, &count, &err),
        &err, VIV_BAD_GATEWAY, "too long or with too many");
    assert_int_equal(count, 0);
    assert_int_equal(open_descriptors(), before);
    pair_close(&pair);
}

static void refuses_messages_over_their_bounds(void **state) {
    (void)state;
    refuses_message("hello", 0, 0);
    refuses_message("hello", 3, IO_FDS_MAX);
    refuses_message("abc", 1, 0);
    refuses_message("abc", 5, 4);
    refuses_message("abc", IO_FDS_MAX, 1);
}

static void sending_never_blocks(void **state) {
    struct pair pair = pair_new(SOCK_SEQPACKET);
    int fds[IO_FDS_MAX + 1] = {0};
    struct viv_error err;
    int sent = 0;

    (void)state;
    while (sent < 1000000 && io_send_message(pair.near, "x", 1, NULL, 0, &err) == 0)
        sent++;
    assert_true(sent > 0 && sent < 1000000);
    assert_int_equal(err.code, VIV_UNAVAILABLE);
    assert_fails(io_send_message(pair.near, "x", 1, fds, IO_FDS_MAX + 1, &err), &err,
                 VIV_SYSTEM, "too many descriptors");
    close_and_clear(&pair.far);
    assert_fails(io_send_message(pair.near, "x", 1, NULL, 0, &err), &err, VIV_BAD_GATEWAY,
                 "gone");
    pair_close(&pair);
}

static void receiving_can_find_nothing(void **state) {
    struct pair pair = pair_new(SOCK_SEQPACKET | SOCK_NONBLOCK);
    size_t count;
    char text[4];
    struct viv_error err;

    (void)state;
    assert_fails(io_receive_message(pair.far, text, sizeof text, NULL, 0, &count, &err),
                 &err, VIV_UNAVAILABLE, "nothing");
    pair_close(&pair);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_until_the_deadline),
        cmocka_unit_test(makes_descriptors_non_blocking),
        cmocka_unit_test(writes_more_than_a_socket_holds),
        cmocka_unit_test(stops_writing_at_the_deadline),
        cmocka_unit_test(survives_a_reader_that_left),
        cmocka_unit_test(messages_carry_descriptors),
        cmocka_unit_test(messages_keep_their_borders),
        cmocka_unit_test(refuses_messages_over_their_bounds),
        cmocka_unit_test(sending_never_blocks),
        cmocka_unit_test(receiving_can_find_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
