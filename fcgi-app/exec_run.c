/* SPDX-License-Identifier: MIT */
#include "fcgi-app/exec_run.h"

#include <inttypes.h>
#include <sys/eventfd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "fcgi-app/sandbox_call.h"

/* A sandbox may be found dead when a call comes, and the next one may die at birth. */
#define ATTEMPTS 2

int exec_run_end_sandbox(struct app *app, uint64_t sandbox, struct viv_error *err) {
    if (sandbox == 0 || executor_end(&app->executor, sandbox, err) == 0)
        return 0;
    viv_log_failure(VIV_LOG_WARNING, "sandbox_not_ended", err->message,
                    "sandbox=%" PRIu64, sandbox);
    return -1;
}

static void end_sandbox(struct app *app, uint64_t sandbox) {
    struct viv_error err;

    exec_run_end_sandbox(app, sandbox, &err);
}

/* Parts with a sandbox that cannot be used any more. Where code ran in the session, its
 * next answer tells the loss. */
static void drop_sandbox(struct app *app, struct session *session, const char *why) {
    uint64_t sandbox = session->sandbox;

    viv_log_failure(VIV_LOG_WARNING, "sandbox_lost", why,
                    "sandbox=%" PRIu64 " session=%s", sandbox,
                    hash_mark(app->log_key, session->id).digits);
    sessions_set_sandbox(app->sessions, session, 0, -1);
    if (session->execution_count > 0)
        sessions_set_lost(app->sessions, session, SESSION_LOST_ALL);
    end_sandbox(app, sandbox);
}

static int acquire(struct app *app, struct session *session, struct viv_error *err) {
    struct session_record record;
    char bytes[SESSION_RECORD_MAX];
    uint64_t sandbox;
    int channel;

    /* The record is made for a session that has run something: if vivarium-fcgi is
     * started anew in the middle of this call, the session is there again. */
    sessions_describe(app->sessions, session, &record);
    record.execution_count++;
    size_t size = session_record_put(bytes, &record);
    if (executor_acquire(&app->executor, (struct slice){bytes, size}, &sandbox, &channel,
                         err)) {
        /* Of descriptors, of memory or of processes there may be enough the next time. */
        if (err->code == VIV_SYSTEM)
            err->code = VIV_UNAVAILABLE;
        if (err->code != VIV_CAPACITY)
            return -1;
        viv_log_failure(VIV_LOG_INFO, "no_sandbox", err->message, "session=%s",
                        hash_mark(app->log_key, session->id).digits);
        return viv_refuse(err, VIV_CAPACITY, "sandbox",
                          "There is no room for another session, try again later");
    }
    sessions_set_sandbox(app->sessions, session, sandbox, channel);
    return 0;
}

/* A channel to the sandbox of an adopted session. Returns 1 when it has none any more. */
static int attach(struct app *app, struct session *session, struct viv_error *err) {
    int channel;

    if (executor_attach(&app->executor, session->sandbox, &channel, err) == 0) {
        sessions_set_sandbox(app->sessions, session, session->sandbox, channel);
        return 0;
    }
    if (err->code != VIV_NOT_FOUND) {
        /* It is there, and can be had as soon as there are descriptors again. */
        if (err->code == VIV_SYSTEM || err->code == VIV_CAPACITY)
            err->code = VIV_UNAVAILABLE;
        return -1;
    }
    drop_sandbox(app, session, err->message);
    return 1;
}

/* Gives the session a sandbox and a channel that seem to be alive. */
static int provide_sandbox(struct app *app, struct session *session,
                           struct viv_error *err) {
    if (session->channel >= 0) {
        if (sandbox_channel_is_clean(session->channel))
            return 0;
        drop_sandbox(app, session, "it ended, or spoke between calls");
    } else if (session->sandbox != 0) {
        int failed = attach(app, session, err);
        if (failed <= 0)
            return failed;
    }
    return acquire(app, session, err);
}

/* Fails when somebody has ended the session. */
static int check_wanted(struct app *app, const struct session *session,
                        struct viv_error *err) {
    if (sessions_wish(app->sessions, session) != WISH_END)
        return 0;
    return viv_fail(err, VIV_INTERRUPTED, "The session was ended before the code ran");
}

struct record_request {
    struct app *app;
    const char *id;
    uint64_t sandbox;
};

static size_t make_record(void *context, char to[EXECUTOR_BYTES_MAX]) {
    const struct record_request *request = context;
    struct session_record record;

    if (!sessions_record(request->app->sessions, request->id, request->sandbox, &record))
        return 0;
    return session_record_put(to, &record);
}

void exec_run_record(struct app *app, const char *id, uint64_t sandbox) {
    struct record_request request = {app, id, sandbox};

    if (sandbox != 0)
        executor_record(&app->executor, sandbox, make_record, &request);
}

