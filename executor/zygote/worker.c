/* SPDX-License-Identifier: MIT */
#include "executor/zygote/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "executor/confine.h"
#include "executor/landlock.h"
#include "executor/zygote/python_worker.h"
#include "executor/seccomp/worker_filter.h"
#include "executor/session_cgroup.h"
#include "executor/worker_copy.h"
#include "executor/zygote/self_test.h"
#include "executor/worker_wire.h"

#define PARENT_LIMIT_MS 10000
#define WORKER_NICE     10

/* The child is in the PID namespace already, by the fork. */
static int join_namespaces(const int fds[NAMESPACE_COUNT], struct viv_error *err) {
    for (int i = 0; i < NAMESPACE_COUNT; i++)
        if (i != NAMESPACE_PID && setns(fds[i], namespace_kinds[i].flag))
            return viv_fail(err, VIV_SYSTEM, "join %s: %m", namespace_kinds[i].path);
    return 0;
}

/* Standard input, which is at its end. There may be no devices in a slot. */
static int open_no_input(void) {
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), ends[2];

    if (fd >= 0 || pipe2(ends, O_CLOEXEC))
        return fd;
    close(ends[1]);
    return ends[0];
}

/* The channel and the pipes at their places, nothing else open: what the zygote had open
 * belongs to other sessions. */
static int arrange_descriptors(const int fds[], struct viv_error *err) {
    const int first = WORKER_CHANNEL + 1;
    int no_input = open_no_input();
    int moved[WORKER_CHANNEL + 1] = {no_input, fds[SPAWN_STDOUT], fds[SPAWN_STDERR],
                                     fds[SPAWN_CHANNEL]};

    if (no_input < 0)
        return viv_fail(err, VIV_SYSTEM, "open an empty standard input: %m");
    for (int i = 0; i <= WORKER_CHANNEL; i++) {
        moved[i] = fcntl(moved[i], F_DUPFD_CLOEXEC, first);
        if (moved[i] < 0)
            return viv_fail(err, VIV_SYSTEM, "duplicate a descriptor: %m");
    }
    for (int i = 0; i <= WORKER_CHANNEL; i++)
        if (dup2(moved[i], i) < 0)
            return viv_fail(err, VIV_SYSTEM, "duplicate a descriptor: %m");
    return confine_descriptors(first, err);
}

static int reset_signals(struct viv_error *err) {
    sigset_t none;

    /* Those that Python expects ignored stay so: see python_worker.c. */
    for (int number = 1; number < _NSIG; number++)
        if (number != SIGPIPE && number != SIGXFSZ)
            signal(number, SIG_DFL);
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL))
        return viv_fail(err, VIV_SYSTEM, "sigprocmask: %m");
    return 0;
}

/* The process that forked this one ends at once, and the supervisor or the launcher
 * becomes the parent: until then it would not find its worker among its children. */
static int wait_for_parent(pid_t parent, struct viv_error *err) {
    const struct timespec pause = {.tv_nsec = 50 * 1000};
    const viv_time limit = viv_after_ms(PARENT_LIMIT_MS);

    while (getppid() != parent) {
        if (viv_now() > limit)
            return viv_fail(err, VIV_SYSTEM, "the parent did not become the parent");
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* What is gone when its PID 1 is gone, for a worker that has none: it ends with its
 * parent. */
static int end_with_parent(pid_t parent, struct viv_error *err) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL))
        return viv_fail(err, VIV_SYSTEM, "set the parent-death signal: %m");
    return getppid() == parent ? 0 : viv_fail(err, VIV_SYSTEM, "the launcher is gone");
}

static int meet_parent(enum isolation_tier tier, pid_t parent, struct viv_error *err) {
    if (isolation_has_namespaces(tier))
        return wait_for_parent(1, err);
    return wait_for_parent(parent, err) ? -1 : end_with_parent(parent, err);
}

