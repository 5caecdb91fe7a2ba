/* SPDX-License-Identifier: MIT */
#include "fcgi-app/app.h"

int app_init(struct app *app, const struct settings *settings, struct viv_error *err) {
    const struct session_limits limits = {
        .max_sessions = settings->max_sessions,
        .max_sessions_per_client = settings->max_sessions_per_client,
        .max_queued = settings->max_queued,
        .max_queue_wait = settings->max_queue_wait,
        .idle_timeout = settings->session_idle_timeout,
    };
    struct hash_key seed = hash_key_new();

    *app =
        (struct app){.settings = settings,
                     .bytes = {.limit = settings->max_in_flight},
                     .calls = {.limit = settings->threads - settings->reserved_threads},
                     .max_body = settings_max_body(settings),
                     .log_key = hash_key_new(),
                     .instance = (uint32_t)seed.words[0]};
    if (networks_parse("trusted_proxies", settings->trusted_proxies, &app->trusted, err))
        return -1;
    app->sessions = sessions_new(&limits);
    app->rate = rate_limit_new(settings->rate_limit);
    executor_client_init(&app->executor, settings->executor_socket);
    health_init(&app->health, &app->executor);
    return 0;
}

void app_clear(struct app *app) {
    health_clear(&app->health);
    executor_client_clear(&app->executor);
    rate_limit_free(app->rate);
    sessions_free(app->sessions);
    networks_clear(&app->trusted);
}
