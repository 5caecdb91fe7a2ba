/* SPDX-License-Identifier: MIT */
/*
 * POST /exec for tests, from the variables of the web server to the answer, with an
 * executor and sandboxes of make-believe behind it. The code of a request is in the
 * language of fake_sandbox.h.
 */
#ifndef VIV_TESTS_EXEC_FIXTURE_H
#define VIV_TESTS_EXEC_FIXTURE_H

#include "common/log.h"
#include "fcgi-app/routes.h"
#include "tests/unit/fake_executor.h"
#include "tests/unit/memory_connection.h"
#include "tests/unit/unit.h"

struct fixture {
    struct fake_executor fake;
    int stop;
    struct settings settings;
    struct app app;
};

static inline void app_start(struct fixture *fixture) {
    assert_int_equal(app_init(&fixture->app, &fixture->settings, NULL), 0);
}

static inline int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);

    viv_log_set_level(VIV_LOG_ERROR);
    fake_executor_start(&fixture->fake, &fixture->stop);
    settings_init(&fixture->settings);
    free(fixture->settings.executor_socket);
    fixture->settings.executor_socket = strdup(fixture->fake.path);
    fixture->settings.rate_limit = 0;
    fixture->settings.threads = 8;
    fixture->settings.reserved_threads = 4;
    app_start(fixture);
    *state = fixture;
    return 0;
}

static inline int tear_down(void **state) {
    struct fixture *fixture = *state;

    assert_int_equal(fixture->app.bytes.used, 0);
    assert_int_equal(fixture->app.calls.used, 0);
    app_clear(&fixture->app);
    fake_executor_stop(&fixture->fake, fixture->stop);
    settings_clear(&fixture->settings);
    free(fixture);
    return 0;
}

/* An answer to POST /exec. */
struct answer {
    int status;
    json_t *json;
    struct memory_connection memory;
    char target[256];
    char *body;
};

static inline void post_body(struct fixture *fixture, const char *id, const char *body,
                             struct answer *answer) {
    snprintf(answer->target, sizeof answer->target, "/exec?sessionId=%s", id);
    memory_init(&answer->memory, "POST", answer->target);
    memory_set_body(&answer->memory, body, strlen(body));
    routes_handle(&fixture->app, &answer->memory.connection);
    assert_int_equal(answer->memory.ended, 1);
    answer->status = memory_status(&answer->memory);
    answer->json = memory_json(&answer->memory);
    assert_non_null(answer->json);
    char length[64];
    size_t size = 0;
    memory_body(&answer->memory, &size);
    snprintf(length, sizeof length, "Content-Length: %zu", size);
    assert_true(memory_has_line(&answer->memory, length));
}

static inline void post(struct fixture *fixture, const char *id, const char *code,
                        struct answer *answer) {
    json_t *request = json_pack("{s:s}", "code", code);
    answer->body = json_dumps(request, 0);

    post_body(fixture, id, answer->body, answer);
    free(answer->body);
    json_decref(request);
}

static inline void drop(struct answer *answer) {
    json_decref(answer->json);
    memory_clear(&answer->memory);
}

/* The value at a path as "result.std_out". */
static inline json_t *at(const struct answer *answer, const char *path) {
    json_t *value = answer->json;
    char *copy = strdup(path), *rest = copy, *name;

    while ((name = strsep(&rest, ".")))
        value = json_object_get(value, name);
    free(copy);
    return value;
}

static inline const char *text(const struct answer *answer, const char *path) {
    const char *found = json_string_value(at(answer, path));

    return found ? found : "(none)";
}

static inline void assert_session(const struct answer *answer, bool created,
                                  const char *lost, int count) {
    assert_int_equal(json_is_true(at(answer, "session.created")), created);
    assert_string_equal(text(answer, "session.lost"), lost);
    assert_int_equal(json_integer_value(at(answer, "session.execution_count")), count);
}

static inline void expect(struct fixture *fixture, const char *id, const char *code,
                          bool created, const char *lost, int count) {
    struct answer answer;

    post(fixture, id, code, &answer);
    assert_int_equal(answer.status, 200);
    assert_session(&answer, created, lost, count);
    drop(&answer);
}

static inline void expect_error(struct fixture *fixture, const char *id, const char *code,
                                int status, const char *type, bool retry) {
    struct answer answer;

    post(fixture, id, code, &answer);
    assert_int_equal(answer.status, status);
    assert_string_equal(text(&answer, "error.type"), type);
    assert_null(at(&answer, "session"));
    assert_int_equal(memmem(answer.memory.answer.data, answer.memory.answer.size,
                            "\r\nRetry-After: ", 15) != NULL,
                     retry);
    drop(&answer);
}

/* A thread that makes a call in the session "a". */
struct caller {
    struct fixture *fixture;
    pthread_t thread;
    const char *code;
    struct answer answer; /* when it has been joined */
};

static inline void *caller_main(void *context) {
    struct caller *caller = context;

    post(caller->fixture, "a", caller->code, &caller->answer);
    return NULL;
}

static inline void caller_start(struct caller *caller, struct fixture *fixture,
                                const char *code) {
    caller->fixture = fixture;
    caller->code = code;
    assert_int_equal(pthread_create(&caller->thread, NULL, caller_main, caller), 0);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
