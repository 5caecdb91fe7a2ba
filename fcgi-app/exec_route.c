/* SPDX-License-Identifier: MIT */
#include "fcgi-app/exec_route.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "fcgi-app/error_reply.h"
#include "fcgi-app/exec_reply.h"
#include "fcgi-app/exec_request.h"
#include "fcgi-app/exec_run.h"
#include "fcgi-app/session_id.h"

/* A session's record has the time at which its call began; a little later is the same. */
#define RECORD_AGAIN_MS 1000

struct body {
    char *bytes; /* owned */
    struct budget_share share;
};

static void release_body(void *context) {
    struct body *body = context;

    free(body->bytes);
    body->bytes = NULL;
    budget_release(&body->share);
}

static void release_body_cleanup(struct body *body) { release_body(body); }

static int take_rate(struct app *app, struct exchange *exchange, const char *id,
                     struct viv_error *err) {
    struct rate_verdict verdict =
        rate_limit_take(app->rate, exchange->request.client, id, viv_now());
    struct http_head *head = &exchange->head;

    head->rate_limited = verdict.limit > 0;
    head->rate_limit = verdict.limit;
    head->rate_remaining = verdict.remaining;
    head->rate_reset_s = verdict.reset_s;
    if (verdict.allowed)
        return 0;
    head->retry_after_s = verdict.reset_s;
    return viv_refuse(err, VIV_RATE_LIMIT, "rate_limit",
                      "Not more than %" PRIu64
                      " calls in 60 seconds; try again in %" PRIu32 " seconds",
                      verdict.limit, verdict.reset_s);
}

static int read_body(struct app *app, struct exchange *exchange, struct body *body,
                     struct viv_error *err) {
    const struct http_connection *connection = exchange->connection;
    uint64_t size = exchange->request.body_size;

    if (size > app->max_body)
        return viv_fail(err, VIV_RESOURCE_LIMIT,
                        "The body is larger than %" PRIu64 " bytes", app->max_body);
    body->bytes = budget_take(&body->share, size) ? malloc(size + 1) : NULL;
    if (!body->bytes)
        return viv_refuse(err, VIV_CAPACITY,
                          body->share.amount > 0 ? "memory" : "max_in_flight",
                          "There is no room for a body of this size, try again later");
    return connection->read(connection->context, body->bytes, size, err);
}

static void answer(struct exchange *exchange, const struct exec_run *run) {
    const struct exec_reply reply = {.result = run->result,
                                     .timeout_ms = run->request->timeout_ms,
                                     .session_id = run->visit.id,
                                     .created = run->created,
                                     .lost = run->lost,
                                     .execution_count = run->execution_count};

    exchange->outcome = exec_reply_outcome(run->result);
    exchange->run_ms = (int64_t)run->result->runtime_ms;
    exchange_answer(exchange, 200, exec_reply_write, &reply);
}

/* Runs the request and answers. */
static int run_request(struct app *app, struct exchange *exchange, const char *id,
                       const struct exec_request *request, struct body *body,
                       struct viv_error *err) {
    CLEANUP(call_result_clear) struct call_result result;
    struct exec_run run = {.visit = {.id = id,
                                     .client = exchange->request.client,
                                     .gone = exchange->connection->gone,
                                     .context = exchange->connection->context},
                           .request = request,
                           .sent = release_body,
                           .context = body,
                           .result = &result};
    viv_time begun = viv_now();

    call_result_init(&result, &app->bytes);
    int failed = exec_run(app, &run, err);
    exchange->wait_ms = run.wait_ms;
    exchange->left = run.left;
    if (failed)
        return -1;
    if (viv_now() - begun >= RECORD_AGAIN_MS * VIV_MS)
        exec_run_record(app, id, run.sandbox);
    answer(exchange, &run);
    return 0;
}

/* The checks in the order of the contract; the place among the calls is taken before
 * anything that may take time. */
static int handle(struct app *app, struct exchange *exchange,
                  struct validation_details *details, struct viv_error *err) {
    CLEANUP(budget_release) struct budget_share place = {.budget = &app->calls};
    CLEANUP(release_body) struct body body = {.share = {.budget = &app->bytes}};
    CLEANUP(exec_request_clear) struct exec_request request = {0};
    char id[SESSION_ID_MAX + 1];

    if (!exchange->request.is_json)
        return viv_fail(err, VIV_CONTENT_TYPE, "Content-Type must be application/json");
    if (session_id_from_query(exchange->request.query, id, details, err))
        return -1;
    exchange->session = hash_mark(app->log_key, id);
    if (take_rate(app, exchange, id, err))
        return -1;
    if (!budget_take(&place, 1))
        return viv_refuse(err, VIV_CAPACITY, "threads",
                          "As many calls run or wait as the server takes, try again "
                          "later");
    if (read_body(app, exchange, &body, err) ||
        exec_request_parse(body.bytes, exchange->request.body_size, app->settings,
                           &request, details, err))
        return -1;
    return run_request(app, exchange, id, &request, &body, err);
}

void exec_route(struct app *app, struct exchange *exchange) {
    struct validation_details details = {0};
    struct viv_error err;

    if (handle(app, exchange, &details, &err))
        error_reply(exchange, &err, &details);
}
