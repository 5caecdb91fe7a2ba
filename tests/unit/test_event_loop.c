/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "executor/launcher/event_loop.h"

/* A source that counts, and takes `victim` away when it is its turn. */
struct counter {
    struct event_source source;
    struct event_loop *loop;
    int far; /* the other end of source.fd */
    int count;
    struct counter *victim;
};

static void counted(struct event_source *source) {
    struct counter *counter = (struct counter *)source;
    char byte;

    counter->count++;
    assert_true(read(source->fd, &byte, 1) >= 0);
    if (!counter->victim)
        return;
    event_loop_remove(counter->loop, &counter->victim->source);
    close(counter->victim->source.fd);
    close(counter->victim->far);
    free(counter->victim);
    counter->victim = NULL;
}

static struct counter *counter_new(struct event_loop *loop) {
    struct counter *counter = viv_xcalloc(1, sizeof *counter);
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    *counter =
        (struct counter){.source = {pair[0], counted}, .loop = loop, .far = pair[1]};
    assert_int_equal(event_loop_add(loop, &counter->source, NULL), 0);
    return counter;
}

static void counter_cleanup(struct counter **counter) {
    if (!*counter)
        return;
    event_loop_remove((*counter)->loop, &(*counter)->source);
    close((*counter)->source.fd);
    close((*counter)->far);
    free(*counter);
}

static void loop_cleanup(struct event_loop *loop) { close(loop->epoll); }

static struct event_loop loop_new(void) {
    struct event_loop loop;

    assert_int_equal(event_loop_init(&loop, NULL), 0);
    return loop;
}

static void turn(struct event_loop *loop) {
    assert_int_equal(event_loop_turn(loop, viv_now(), NULL), 0);
}

static void poke(const struct counter *counter) {
    assert_int_equal(write(counter->far, "x", 1), 1);
}

static void calls_a_source_that_is_ready(void **state) {
    CLEANUP(loop) struct event_loop loop = loop_new();
    CLEANUP(counter) struct counter *one = counter_new(&loop);
    CLEANUP(counter) struct counter *other = counter_new(&loop);

    (void)state;
    turn(&loop);
    assert_int_equal(one->count, 0);
    poke(one);
    turn(&loop);
    turn(&loop);
    assert_int_equal(one->count, 1);
    assert_int_equal(other->count, 0);
}

static void calls_one_source_a_turn_and_all_in_turn(void **state) {
    CLEANUP(loop) struct event_loop loop = loop_new();
    CLEANUP(counter) struct counter *one = counter_new(&loop);
    CLEANUP(counter) struct counter *other = counter_new(&loop);

    (void)state;
    /* One has always something; the other comes between. */
    for (int i = 0; i < 20; i++)
        poke(one);
    poke(other);
    for (int i = 1; i <= 4; i++) {
        turn(&loop);
        assert_int_equal(one->count + other->count, i);
    }
    assert_int_equal(other->count, 1);
}

static void tells_of_an_end(void **state) {
    CLEANUP(loop) struct event_loop loop = loop_new();
    CLEANUP(counter) struct counter *one = counter_new(&loop);

    (void)state;
    close_and_clear(&one->far);
    turn(&loop);
    assert_int_equal(one->count, 1);
}

/* Both are ready; the first that is called frees the other, which then is never
 * called. */
static void a_source_may_be_taken_away_by_another(void **state) {
    CLEANUP(loop) struct event_loop loop = loop_new();
    CLEANUP(counter) struct counter *one = counter_new(&loop);
    struct counter *victim = counter_new(&loop);

    (void)state;
    one->victim = victim;
    poke(one);
    turn(&loop);
    assert_null(one->victim);
    turn(&loop);
    assert_int_equal(one->count, 1);
}

static void a_removed_source_is_not_called(void **state) {
    CLEANUP(loop) struct event_loop loop = loop_new();
    CLEANUP(counter) struct counter *one = counter_new(&loop);

    (void)state;
    poke(one);
    event_loop_remove(&loop, &one->source);
    turn(&loop);
    assert_int_equal(one->count, 0);
    assert_int_equal(event_loop_add(&loop, &one->source, NULL), 0);
    turn(&loop);
    assert_int_equal(one->count, 1);
}

static void waits_until_its_deadline(void **state) {
    CLEANUP(loop) struct event_loop loop = loop_new();
    viv_time deadline = viv_now() + 30 * VIV_MS;

    (void)state;
    assert_int_equal(event_loop_turn(&loop, deadline, NULL), 0);
    assert_true(viv_now() >= deadline);
}

static void tells_what_cannot_be_watched(void **state) {
    CLEANUP(loop) struct event_loop loop = loop_new();
    struct event_source source = {-1, counted};
    struct event_loop closed = {-1};
    struct viv_error err;

    (void)state;
    assert_fails(event_loop_add(&loop, &source, &err), &err, VIV_SYSTEM, "epoll_ctl");
    assert_fails(event_loop_turn(&closed, viv_now(), &err), &err, VIV_SYSTEM,
                 "epoll_wait");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_a_source_that_is_ready),
        cmocka_unit_test(calls_one_source_a_turn_and_all_in_turn),
        cmocka_unit_test(tells_of_an_end),
        cmocka_unit_test(a_source_may_be_taken_away_by_another),
        cmocka_unit_test(a_removed_source_is_not_called),
        cmocka_unit_test(waits_until_its_deadline),
        cmocka_unit_test(tells_what_cannot_be_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