/* The place where it lives, as its user. */
static int enter_session(enum isolation_tier tier, const struct spawn_request *request,
                         const int fds[], struct viv_error *err) {
    if (isolation_has_namespaces(tier))
        return join_namespaces(fds + SPAWN_NAMESPACES, err)
                   ? -1
                   : confine_become_user(SESSION_UID, SESSION_UID, err);
    if (tier == ISOLATION_CONFINED)
        return confine_root(fds[SPAWN_FOLDER], err)
                   ? -1
                   : confine_become_user(request->user, request->user, err);
    return fchdir(fds[SPAWN_FOLDER]) ? viv_fail(err, VIV_SYSTEM, "enter the slot: %m")
                                     : 0;
}

static int enter_home(enum isolation_tier tier, struct viv_error *err) {
    const char *home = tier == ISOLATION_MINIMAL ? "home" : SESSION_HOME;

    return chdir(home) ? viv_fail(err, VIV_SYSTEM, "chdir %s: %m", home) : 0;
}

/* The services and the web server come before sessions, which cannot raise it again:
 * where the kernel groups processes by nothing, or inside of one group (sched(7)). */
static int give_way(struct viv_error *err) {
    errno = 0;
    if (nice(WORKER_NICE) == -1 && errno != 0)
        return viv_fail(err, VIV_SYSTEM, "nice: %m");
    return 0;
}

/* While a descriptor can still be sent. */
static int offer_copies(struct viv_error *err) {
    char frame[FRAME_HEADER_SIZE];

    frame_put_header(frame, WORKER_LISTENER, 0, 0);
    return worker_copy_offer(WORKER_CHANNEL, frame, sizeof frame, err);
}

/* Every control, in the order in which each leaves the next one possible. The descriptors
 * come before the limits, which would not allow their numbers; seccomp comes last, for it
 * refuses what the others take. */
static int confine(const struct worker_start *start, struct viv_error *err) {
    const enum isolation_tier tier = start->tier;
    const struct spawn_request *request = start->request;

    if (enter_session(tier, request, start->fds, err) || reset_signals(err) ||
        arrange_descriptors(start->fds, err))
        return -1;
    /* Its own group of the scheduler, too, whatever the number of its threads:
     * "autogroup" in sched(7). */
    setsid();
    umask(022);
    if (give_way(err) || enter_home(tier, err))
        return -1;
    if (tier == ISOLATION_MINIMAL ? confine_to_capabilities(0, err)
                                  : confine_capabilities(0, err))
        return -1;
    if (confine_resources(request->address_space, request->file_size, request->threads,
                          err) ||
        confine_privileges(err) || meet_parent(tier, request->parent, err) ||
        landlock_restrict_worker(tier, err))
        return -1;
    if (start->checkpoints && offer_copies(err))
        return -1;
    seccomp_filter_set_pid(start->filter, getpid());
    return seccomp_filter_load(start->filter, err);
}

/* The filter lets send(2) through and no call that could carry a descriptor, so a frame
 * is one piece here. */
