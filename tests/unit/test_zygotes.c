/* SPDX-License-Identifier: MIT */
/*
 * The launcher's zygotes, with processes of make-believe: the functions of
 * zygote_process.h are defined here and take the place of those in the library.
 */
#include "tests/unit/unit.h"

#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "executor/launcher/zygotes.h"
#include "tests/unit/child.h"

#define STARTS_MAX 8

struct bench {
    struct settings settings;
    struct zygote_setup setup;
    struct event_loop loop;
    struct zygotes zygotes;
    int far
        [STARTS_MAX]; /* the zygotes' ends of their sockets, in order of their starts */
    pid_t pids[STARTS_MAX];
    int starts;
    bool cannot_start;
    uint64_t not_made; /* the sandbox that was told last */
    int open_then;     /* descriptors that were open when it was told */
};

static struct bench *bench; /* of the running test */

/* ---- in place of zygote_process.c ---- */

int zygote_process_start(struct zygote_process *zygote, const struct zygote_setup *setup,
                         struct viv_error *err) {
    int pair[2];

    if (bench->cannot_start)
        return viv_fail(err, VIV_SYSTEM, "it must not start");
    assert_true(bench->starts < STARTS_MAX);
    assert_int_equal(
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close_range(3, ~0U, 0); /* as a zygote does: the sockets of others, too */
        for (;;)
            pause();
    }
    bench->pids[bench->starts] = pid;
    bench->far[bench->starts++] = pair[1];
    *zygote = (struct zygote_process){.setup = setup, .pid = pid, .socket = pair[0]};
    return 0;
}

int zygote_process_ask(struct zygote_process *zygote, struct spawn_request *request,
                       const int fds[SPAWN_FD_COUNT], struct viv_error *err) {
    return io_send_message(zygote->socket, request, sizeof *request, fds, SPAWN_FD_COUNT,
                           err);
}

enum zygote_message zygote_process_receive(struct zygote_process *zygote,
                                           struct spawn_reply *reply,
                                           struct viv_error *err) {
    size_t count;

    if (io_receive_message(zygote->socket, reply, sizeof *reply, NULL, 0, &count, err) <=
        0)
        return ZYGOTE_FAILS;
    if (reply->sandbox != 0)
        return ZYGOTE_ANSWERS;
    zygote->ready = true;
    return ZYGOTE_IS_READY;
}

void zygote_process_close(struct zygote_process *zygote) {
    close_and_clear(&zygote->socket);
    zygote->ready = false;
}

/* ---- the bench ---- */

static void note_not_made(void *context, uint64_t sandbox, int error) {
    assert_ptr_equal(context, bench);
    assert_int_equal(error, EAGAIN);
    bench->open_then = open_descriptors();
    bench->not_made = sandbox;
}

static int set_up(void **state) {
    (void)state;
    bench = viv_xcalloc(1, sizeof *bench);
    settings_init(&bench->settings);
    bench->setup.settings = &bench->settings;
    assert_int_equal(event_loop_init(&bench->loop, NULL), 0);
    zygotes_init(&bench->zygotes, &bench->setup, &bench->loop, note_not_made, bench);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    for (int i = 0; i < bench->starts; i++) {
        kill(bench->pids[i], SIGKILL);
        waitpid(bench->pids[i], NULL, 0);
        zygotes_reaped(&bench->zygotes, bench->pids[i]);
        close(bench->far[i]);
    }
    for (uint64_t sandbox = 1; sandbox <= 10; sandbox++)
        zygotes_forget(&bench->zygotes, sandbox);
    close(bench->loop.epoll);
    settings_clear(&bench->settings);
    free(bench);
    return 0;
}

