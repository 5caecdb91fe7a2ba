/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "executor/launcher/janitor.h"
#include "executor/launcher/slots.h"
#include "tests/unit/child.h"

#define SLOTS 4

/* The slots and, at the other end of their socket, a janitor of make-believe. */
struct bench {
    struct event_loop loop;
    struct slots slots;
    int socket;  /* the launcher's end */
    int janitor; /* the other one */
};

static struct bench *bench; /* of the running test */

static int set_up_socket(void **state) {
    int pair[2];

    (void)state;
    bench = viv_xcalloc(1, sizeof *bench);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    bench->socket = pair[0];
    bench->janitor = pair[1];
    bench->loop.epoll = -1;
    return 0;
}

static int set_up(void **state) {
    set_up_socket(state);
    assert_int_equal(event_loop_init(&bench->loop, NULL), 0);
    assert_int_equal(slots_init(&bench->slots, bench->socket, SLOTS, &bench->loop, NULL),
                     0);
    assert_int_equal(io_set_nonblocking(bench->janitor, NULL), 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    for (uint32_t i = 0; i < bench->slots.count; i++)
        if (bench->slots.all[i].state == SLOT_FREE ||
            bench->slots.all[i].state == SLOT_TAKEN)
            close(bench->slots.all[i].folder);
    close_fd_cleanup(&bench->loop.epoll);
    close_fd_cleanup(&bench->janitor);
    close(bench->socket);
    free(bench->slots.all);
    free(bench);
    return 0;
}

/* The slot that the janitor is asked for next; -1 when it is asked for none. */
static int64_t asked(void) {
    struct janitor_request request;
    size_t count;
    ssize_t got = io_receive_message(bench->janitor, &request, sizeof request, NULL, 0,
                                     &count, NULL);

    if (got != sizeof request)
        return -1;
    return request.slot;
}

static void say(const void *message, size_t size, int folder) {
    assert_int_equal(
        io_send_message(bench->janitor, message, size, &folder, folder >= 0, NULL), 0);
}

static void turn(void) {
    assert_int_equal(event_loop_turn(&bench->loop, viv_now(), NULL), 0);
}

/* The janitor answers with a folder; what comes of it. */
static void prepared(uint32_t slot) {
    const struct janitor_reply reply = {.slot = slot};
    CLEANUP(close_fd) int folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

    assert_true(folder >= 0);
    say(&reply, sizeof reply, folder);
    turn();
}

static void failed(uint32_t slot, const char *reason) {
    struct janitor_reply reply = {.slot = slot, .failed = 1};

    snprintf(reply.reason, sizeof reply.reason, "%s", reason);
    say(&reply, sizeof reply, -1);
    turn();
}

static void assert_asked_for(int64_t first, int64_t last) {
    for (int64_t slot = first; slot <= last; slot++)
        assert_int_equal(asked(), slot);
    assert_int_equal(asked(), -1);
}

static void no_more_are_asked_for_than_are_wanted(void **state) {
    (void)state;
    assert_asked_for(0, -1);
    slots_prepare(&bench->slots, 2);
    assert_asked_for(0, 1);
    /* What was asked for comes, and what is free is there. */
    slots_prepare(&bench->slots, 2);
    prepared(1);
    slots_prepare(&bench->slots, 2);
    assert_asked_for(0, -1);
    slots_prepare(&bench->slots, 3);
    assert_asked_for(2, 2);
    /* There are no more than there are. */
    slots_prepare(&bench->slots, UINT64_MAX);
    assert_asked_for(3, 3);
    slots_prepare(&bench->slots, 0);
    assert_asked_for(0, -1);
}

static void the_lowest_free_slot_is_taken(void **state) {
    (void)state;
    assert_int_equal(slots_take(&bench->slots), -1);
    slots_prepare(&bench->slots, 3);
    assert_int_equal(slots_take(&bench->slots), -1);
    assert_asked_for(0, 2);
    prepared(2);
    prepared(1);
    assert_int_equal(slots_take(&bench->slots), 1);
    prepared(0);
    assert_int_equal(slots_take(&bench->slots), 0);
    assert_int_equal(slots_take(&bench->slots), 2);
    assert_int_equal(slots_take(&bench->slots), -1);
    /* One that is taken is not one of those that are wanted. */
    slots_prepare(&bench->slots, 1);
    assert_asked_for(3, 3);
}

/* Skips the requests that set the scene. */
static void take_first(void) {
    slots_prepare(&bench->slots, 1);
    prepared(0);
    assert_int_equal(slots_take(&bench->slots), 0);
    assert_asked_for(0, 0);
}

static void one_that_is_given_back_is_prepared_anew(void **state) {
    (void)state;
    int before = open_descriptors();
    take_first();
    assert_int_equal(open_descriptors(), before + 1);
    slots_give_back(&bench->slots, 0);
    assert_int_equal(open_descriptors(), before);
    assert_int_equal(slots_take(&bench->slots), -1);
    slots_prepare(&bench->slots, 1);
    assert_asked_for(0, 0);
    assert_int_equal(slots_take(&bench->slots), -1);
    prepared(0);
    assert_int_equal(slots_take(&bench->slots), 0);
    assert_int_equal(open_descriptors(), before + 1);
}

/* No answer puts another folder into the place of a session's, and none leaks. */
static void an_answer_that_nobody_asked_for_is_dropped(void **state) {
    static const uint32_t wrong[] = {0, 1, SLOTS - 1, SLOTS, JANITOR_ZYGOTE};

    (void)state;
    take_first();
    int before = open_descriptors();
    const struct slot taken = bench->slots.all[0];
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        prepared(wrong[i]);
        failed(wrong[i], "not asked for");
    }
    assert_int_equal(open_descriptors(), before);
    assert_memory_equal(&bench->slots.all[0], &taken, sizeof taken);
    assert_int_equal(slots_take(&bench->slots), -1);
    assert_int_equal(bench->slots.failures, 0);
    assert_string_equal(bench->slots.reason, "");
    assert_false(bench->slots.lost);
}