static int send_all(struct slice bytes, struct viv_error *err) {
    while (bytes.size > 0) {
        ssize_t sent = send(WORKER_CHANNEL, bytes.data, bytes.size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return viv_fail(err, VIV_BAD_GATEWAY, "send: %m");
        bytes.data += sent;
        bytes.size -= (size_t)sent;
    }
    return 0;
}

static int say_ready(struct viv_error *err) {
    char frame[FRAME_HEADER_SIZE + WORKER_READY_SIZE];

    frame_put_header(frame, WORKER_READY, 0, WORKER_READY_SIZE);
    put_u32(frame + FRAME_HEADER_SIZE, (uint32_t)getpid());
    return send_all((struct slice){frame, sizeof frame}, err);
}

static int say_alive(uint32_t number, struct viv_error *err) {
    char frame[FRAME_HEADER_SIZE];

    frame_put_header(frame, WORKER_PONG, number, 0);
    return send_all((struct slice){frame, sizeof frame}, err);
}

/* The channel blocks, so that reading it is waiting. */
static int read_frame(struct frame_reader *reader, struct frame *frame,
                      struct viv_error *err) {
    int found;

    while ((found = frame_reader_next(reader, frame, err)) == 0)
        if (frame_reader_fill(reader, WORKER_CHANNEL, err) < 0)
            return -1;
    return found > 0 ? 0 : -1;
}

/* Whether it was a frame that asks nothing of the interpreter, and what came of it. */
static bool is_tended(const struct frame *frame, int *failed, struct viv_error *err) {
    if (frame->type == WORKER_PING)
        *failed = say_alive(frame->sequence, err);
    else if (frame->type == WORKER_TRIM)
        malloc_trim(0);
    else
        return false;
    return true;
}

/* Waits for the next frame that is for the interpreter; other threads of the session run
 * meanwhile. */
static int wait_for_frame(struct frame_reader *reader, struct frame *frame,
                          struct viv_error *err) {
    void *state = python_release();
    int failed = read_frame(reader, frame, err);

    while (!failed && is_tended(frame, &failed, err))
        failed = failed || read_frame(reader, frame, err);
    python_resume(state);
    return failed ? -1 : 0;
}

static int answer(const struct frame *frame, struct viv_error *err) {
    CLEANUP(buffer_clear) struct buffer result = {0};
    char head[FRAME_HEADER_SIZE + SESSION_NONCE_SIZE];
    struct worker_call call;
    struct slice code, standard_input;

    if (worker_call_get(frame->payload, &call, &code, &standard_input, err))
        return -1;
    if (!call.has_stdin)
        standard_input.data = NULL;
    /* The header is written when the length of the claims is known. */
    memcpy(head + FRAME_HEADER_SIZE, call.nonce, SESSION_NONCE_SIZE);
    if (buffer_append(&result, head, sizeof head, sizeof head, err) ||
        python_run(&call, code, standard_input, &result, err))
        return -1;
    /* What C code has printed and not flushed belongs to this call. */
    fflush(NULL);
    frame_put_header(result.data, WORKER_RESULT, call.number,
                     (uint32_t)(result.size - FRAME_HEADER_SIZE));
    return send_all((struct slice){result.data, result.size}, err);
}

/* A copy that is woken has another channel, from which nothing was read yet. */
static int make_checkpoint(const struct raw_fork *thread, uint32_t sequence,
                           struct viv_error *err) {
    const enum worker_copy copy = worker_copy_make(thread, WORKER_CHANNEL);
    char frame[FRAME_HEADER_SIZE + WORKER_COPIED_SIZE];

    if (copy == WORKER_COPY_WOKEN) {
        frame_put_header(frame, WORKER_RESTORED, sequence, 0);
        return send_all((struct slice){frame, FRAME_HEADER_SIZE}, err);
    }
    frame_put_header(frame, WORKER_COPIED, sequence, WORKER_COPIED_SIZE);
    frame[FRAME_HEADER_SIZE] = copy == WORKER_COPY_MADE;
    if (send_all((struct slice){frame, sizeof frame}, err))
        return -1;
    python_touch();
    return 0;
}

__attribute__((noreturn)) static void fail(const struct viv_error *err) {
    viv_log_failure(VIV_LOG_ERROR, "worker_not_started", err->message, NULL);
    _exit(1);
}

void worker_main(const struct worker_start *start) {
    const struct raw_fork thread = raw_fork_prepare();
    struct frame_reader reader = {.cap = worker_cap_to_worker};
    struct frame frame;
    struct viv_error err;

    /* First of all: what memory is touched before is counted elsewhere. */
    if (start->fd_count > SPAWN_CGROUP &&
        session_cgroup_enter(start->fds[SPAWN_CGROUP], &err))
        fail(&err);
    if (confine(start, &err) || self_test(start->tier, &err) ||
        python_begin(start->tier == ISOLATION_MINIMAL, &err) || say_ready(&err))
        fail(&err);
    while (wait_for_frame(&reader, &frame, &err) == 0)
        if (frame.type == WORKER_CHECKPOINT
                ? make_checkpoint(&thread, frame.sequence, &err)
                : answer(&frame, &err))
            break;
    _exit(1);
}
