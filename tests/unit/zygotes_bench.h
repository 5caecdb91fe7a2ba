/* SPDX-License-Identifier: MIT */
/*
 * A bench for the launcher's zygotes, with processes of make-believe: the functions of
 * zygote_process.h are defined here and take the place of those in the library.
 */
#ifndef VIV_TESTS_ZYGOTES_BENCH_H
#define VIV_TESTS_ZYGOTES_BENCH_H

#include "tests/unit/unit.h"

#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "executor/launcher/zygotes.h"
#include "tests/unit/child.h"

#define STARTS_MAX 8

/* What a zygote calls the worker of a sandbox. */
#define WORKER_OF(sandbox) ((pid_t)(1000 + (sandbox)))

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
    uint64_t not_made;       /* the sandbox that was told last */
    int open_then;           /* descriptors that were open when it was told */
    struct spawn_reply made; /* the last answer that told of a worker */
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
                       const int fds[], size_t count, struct viv_error *err) {
    return io_send_message(zygote->socket, request, sizeof *request, fds, count, err);
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

static inline void note_answer(void *context, const struct spawn_reply *reply) {
    assert_ptr_equal(context, bench);
    if (!reply->failed) {
        bench->made = *reply;
        return;
    }
    assert_int_equal(reply->failed, EAGAIN);
    bench->open_then = open_descriptors();
    bench->not_made = reply->sandbox;
}

static inline int set_up(void **state) {
    (void)state;
    bench = viv_xcalloc(1, sizeof *bench);
    settings_init(&bench->settings);
    bench->setup.settings = &bench->settings;
    bench->setup.tier = ISOLATION_ISOLATED;
    assert_int_equal(event_loop_init(&bench->loop, NULL), 0);
    zygotes_init(&bench->zygotes, &bench->setup, &bench->loop, note_answer, bench);
    return 0;
}

static inline int tear_down(void **state) {
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

/* Asks for a worker of a user, with so many descriptors. */
static inline int spawn_of(uint64_t sandbox, uid_t user, size_t count) {
    int fds[SPAWN_FD_MAX];

    for (size_t i = 0; i < count; i++)
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    int failed = zygotes_spawn(&bench->zygotes, sandbox, user, fds, count, NULL);
    for (size_t i = 0; failed && i < count; i++)
        close(fds[i]);
    return failed;
}

static inline int spawn(uint64_t sandbox) { return spawn_of(sandbox, 0, SPAWN_FD_MAX); }

/* The next request that a zygote has, with the number of its descriptors; its sandbox is
 * 0 when there is none. */
static inline struct spawn_request asked_with(int zygote, size_t *count) {
    struct spawn_request request;
    int fds[SPAWN_FD_MAX];

    if (io_receive_message(bench->far[zygote], &request, sizeof request, fds,
                           SPAWN_FD_MAX, count, NULL) != sizeof request)
        return (struct spawn_request){0};
    for (size_t i = 0; i < *count; i++)
        close(fds[i]);
    return request;
}

/* The sandbox of the next request that a zygote has; 0: none. */
static inline uint64_t asked(int zygote) {
    size_t count;
    struct spawn_request request = asked_with(zygote, &count);

    assert_true(request.sandbox == 0 || count == SPAWN_FD_MAX);
    return request.sandbox;
}

/* What a zygote says, with what comes of it; sandbox 0: it is ready. */
static inline void say(int zygote, uint64_t sandbox, int failed) {
    const struct spawn_reply reply = {
        .sandbox = sandbox, .failed = failed, .worker = failed ? 0 : WORKER_OF(sandbox)};

    assert_int_equal(
        io_send_message(bench->far[zygote], &reply, sizeof reply, NULL, 0, NULL), 0);
    assert_int_equal(event_loop_turn(&bench->loop, viv_now(), NULL), 0);
}

static inline void start_ready(void) {
    zygotes_keep_time(&bench->zygotes);
    say(bench->starts - 1, 0, 0);
}

/* Whether the launcher's end of a zygote's socket is closed; waits for that. */
static inline bool is_closed(int zygote) {
    char byte;

    return io_wait(bench->far[zygote], false, viv_after_ms(60000), NULL) == 0 &&
           recv(bench->far[zygote], &byte, 1, MSG_PEEK) == 0;
}

static inline bool is_open(int zygote) {
    char byte;

    return recv(bench->far[zygote], &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}

static inline bool was_killed(int zygote) {
    siginfo_t end = {0};

    return waitid(P_PID, (id_t)bench->pids[zygote], &end, WEXITED | WNOWAIT) == 0 &&
           end.si_code == CLD_KILLED;
}

/* The launcher's reaper. */
static inline void reap(int zygote) {
    kill(bench->pids[zygote], SIGKILL);
    assert_int_equal(waitpid(bench->pids[zygote], NULL, 0), bench->pids[zygote]);
    assert_true(zygotes_reaped(&bench->zygotes, bench->pids[zygote]));
}

#endif
