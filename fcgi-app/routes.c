/* SPDX-License-Identifier: MIT */
#include "fcgi-app/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fcgi-app/error_reply.h"
#include "fcgi-app/exchange.h"
#include "fcgi-app/exec_route.h"
#include "fcgi-app/session_route.h"

/* Why there is nothing but /health while app->adopting. */
static const char adopting_reason[] = "the sessions of before are not known yet";

/* A path is `before`, or `before`, the id of a session, and `after`. */
struct route {
    const char *before, *after; /* after: NULL where there is no id */
    const char *name;           /* in the log */
    enum http_method method;
    const char *allow; /* the header of that name */
    void (*handle)(struct app *app, struct exchange *exchange, struct slice id);
};

/* ---- GET /sessions ---- */

struct listing {
    struct session_line *lines;
    size_t count;
};

static double minutes(viv_time span) { return (double)span / (60.0 * VIV_SECOND); }

static void write_sessions(struct json_out *out, const void *context) {
    const struct listing *listing = context;

    json_out_raw(out, "{\"sessions\":[");
    for (size_t i = 0; i < listing->count; i++) {
        const struct session_line *line = &listing->lines[i];
        json_out_raw(out, i > 0 ? ",{\"id\":" : "{\"id\":");
        json_out_text(out, line->id);
        json_out_raw(out, ",\"createdAt\":");
        json_out_signed(out, line->created_wall_ms);
        json_out_raw(out, ",\"lastAccessedAt\":");
        json_out_signed(out, line->used_wall_ms);
        json_out_raw(out, ",\"ageMinutes\":");
        json_out_fixed(out, minutes(line->age));
        json_out_raw(out, ",\"idleMinutes\":");
        json_out_fixed(out, minutes(line->idle));
        json_out_raw(out, line->busy ? ",\"state\":\"busy\"" : ",\"state\":\"idle\"");
        json_out_raw(out, ",\"execution_count\":");
        json_out_unsigned(out, line->execution_count);
        json_out_raw(out, "}");
    }
    json_out_raw(out, "]}");
}

static void sessions_route(struct app *app, struct exchange *exchange, struct slice id) {
    struct listing listing;

    (void)id;
    listing.count = sessions_list(app->sessions, &listing.lines);
    exchange_answer(exchange, 200, write_sessions, &listing);
    free(listing.lines);
}

/* ---- GET /health ---- */

struct report {
    struct health_state state;
    size_t sessions;
};

static void write_word(struct json_out *out, const char *name, const char *word) {
    json_out_raw(out, name);
    json_out_text(out, *word ? word : "unknown");
}

static void write_isolation(struct json_out *out, const struct executor_status *status) {
    write_word(out, "{\"tier\":", status->tier);
    json_out_raw(out, ",\"landlock_abi\":");
    json_out_unsigned(out, status->landlock);
    json_out_raw(out, ",\"controllers\":");
    json_out_parts(out, status->controllers, ",");
    write_word(out, ",\"network\":", status->network);
    write_word(out, ",\"disk\":", status->disk);
    if (status->slots > 0) {
        json_out_raw(out, ",\"slots\":");
        json_out_unsigned(out, status->slots);
    }
    json_out_raw(out, ",\"reasons\":");
    json_out_parts(out, status->weaker, "; ");
    json_out_raw(out, "}");
}

static void write_checkpoints(struct json_out *out,
                              const struct executor_status *status) {
    const char *reason = status->no_checkpoints;

    json_out_raw(out, ",\"checkpoints\":{\"active\":");
    json_out_bool(out, !*reason && *status->tier);
    if (*reason) {
        json_out_raw(out, ",\"reason\":");
        json_out_text(out, reason);
    }
    json_out_raw(out, "}");
}

static void write_health(struct json_out *out, const void *context) {
    const struct report *report = context;

    json_out_raw(out, report->state.healthy ? "{\"status\":\"healthy\""
                                            : "{\"status\":\"unhealthy\"");
    json_out_raw(out, ",\"active_sessions\":");
    json_out_unsigned(out, report->sessions);
    json_out_raw(out, ",\"version\":\"" PACKAGE_VERSION "\",\"isolation\":");
    write_isolation(out, &report->state.executor);
    write_checkpoints(out, &report->state.executor);
    if (!report->state.healthy) {
        json_out_raw(out, ",\"reason\":");
        json_out_text(out, report->state.executor.reason);
    }
    json_out_raw(out, "}");
}