static void a_failure_is_tried_again_after_a_pause(void **state) {
    viv_time last = 0;

    (void)state;
    slots_prepare(&bench->slots, 1);
    for (int i = 0; i < 12; i++) {
        assert_asked_for(0, 0);
        viv_time now = viv_now();
        failed(0, "the disk is full");
        assert_string_equal(bench->slots.reason, "the disk is full");
        struct slot *slot = &bench->slots.all[0];
        viv_time wait = slot->not_before - now;
        assert_true(wait >= 100 * VIV_MS && wait >= last - VIV_SECOND);
        assert_true(wait < 60 * VIV_SECOND);
        last = wait;
        assert_int_equal(slots_take(&bench->slots), -1);
        slot->not_before = viv_after_ms(60000);
        for (uint32_t other = 1; other < SLOTS; other++)
            bench->slots.all[other].not_before = slot->not_before;
        slots_prepare(&bench->slots, 1);
        assert_asked_for(0, -1);
        slot->not_before = viv_now();
        slots_prepare(&bench->slots, 1);
    }
    assert_true(last >= 9 * VIV_SECOND);
    prepared(0);
    assert_int_equal(bench->slots.failures, 0);
    assert_string_equal(bench->slots.reason, "");
    assert_int_equal(slots_take(&bench->slots), 0);
}

/* Descriptors that run out are no reason to give the janitor up. */
static void a_folder_that_finds_no_room_is_asked_for_again(void **state) {
    const struct janitor_reply reply = {.slot = 0};
    struct rlimit before, none;

    (void)state;
    slots_prepare(&bench->slots, 1);
    assert_asked_for(0, 0);
    int folder = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(folder >= 0);
    say(&reply, sizeof reply, folder);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3; /* all that are open stay open */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    turn();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(folder);
    assert_false(bench->slots.lost);
    assert_string_equal(bench->slots.reason, "too many open files");
    bench->slots.all[0].not_before = 0;
    slots_prepare(&bench->slots, 1);
    assert_asked_for(0, 0);
    prepared(0);
    assert_int_equal(slots_take(&bench->slots), 0);
}

/* One slot that cannot be prepared, with what its last session left, does not hold up the
 * others. */
static void another_slot_is_asked_for_in_place_of_a_failed_one(void **state) {
    (void)state;
    slots_prepare(&bench->slots, 1);
    assert_asked_for(0, 0);
    failed(0, "files keep appearing");
    slots_prepare(&bench->slots, 1);
    assert_asked_for(1, 1);
    prepared(1);
    assert_int_equal(slots_take(&bench->slots), 1);
}