/* Sends the request and lets it run, in a sandbox that takes it. */
static int begin_call(struct app *app, struct session *session, struct exec_run *run,
                      struct sandbox_call *call, struct viv_error *err) {
    const int64_t end_ms = (int64_t)app->settings->interrupt_grace + SANDBOX_COLLECT_MS;

    for (int attempt = 1;; attempt++) {
        uint64_t adopted = session->channel < 0 ? session->sandbox : 0;
        if (check_wanted(app, session, err) || provide_sandbox(app, session, err) ||
            check_wanted(app, session, err))
            return -1;
        *call =
            (struct sandbox_call){.settings = app->settings,
                                  .channel = session->channel,
                                  .sequence = ++session->sequence,
                                  .number = session->execution_count + 1,
                                  .timeout_ms = run->request->timeout_ms,
                                  .before_ms = session->sandbox == adopted ? end_ms : 0};
        run->created = session->execution_count == 0;
        sessions_begin_execution(app->sessions, session);
        /* Before the code can run: whoever takes the session over from here on must not
         * give the number to another execution. */
        exec_run_record(app, run->visit.id, session->sandbox);
        if (sandbox_call_send(call, run->request, err) == 0)
            return 0;
        sessions_revoke_execution(app->sessions, session);
        if (check_wanted(app, session, err))
            return -1;
        bool died = err->code == VIV_BAD_GATEWAY;
        drop_sandbox(app, session, err->message);
        if (!died || attempt == ATTEMPTS)
            return viv_fail(err, VIV_UNAVAILABLE,
                            "the sandbox does not take the request");
    }
}

/* What the answer will say of the session. A loss that it tells is told: whoever takes
 * the session over does not tell it again. */
static void note_outcome(struct app *app, struct session *session, struct exec_run *run) {
    static const char *const words[] = {[SESSION_LOST_NONE] = "none",
                                        [SESSION_LOST_VARIABLES] = "variables",
                                        [SESSION_LOST_ALL] = "all"};

    run->lost = words[session->lost];
    run->execution_count = session->execution_count;
    if (session->lost == SESSION_LOST_NONE)
        return;
    sessions_set_lost(app->sessions, session, SESSION_LOST_NONE);
    exec_run_record(app, run->visit.id, session->sandbox);
}

static int fail_refused(const struct exec_run *run, const struct session_refused *refused,
                        struct viv_error *err) {
    const struct exec_request *request = run->request;
    size_t index = refused->file < request->file_count
                       ? request->files[refused->file].index
                       : refused->file;

    switch (refused->reason) {
    case SESSION_NO_ROOM:
        return viv_fail(err, VIV_RESOURCE_LIMIT,
                        "files[%zu]: there is no room for it in the session", index);
    case SESSION_IN_THE_WAY:
        return viv_fail(
            err, VIV_PARSING,
            "files[%zu].filename: something that is no file, or a file in place of "
            "a folder, is in the way",
            index);
    default:
        return viv_fail(err, VIV_SYSTEM, "files[%zu] could not be written", index);
    }
}

/* A call whose code runs. */
struct running {
    struct app *app;
    const struct session *session;
    struct exec_run *run;
};

static enum sandbox_wish ask_wish(void *context) {
    struct running *running = context;
    const struct session_visit *visit = &running->run->visit;

    switch (sessions_wish(running->app->sessions, running->session)) {
    case WISH_END:
        return SANDBOX_GIVE_UP;
    case WISH_INTERRUPT:
        return SANDBOX_INTERRUPT;
    default:
        running->run->left =
            running->run->left || (visit->gone && visit->gone(visit->context));
        return running->run->left ? SANDBOX_INTERRUPT : SANDBOX_GO_ON;
    }
}

static void receive(struct app *app, struct session *session, struct exec_run *run,
                    const struct sandbox_call *sent, struct viv_error *why) {
    struct running running = {app, session, run};
    struct sandbox_call call = *sent;
    CLEANUP(close_fd) int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    call.wish = ask_wish;
    call.bell = bell;
    call.context = &running;
    sessions_set_bell(app->sessions, session, bell);
    sandbox_call_receive(&call, run->result, why);
    sessions_set_bell(app->sessions, session, -1);
}

static int run_in(struct app *app, struct session *session, struct exec_run *run,
                  struct viv_error *err) {
    struct call_result *result = run->result;
    struct sandbox_call call;
    struct viv_error why;

    if (begin_call(app, session, run, &call, err))
        return -1;
    run->sent(run->context);
    receive(app, session, run, &call, &why);
    switch (result->end) {
    case CALL_REFUSED:
        sessions_revoke_execution(app->sessions, session);
        exec_run_record(app, run->visit.id, session->sandbox);
        return fail_refused(run, &result->refused, err);
    case CALL_DONE:
        if (result->done.variables_lost && session->lost == SESSION_LOST_NONE)
            sessions_set_lost(app->sessions, session, SESSION_LOST_VARIABLES);
        break;
    case CALL_ENDED:
        sessions_set_lost(app->sessions, session, SESSION_LOST_ALL);
        break;
    case CALL_OVERDUE:
    case CALL_BROKEN:
        drop_sandbox(app, session, why.message);
    }
    note_outcome(app, session, run);
    return 0;
}

int exec_run(struct app *app, struct exec_run *run, struct viv_error *err) {
    viv_time asked = viv_now();

    run->wait_ms = -1;
    struct session *session = sessions_enter(app->sessions, &run->visit, err);
    if (!session)
        return -1;
    run->wait_ms = (viv_now() - asked) / VIV_MS;
    int failed = run_in(app, session, run, err);
    run->sandbox = session->sandbox;
    end_sandbox(app, sessions_leave(app->sessions, session));
    return failed;
}
