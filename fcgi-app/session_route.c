/* SPDX-License-Identifier: MIT */
#include "fcgi-app/session_route.h"

#include "fcgi-app/error_reply.h"
#include "fcgi-app/exec_run.h"
#include "fcgi-app/session_id.h"

/* Does it to the session; *running: a call had it. */
typedef int session_action(struct app *app, const char *id, bool *running,
                           struct viv_error *err);

static int end_session(struct app *app, const char *id, bool *running,
                       struct viv_error *err) {
    uint64_t sandbox = 0;

    if (sessions_end(app->sessions, id, &sandbox, running, err))
        return -1;
    return exec_run_end_sandbox(app, sandbox, err);
}

static int interrupt_session(struct app *app, const char *id, bool *running,
                             struct viv_error *err) {
    return sessions_interrupt(app->sessions, id, running, err);
}

static void write_done(struct json_out *out, const void *context) {
    const bool *running = context;

    json_out_raw(out, "{\"success\":true,\"interrupted\":");
    json_out_bool(out, *running);
    json_out_raw(out, "}");
}

/* Any page may have its browser send a POST without asking first, unless it is of a type
 * that no form has (the Fetch standard's CORS-safelisted request-headers). It names the
 * origin. */
static int check_page(const struct http_request *request, struct viv_error *err) {
    if (!request->is_of_page || request->is_json)
        return 0;
    return viv_fail(err, VIV_CONTENT_TYPE,
                    "Content-Type must be application/json where there is an Origin");
}

static void handle(struct app *app, struct exchange *exchange, struct slice component,
                   session_action *act) {
    struct validation_details details = {0};
    char id[SESSION_ID_MAX + 1];
    struct viv_error err;
    bool running = false;

    if (check_page(&exchange->request, &err) ||
        session_id_from_path(component, id, &details, &err)) {
        error_reply(exchange, &err, &details);
        return;
    }
    exchange->session = hash_mark(app->log_key, id);
    if (act(app, id, &running, &err))
        error_reply(exchange, &err, NULL);
    else
        exchange_answer(exchange, 200, write_done, &running);
}

void session_end_route(struct app *app, struct exchange *exchange, struct slice id) {
    handle(app, exchange, id, end_session);
}

void session_interrupt_route(struct app *app, struct exchange *exchange,
                             struct slice id) {
    handle(app, exchange, id, interrupt_session);
}
