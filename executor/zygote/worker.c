/* SPDX-License-Identifier: MIT */
#include "executor/zygote/worker.h"

#include <errno.h>
#include <fcntl.h>
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
#include "executor/zygote/self_test.h"
#include "executor/worker_wire.h"

#define CHANNEL         3 /* descriptor; 0, 1 and 2 are the standard ones */
#define PARENT_LIMIT_MS 10000

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
    const int first = CHANNEL + 1;
    int no_input = open_no_input();
    int moved[CHANNEL + 1] = {no_input, fds[SPAWN_STDOUT], fds[SPAWN_STDERR],
                              fds[SPAWN_CHANNEL]};

    if (no_input < 0)
        return viv_fail(err, VIV_SYSTEM, "open an empty standard input: %m");
    for (int i = 0; i <= CHANNEL; i++) {
        moved[i] = fcntl(moved[i], F_DUPFD_CLOEXEC, first);
        if (moved[i] < 0)
            return viv_fail(err, VIV_SYSTEM, "duplicate a descriptor: %m");
    }
    for (int i = 0; i <= CHANNEL; i++)
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

/* Every control, in the order in which each leaves the next one possible. The descriptors
 * come before the limits, which would not allow their numbers; seccomp comes last, for it
 * refuses what the others take. */
static int confine(enum isolation_tier tier, const struct spawn_request *request,
                   const int fds[], struct seccomp_filter *filter,
                   struct viv_error *err) {
    if (enter_session(tier, request, fds, err) || reset_signals(err) ||
        arrange_descriptors(fds, err))
        return -1;
    setsid();
    umask(022);
    if (enter_home(tier, err))
        return -1;
    if (tier == ISOLATION_MINIMAL ? confine_to_capabilities(0, err)
                                  : confine_capabilities(0, err))
        return -1;
    if (confine_resources(request->address_space, request->file_size, request->threads,
                          err) ||
        confine_privileges(err) || meet_parent(tier, request->parent, err) ||
        landlock_restrict_worker(tier, err))
        return -1;
    seccomp_filter_set_pid(filter, getpid());
    return seccomp_filter_load(filter, err);
}

/* The filter lets send(2) through and no call that could carry a descriptor, so a frame
 * is one piece here. */
static int send_all(struct slice bytes, struct viv_error *err) {
    while (bytes.size > 0) {
        ssize_t sent = send(CHANNEL, bytes.data, bytes.size, MSG_NOSIGNAL);
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

/* Waits for the next call; other threads of the session run meanwhile. The channel blocks, so
 * that reading it is waiting. */
static int wait_for_call(struct frame_reader *reader, struct frame *frame,
                         struct viv_error *err) {
    void *state = python_release();
    int found;

    while ((found = frame_reader_next(reader, frame, err)) == 0)
        if (frame_reader_fill(reader, CHANNEL, err) < 0)
            break;
    python_resume(state);
    return found > 0 ? 0 : -1;
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

__attribute__((noreturn)) static void fail(const struct viv_error *err) {
    viv_log_failure(VIV_LOG_ERROR, "worker_not_started", err->message, NULL);
    _exit(1);
}

void worker_main(enum isolation_tier tier, const struct spawn_request *request,
                 const int fds[], size_t fd_count, struct seccomp_filter *filter) {
    struct frame_reader reader = {.cap = worker_cap_to_worker};
    struct frame frame;
    struct viv_error err;

    /* First of all: what memory is touched before is counted elsewhere. */
    if (fd_count > SPAWN_CGROUP && session_cgroup_enter(fds[SPAWN_CGROUP], &err))
        fail(&err);
    if (confine(tier, request, fds, filter, &err) || self_test(tier, &err) ||
        python_begin(tier == ISOLATION_MINIMAL, &err) || say_ready(&err))
        fail(&err);
    while (wait_for_call(&reader, &frame, &err) == 0)
        if (answer(&frame, &err))
            break;
    _exit(1);
}