static void the_reason_need_not_end(void **state) {
    struct janitor_reply reply = {.slot = 0, .failed = 1};

    (void)state;
    memset(reply.reason, 'x', sizeof reply.reason);
    slots_prepare(&bench->slots, 1);
    say(&reply, sizeof reply, -1);
    turn();
    assert_int_equal(strlen(bench->slots.reason), JANITOR_REASON_MAX - 1);
}

static void a_janitor_that_ends_is_lost(void **state) {
    (void)state;
    turn();
    assert_false(bench->slots.lost);
    /* A wake-up for nothing. */
    bench->slots.source.ready(&bench->slots.source);
    assert_false(bench->slots.lost);
    close_and_clear(&bench->janitor);
    turn();
    assert_true(bench->slots.lost);
}

static void one_that_does_not_speak_as_it_should_is_lost(void **state) {
    const struct janitor_reply replies[2] = {{.slot = 0}};
    static const size_t sizes[] = {1, 4, sizeof *replies - 1, sizeof *replies + 1};

    (void)state;
    slots_prepare(&bench->slots, 1);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        int before = open_descriptors();
        bench->slots.lost = false;
        say(replies, sizes[i], bench->socket);
        turn();
        assert_true(bench->slots.lost);
        assert_int_equal(open_descriptors(), before);
    }
    assert_int_equal(slots_take(&bench->slots), -1);
}

/* Requests that do not fit into the socket are made later. */
static void a_busy_janitor_is_asked_later(void **state) {
    int few = 1, sent = 0;

    (void)state;
    assert_int_equal(setsockopt(bench->socket, SOL_SOCKET, SO_SNDBUF, &few, sizeof few),
                     0);
    while (io_send_message(bench->socket, "", 1, NULL, 0, NULL) == 0)
        sent++;
    slots_prepare(&bench->slots, 2);
    assert_int_equal(bench->slots.all[0].state, SLOT_UNPREPARED);
    for (char byte; sent > 0; sent--)
        assert_int_equal(read(bench->janitor, &byte, 1), 1);
    assert_asked_for(0, -1);
    slots_prepare(&bench->slots, 2);
    assert_asked_for(0, 1);
}

/* ---- before the loop ---- */

static void waits_for_a_folder(void **state) {
    const struct janitor_reply reply = {.slot = JANITOR_ZYGOTE}, second = {.slot = 2};

    (void)state;
    int before = open_descriptors();
    say(&reply, sizeof reply, bench->janitor);
    CLEANUP(close_fd) int folder = slots_ask_for_zygote(bench->socket, NULL);
    assert_true(folder >= 0);
    assert_int_equal(asked(), JANITOR_ZYGOTE);
    say(&second, sizeof second, bench->janitor);
    CLEANUP(close_fd) int other = slots_ask(bench->socket, 2, NULL);
    assert_true(other >= 0);
    assert_int_equal(asked(), 2);
    assert_int_equal(open_descriptors(), before + 2);
}

static void tells_why_there_is_no_folder(void **state) {
    struct janitor_reply reply = {.slot = 1, .failed = 1, .reason = "no room"};
    struct viv_error err;

    (void)state;
    int before = open_descriptors();
    say(&reply, sizeof reply, -1);
    assert_fails(slots_ask(bench->socket, 1, &err), &err, VIV_SYSTEM, "no room");
    say(&reply, sizeof reply - 1, bench->janitor);
    assert_fails(slots_ask(bench->socket, 1, &err), &err, VIV_BAD_GATEWAY,
                 "the janitor is gone");
    assert_int_equal(open_descriptors(), before);
    close_and_clear(&bench->janitor);
    assert_int_equal(slots_ask(bench->socket, 1, &err), -1);
}

#define TEST(name)    cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define EARLIER(name) cmocka_unit_test_setup_teardown(name, set_up_socket, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(no_more_are_asked_for_than_are_wanted),
        TEST(the_lowest_free_slot_is_taken),
        TEST(one_that_is_given_back_is_prepared_anew),
        TEST(an_answer_that_nobody_asked_for_is_dropped),
        TEST(a_failure_is_tried_again_after_a_pause),
        TEST(a_folder_that_finds_no_room_is_asked_for_again),
        TEST(another_slot_is_asked_for_in_place_of_a_failed_one),
        TEST(the_reason_need_not_end),
        TEST(a_janitor_that_ends_is_lost),
        TEST(one_that_does_not_speak_as_it_should_is_lost),
        TEST(a_busy_janitor_is_asked_later),
        EARLIER(waits_for_a_folder),
        EARLIER(tells_why_there_is_no_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