static int spawn(uint64_t sandbox) {
    int fds[SPAWN_FD_COUNT];

    for (int i = 0; i < SPAWN_FD_COUNT; i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int failed = zygotes_spawn(&bench->zygotes, sandbox, fds, NULL);
    for (int i = 0; failed && i < SPAWN_FD_COUNT; i++)
        close(fds[i]);
    return failed;
}

/* The sandbox of the next request that a zygote has; 0: none. */
static uint64_t asked(int zygote) {
    struct spawn_request request;
    int fds[SPAWN_FD_COUNT];
    size_t count;

    if (io_receive_message(bench->far[zygote], &request, sizeof request, fds,
                           SPAWN_FD_COUNT, &count, NULL) != sizeof request)
        return 0;
    assert_int_equal(count, SPAWN_FD_COUNT);
    for (int i = 0; i < SPAWN_FD_COUNT; i++)
        close(fds[i]);
    return request.sandbox;
}

/* What a zygote says, with what comes of it; sandbox 0: it is ready. */
static void say(int zygote, uint64_t sandbox, int failed) {
    const struct spawn_reply reply = {sandbox, failed};

    assert_int_equal(
        io_send_message(bench->far[zygote], &reply, sizeof reply, NULL, 0, NULL), 0);
    assert_int_equal(event_loop_turn(&bench->loop, viv_now(), NULL), 0);
}

static void start_ready(void) {
    zygotes_keep_time(&bench->zygotes);
    say(bench->starts - 1, 0, 0);
}

/* Whether the launcher's end of a zygote's socket is closed; waits for that. */
static bool is_closed(int zygote) {
    char byte;

    return io_wait(bench->far[zygote], false, viv_after_ms(60000), NULL) == 0 &&
           recv(bench->far[zygote], &byte, 1, MSG_PEEK) == 0;
}

static bool is_open(int zygote) {
    char byte;

    return recv(bench->far[zygote], &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

static bool was_killed(int zygote) {
    siginfo_t end = {0};

    return waitid(P_PID, (id_t)bench->pids[zygote], &end, WEXITED | WNOWAIT) == 0 &&
           end.si_code == CLD_KILLED;
}

/* The launcher's reaper. */
static void reap(int zygote) {
    kill(bench->pids[zygote], SIGKILL);
    assert_int_equal(waitpid(bench->pids[zygote], NULL, 0), bench->pids[zygote]);
    assert_true(zygotes_reaped(&bench->zygotes, bench->pids[zygote]));
}

/* ---- tests ---- */

static void requests_wait_for_a_zygote(void **state) {
    (void)state;
    assert_int_equal(spawn(1), 0);
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 1);
    assert_int_equal(spawn(2), 0);
    assert_int_equal(asked(0), 0);
    say(0, 0, 0);
    assert_int_equal(asked(0), 1);
    assert_int_equal(asked(0), 2);
    assert_int_equal(asked(0), 0);
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 1);
}

static void few_requests_are_under_way(void **state) {
    (void)state;
    start_ready();
    for (uint64_t sandbox = 1; sandbox <= 10; sandbox++)
        assert_int_equal(spawn(sandbox), 0);
    for (uint64_t sandbox = 1; sandbox <= 8; sandbox++)
        assert_int_equal(asked(0), sandbox);
    assert_int_equal(asked(0), 0);
    say(0, 1, 0);
    assert_int_equal(asked(0), 9);
    assert_int_equal(asked(0), 0);
    say(0, 2, 0);
    assert_int_equal(asked(0), 10);
}

static void an_answer_closes_the_descriptors(void **state) {
    (void)state;
    start_ready();
    int before = open_descriptors();
    assert_int_equal(spawn(1), 0);
    assert_int_equal(spawn(2), 0);
    assert_int_equal(asked(0) + asked(0), 3);
    assert_int_equal(open_descriptors(), before + 2 * SPAWN_FD_COUNT);
    say(0, 1, 0);
    assert_int_equal(open_descriptors(), before + SPAWN_FD_COUNT);
    assert_int_equal(bench->not_made, 0);
}

/* Or the end of its channel would look like a worker that died at once. */
static void a_failure_is_told_before_the_descriptors_are_closed(void **state) {
    (void)state;
    start_ready();
    int before = open_descriptors();
    assert_int_equal(spawn(5), 0);
    assert_int_equal(asked(0), 5);
    say(0, 5, EAGAIN);
    assert_int_equal(bench->not_made, 5);
    assert_int_equal(bench->open_then, before + SPAWN_FD_COUNT);
    assert_int_equal(open_descriptors(), before);
}

static void a_sandbox_has_few_requests(void **state) {
    (void)state;
    int before = open_descriptors();
    for (int i = 0; i < 4; i++)
        assert_int_equal(spawn(1), 0);
    assert_int_equal(spawn(1), -1);
    assert_int_equal(open_descriptors(), before + 4 * SPAWN_FD_COUNT);
    assert_int_equal(spawn(2), 0);
    zygotes_forget(&bench->zygotes, 1);
    assert_int_equal(open_descriptors(), before + SPAWN_FD_COUNT);
    assert_int_equal(spawn(1), 0);
}

static void what_waits_for_an_ended_sandbox_is_dropped(void **state) {
    (void)state;
    zygotes_keep_time(&bench->zygotes);
    int before = open_descriptors();
    for (uint64_t sandbox = 1; sandbox <= 3; sandbox++)
        assert_int_equal(spawn(sandbox), 0);
    zygotes_forget(&bench->zygotes, 2);
    zygotes_forget(&bench->zygotes, 77);
    assert_int_equal(open_descriptors(), before + 2 * SPAWN_FD_COUNT);
    say(0, 0, 0);
    /* One that is under way is answered still. */
    zygotes_forget(&bench->zygotes, 1);
    assert_int_equal(asked(0), 1);
    assert_int_equal(asked(0), 3);
    assert_int_equal(asked(0), 0);
    say(0, 1, EAGAIN);
    say(0, 3, 0);
    assert_int_equal(open_descriptors(), before);
}

static void the_next_zygote_gets_what_a_dead_one_was_asked(void **state) {
    (void)state;
    start_ready();
    assert_int_equal(spawn(1), 0);
    assert_int_equal(spawn(2), 0);
    assert_int_equal(asked(0), 1);
    say(0, 1, 0);
    reap(0);
    assert_string_equal(bench->zygotes.reason, "the zygote died");
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 1);
    bench->zygotes.two[bench->zygotes.current].start_at = viv_now();
    start_ready();
    assert_int_equal(bench->starts, 2);
    assert_int_equal(asked(1), 2);
    assert_int_equal(asked(1), 0);
    assert_string_equal(bench->zygotes.reason, "");
}

