/* SPDX-License-Identifier: MIT */
#include "fcgi-app/routes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fcgi-app/error_reply.h"
#include "fcgi-app/exchange.h"
#include "fcgi-app/exec_route.h"

struct route {
    const char *path;
    const char *name; /* in the log */
    enum http_method method;
    const char *allow; /* the header of that name */
    void (*handle)(struct app *app, struct exchange *exchange);
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

static void sessions_route(struct app *app, struct exchange *exchange) {
    struct listing listing;

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

static void write_health(struct json_out *out, const void *context) {
    const struct report *report = context;

    json_out_raw(out, report->state.healthy ? "{\"status\":\"healthy\""
                                            : "{\"status\":\"unhealthy\"");
    json_out_raw(out, ",\"active_sessions\":");
    json_out_unsigned(out, report->sessions);
    json_out_raw(out, ",\"version\":\"" PACKAGE_VERSION "\",\"isolation\":");
    write_isolation(out, &report->state.executor);
    if (!report->state.healthy) {
        json_out_raw(out, ",\"reason\":");
        json_out_text(out, report->state.executor.reason);
    }
    json_out_raw(out, "}");
}

static void health_route(struct app *app, struct exchange *exchange) {
    struct report report = {.sessions = sessions_count(app->sessions)};

    exchange->quiet = true;
    health_get(&app->health, &report.state);
    exchange->outcome = report.state.healthy ? "healthy" : "unhealthy";
    exchange_answer(exchange, report.state.healthy ? 200 : 503, write_health, &report);
}

/* ---- all of them ---- */

static const struct route routes[] = {
    {"/exec", "exec", HTTP_POST, "POST", exec_route},
    {"/sessions", "sessions", HTTP_GET, "GET, HEAD", sessions_route},
    {"/health", "health", HTTP_GET, "GET, HEAD", health_route},
};

static const struct route *find_route(struct slice path) {
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (strlen(routes[i].path) == path.size &&
            memcmp(routes[i].path, path.data, path.size) == 0)
            return &routes[i];
    return NULL;
}

static void dispatch(struct app *app, struct exchange *exchange) {
    const struct route *route = find_route(exchange->request.path);
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
    route->handle(app, exchange);
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