static void health_route(struct app *app, struct exchange *exchange, struct slice id) {
    struct report report = {.sessions = sessions_count(app->sessions)};

    (void)id;
    exchange->quiet = true;
    health_get(&app->health, &report.state);
    if (app->adopting && report.state.healthy) {
        report.state.healthy = false;
        snprintf(report.state.executor.reason, sizeof report.state.executor.reason, "%s",
                 adopting_reason);
    }
    exchange->outcome = report.state.healthy ? "healthy" : "unhealthy";
    exchange_answer(exchange, report.state.healthy ? 200 : 503, write_health, &report);
}

/* ---- all of them ---- */

static void code_route(struct app *app, struct exchange *exchange, struct slice id) {
    (void)id;
    exec_route(app, exchange);
}

static const struct route routes[] = {
    {"/exec", NULL, "exec", HTTP_POST, "POST", code_route},
    {"/sessions", NULL, "sessions", HTTP_GET, "GET, HEAD", sessions_route},
    {"/sessions/", "", "end", HTTP_DELETE, "DELETE", session_end_route},
    {"/sessions/", "/interrupt", "interrupt", HTTP_POST, "POST", session_interrupt_route},
    {"/health", NULL, "health", HTTP_GET, "GET, HEAD", health_route},
};

static bool is(struct slice text, const char *expected) {
    return text.size == strlen(expected) && memcmp(text.data, expected, text.size) == 0;
}

/* Whether the path is the route's; *id is what stands in the place of the session's. */
static bool leads_to(const struct route *route, struct slice path, struct slice *id) {
    size_t before = strlen(route->before);

    *id = (struct slice){NULL, 0};
    if (!route->after)
        return is(path, route->before);
    if (path.size <= before || memcmp(path.data, route->before, before) != 0)
        return false;
    struct slice rest = {path.data + before, path.size - before};
    const char *end = memchr(rest.data, '/', rest.size);
    size_t size = end ? (size_t)(end - rest.data) : rest.size;
    *id = (struct slice){rest.data, size};
    return size > 0 &&
           is((struct slice){rest.data + size, rest.size - size}, route->after);
}

static const struct route *find_route(struct slice path, struct slice *id) {
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (leads_to(&routes[i], path, id))
            return &routes[i];
    return NULL;
}

static void dispatch(struct app *app, struct exchange *exchange) {
    struct slice id;
    const struct route *route = find_route(exchange->request.path, &id);
    enum http_method method = exchange->request.method;
    struct viv_error err;

    if (!route) {
        viv_fail(&err, VIV_NOT_FOUND, "There is nothing at this path");
        error_reply(exchange, &err, NULL);
        return;
    }
    exchange->route = route->name;
    if (method != route->method && !(method == HTTP_HEAD && route->method == HTTP_GET)) {
        exchange->head.allow = route->allow;
        viv_fail(&err, VIV_METHOD, "This path takes %s", route->allow);
        error_reply(exchange, &err, NULL);
        return;
    }
    if (app->adopting && route->handle != health_route) {
        viv_fail(&err, VIV_UNAVAILABLE, "%s", adopting_reason);
        error_reply(exchange, &err, NULL);
        return;
    }
    route->handle(app, exchange, id);
}

void routes_handle(struct app *app, const struct http_connection *connection) {
    struct exchange exchange = {.connection = connection,
                                .route = "-",
                                .outcome = "ok",
                                .begun = viv_now(),
                                .wait_ms = -1,
                                .run_ms = -1};
    struct viv_error err;

    snprintf(exchange.id, sizeof exchange.id, "%08x%08x", app->instance, ++app->requests);
    if (http_request_read(connection, &app->trusted, &exchange.request, &err))
        error_reply(&exchange, &err, NULL);
    else
        dispatch(app, &exchange);
    exchange_log(&exchange);
}