static void one_that_answers_what_it_was_not_asked_is_killed(void **state) {
    static const uint64_t wrong[] = {7, UINT64_MAX};

    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        start_ready();
        assert_int_equal(spawn(1), 0);
        say((int)i, wrong[i], 0);
        assert_true(was_killed((int)i));
        reap((int)i);
        bench->zygotes.two[bench->zygotes.current].start_at = viv_now();
    }
    (void)state;
    start_ready();
    assert_int_equal(asked(2), 1);
}

static void attempts_come_later_after_each_failure(void **state) {
    viv_time last = 0;

    (void)state;
    bench->cannot_start = true;
    for (int i = 0; i < 9; i++) {
        struct zygote *zygote = &bench->zygotes.two[bench->zygotes.current];
        viv_time now = viv_now();
        zygote->start_at = now;
        zygotes_keep_time(&bench->zygotes);
        assert_string_equal(bench->zygotes.reason, "it must not start");
        viv_time wait = zygote->start_at - now;
        assert_true(wait >= last - VIV_SECOND && wait < 60 * VIV_SECOND);
        last = wait;
    }
    assert_true(last >= 10 * VIV_SECOND);
}

/* ---- a zygote that is worn ---- */

static void a_worn_zygote_serves_until_the_next_one_is_ready(void **state) {
    (void)state;
    bench->settings.zygote_sessions = 2;
    start_ready();
    assert_int_equal(spawn(1), 0);
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 1);
    assert_int_equal(spawn(2), 0);
    for (int i = 0; i < 2; i++)
        zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 2);
    assert_int_equal(spawn(3), 0);
    assert_int_equal(asked(0) + asked(0) + asked(0), 6);
    say(1, 0, 0);
    assert_int_equal(spawn(4), 0);
    assert_int_equal(asked(0), 0);
    assert_int_equal(asked(1), 4);
    /* It answers all that it was asked, then ends. */
    say(0, 1, 0);
    say(0, 2, 0);
    assert_true(is_open(0));
    say(0, 3, 0);
    assert_true(is_closed(0));
    reap(0);
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 2);
}

static void an_old_zygote_is_replaced(void **state) {
    (void)state;
    start_ready();
    zygotes_keep_time(&bench->zygotes);
    assert_int_equal(bench->starts, 1);
    bench->zygotes.two[bench->zygotes.current].ready_at -=
        (viv_time)bench->settings.zygote_age * VIV_MS;
    start_ready();
    assert_int_equal(bench->starts, 2);
    assert_true(is_closed(0));
}

static void a_retiring_zygote_that_dies_leaves_its_requests_to_the_next(void **state) {
    (void)state;
    bench->settings.zygote_sessions = 1;
    start_ready();
    assert_int_equal(spawn(1), 0);
    start_ready();
    reap(0);
    assert_int_equal(asked(1), 1);
    assert_string_equal(bench->zygotes.reason, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(requests_wait_for_a_zygote),
        TEST(few_requests_are_under_way),
        TEST(an_answer_closes_the_descriptors),
        TEST(a_failure_is_told_before_the_descriptors_are_closed),
        TEST(a_sandbox_has_few_requests),
        TEST(what_waits_for_an_ended_sandbox_is_dropped),
        TEST(the_next_zygote_gets_what_a_dead_one_was_asked),
        TEST(one_that_answers_what_it_was_not_asked_is_killed),
        TEST(attempts_come_later_after_each_failure),
        TEST(a_worn_zygote_serves_until_the_next_one_is_ready),
        TEST(an_old_zygote_is_replaced),
        TEST(a_retiring_zygote_that_dies_leaves_its_requests_to_the_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
