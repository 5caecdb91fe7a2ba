/* SPDX-License-Identifier: MIT */
/* Paths, methods, the list of sessions and the health; POST /exec has tests of its
 * own. */
#include "tests/unit/unit.h"

#include "common/log.h"
#include "fcgi-app/routes.h"
#include "tests/unit/fake_executor.h"
#include "tests/unit/memory_connection.h"

struct fixture {
    struct fake_executor fake;
    int stop;
    struct settings settings;
    struct app app;
    struct memory_connection memory;
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);

    viv_log_set_level(VIV_LOG_ERROR);
    fake_executor_start(&fixture->fake, &fixture->stop);
    settings_init(&fixture->settings);
    free(fixture->settings.executor_socket);
    fixture->settings.executor_socket = strdup(fixture->fake.path);
    assert_int_equal(app_init(&fixture->app, &fixture->settings, NULL), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;

    memory_clear(&fixture->memory);
    app_clear(&fixture->app);
    fake_executor_stop(&fixture->fake, fixture->stop);
    settings_clear(&fixture->settings);
    free(fixture);
    return 0;
}

/* Returns the status. */
static int ask(struct fixture *fixture, const char *method, const char *target) {
    memory_clear(&fixture->memory);
    memory_init(&fixture->memory, method, target);
    routes_handle(&fixture->app, &fixture->memory.connection);
    return memory_status(&fixture->memory);
}

static size_t body_size(const struct fixture *fixture) {
    size_t size = SIZE_MAX;

    assert_non_null(memory_body(&fixture->memory, &size));
    return size;
}

static void unknown_paths_are_not_found(void **state) {
    static const char *const targets[] = {"/",
                                          "",
                                          "/exec/",
                                          "/Exec",
                                          "/execute",
                                          "//exec",
                                          "/health/x",
                                          "*",
                                          "/..",
                                          "/%65xec",
                                          "/sessions/",
                                          "/sessions//",
                                          "/sessions//interrupt",
                                          "/sessions/a/",
                                          "/sessions/a/b",
                                          "/sessions/a/interrupt/",
                                          "/sessionsa",
                                          "/sessions/a%2Finterrupt/x",
                                          "/sessions?"};
    struct fixture *fixture = *state;

    for (size_t i = 0; i + 1 < COUNT_OF(targets); i++)
        assert_int_equal(ask(fixture, "GET", targets[i]), 404);
    assert_int_equal(ask(fixture, "GET", targets[COUNT_OF(targets) - 1]), 200);
    assert_int_equal(ask(fixture, "DELETE", "/nothing"), 404);
}

static void other_methods_are_told_which_are_allowed(void **state) {
    static const struct {
        const char *method, *target, *allow;
    } cases[] = {{"GET", "/exec", "Allow: POST"},
                 {"HEAD", "/exec", "Allow: POST"},
                 {"PUT", "/exec", "Allow: POST"},
                 {"OPTIONS", "/exec", "Allow: POST"},
                 {"POST", "/health", "Allow: GET, HEAD"},
                 {"DELETE", "/sessions", "Allow: GET, HEAD"},
                 {"GET", "/sessions/a", "Allow: DELETE"},
                 {"HEAD", "/sessions/a", "Allow: DELETE"},
                 {"POST", "/sessions/interrupt", "Allow: DELETE"},
                 {"OPTIONS", "/sessions/%2F", "Allow: DELETE"},
                 {"DELETE", "/sessions/a/interrupt", "Allow: POST"},
                 {"GET", "/sessions/%00/interrupt?x", "Allow: POST"},
                 {"post", "/exec", "Allow: POST"}};
    struct fixture *fixture = *state;

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_int_equal(ask(fixture, cases[i].method, cases[i].target), 405);
        assert_true(memory_has_line(&fixture->memory, cases[i].allow));
        bool bodyless = cases[i].method[0] == 'H' || cases[i].method[0] == 'O';
        assert_int_equal(body_size(fixture) == 0, bodyless);
    }
}

/* Fails unless `value` is what the text says, which has ' for ". */
static void assert_json_equal(const json_t *value, const char *text) {
    CLEANUP(free_ptr) char *json = viv_xstrdup(text);

    for (char *quote = json; (quote = strchr(quote, '\'')); quote++)
        *quote = '"';
    json_t *expected = json_loads(json, 0, NULL);
    assert_non_null(expected);
    if (!json_equal(value, expected))
        fail_msg("not %s", text);
    json_decref(expected);
}

static void health_tells_version_sessions_and_isolation(void **state) {
    struct fixture *fixture = *state;
    const char *status, *version;
    json_t *isolation, *checkpoints;
    int count;

    assert_int_equal(ask(fixture, "GET", "/health"), 200);
    json_t *answer = memory_json(&fixture->memory);
    assert_int_equal(json_unpack(answer, "{s:s, s:i, s:s, s:o, s:o !}", "status", &status,
                                 "active_sessions", &count, "version", &version,
                                 "isolation", &isolation, "checkpoints", &checkpoints),
                     0);
    assert_string_equal(status, "healthy");
    assert_string_equal(version, PACKAGE_VERSION);
    assert_int_equal(count, 0);
    assert_json_equal(isolation,
                      "{'tier':'full','landlock_abi':6,'controllers':['memory','pids',"
                      "'cpu'],'network':'namespace','disk':'quota','reasons':[]}");
    assert_json_equal(checkpoints, "{'active':true}");
    json_decref(answer);
    assert_int_equal(ask(fixture, "HEAD", "/health"), 200);
    assert_int_equal(body_size(fixture), 0);
    assert_false(memory_has_line(&fixture->memory, "Content-Length: 0"));
}

static void assert_isolation(struct fixture *fixture, const char *status,
                             const char *expected) {
    fixture->app.health.known = false; /* forget what was kept */
    fixture->fake.status = status;
    ask(fixture, "GET", "/health");
    json_t *answer = memory_json(&fixture->memory);
    assert_json_equal(json_object_get(answer, "isolation"), expected);
    json_decref(answer);
}

static void isolation_tells_slots_and_why_it_is_not_better(void **state) {
    assert_isolation(*state,
                     "tier=confined\nlandlock=7\nslots=32\nnetwork=seccomp\ndisk=watch\n"
                     "controllers=\nweaker=user namespace: EPERM; \"cgroup\", v2: none\n",
                     "{'tier':'confined','landlock_abi':7,'controllers':[],"
                     "'network':'seccomp','disk':'watch','slots':32,"
                     "'reasons':['user namespace: EPERM','\\\"cgroup\\\", v2: none']}");
    assert_isolation(*state, "controllers=cpu\nweaker=one; ",
                     "{'tier':'unknown','landlock_abi':0,'controllers':['cpu'],"
                     "'network':'unknown','disk':'unknown','reasons':['one']}");
}

static void checkpoints_that_are_not_made_have_a_reason(void **state) {
    struct fixture *fixture = *state;

    fixture->fake.status = "tier=full\nno_checkpoints=the setting checkpoint is off\n";
    assert_int_equal(ask(fixture, "GET", "/health"), 200);
    json_t *answer = memory_json(&fixture->memory);
    assert_json_equal(json_object_get(answer, "checkpoints"),
                      "{'active':false,'reason':'the setting checkpoint is off'}");
    json_decref(answer);
}

static void assert_unhealthy(struct fixture *fixture, const char *expected) {
    const char *status, *reason;

    fixture->app.health.known = false; /* forget what was kept */
    assert_int_equal(ask(fixture, "GET", "/health"), 503);
    json_t *answer = memory_json(&fixture->memory);
    assert_int_equal(
        json_unpack(answer, "{s:s, s:s}", "status", &status, "reason", &reason), 0);
    assert_string_equal(status, "unhealthy");
    assert_string_equal(reason, expected);
    json_decref(answer);
}

static void what_is_wrong_makes_it_unhealthy(void **state) {
    struct fixture *fixture = *state;

    fixture->fake.status = "tier=full\nreason=the zygote does not start\n";
    assert_unhealthy(fixture, "the zygote does not start");
    fixture->app.executor.path = "/nonexistent";
    assert_unhealthy(fixture, "vivarium-executor cannot be reached");
    fixture->app.executor.path = fixture->fake.path;
    fixture->fake.silent = true;
    assert_unhealthy(fixture, "vivarium-executor cannot be reached");
}

static void health_is_kept_for_a_moment(void **state) {
    struct fixture *fixture = *state;

    assert_int_equal(ask(fixture, "GET", "/health"), 200);
    fixture->app.health.asked = viv_now() + 60 * VIV_SECOND;
    fixture->fake.status = "reason=broken\n";
    assert_int_equal(ask(fixture, "GET", "/health"), 200);
    fixture->app.health.asked = viv_now() - HEALTH_KEPT_MS * VIV_MS;
    assert_int_equal(ask(fixture, "GET", "/health"), 503);
}

static void sessions_are_listed(void **state) {
    struct fixture *fixture = *state;
    const struct session_visit visit = {.id = "\xe2\x98\x95 \"x\"", .client = "c"};
    const char *id, *session_state;
    json_int_t created, used, count;
    double age, idle;

    assert_int_equal(ask(fixture, "GET", "/sessions"), 200);
    json_t *answer = memory_json(&fixture->memory);
    assert_int_equal(json_array_size(json_object_get(answer, "sessions")), 0);
    json_decref(answer);

    struct session *session = sessions_enter(fixture->app.sessions, &visit, NULL);
    sessions_begin_execution(fixture->app.sessions, session);
    for (int busy = 1; busy >= 0; busy--) {
        assert_int_equal(ask(fixture, "GET", "/sessions"), 200);
        answer = memory_json(&fixture->memory);
        assert_int_equal(
            json_unpack(answer, "{s:[{s:s, s:I, s:I, s:f, s:f, s:s, s:I !}!] !}",
                        "sessions", "id", &id, "createdAt", &created, "lastAccessedAt",
                        &used, "ageMinutes", &age, "idleMinutes", &idle, "state",
                        &session_state, "execution_count", &count),
            0);
        assert_string_equal(id, visit.id);
        assert_true(created > INT64_C(1600000000000) && used >= created);
        assert_true(age >= idle && idle >= 0);
        assert_string_equal(session_state, busy ? "busy" : "idle");
        assert_int_equal(count, 1);
        json_decref(answer);
        if (busy)
            sessions_leave(fixture->app.sessions, session);
    }
}

static void assert_done(struct fixture *fixture, const char *method, const char *target,
                        bool running) {
    assert_int_equal(ask(fixture, method, target), 200);
    json_t *answer = memory_json(&fixture->memory);
    assert_json_equal(answer, running ? "{'success':true,'interrupted':true}"
                                      : "{'success':true,'interrupted':false}");
    json_decref(answer);
}

/* Enters the session of that id; it has run something. */
static struct session *enter(struct fixture *fixture, const char *id) {
    const struct session_visit visit = {.id = id, .client = "c"};
    struct session *session = sessions_enter(fixture->app.sessions, &visit, NULL);

    sessions_begin_execution(fixture->app.sessions, session);
    return session;
}

static void sessions_are_interrupted_by_their_path(void **state) {
    struct fixture *fixture = *state;
    struct sessions *sessions = fixture->app.sessions;

    assert_int_equal(ask(fixture, "POST", "/sessions/a%2Fb/interrupt"), 404);
    assert_int_equal(ask(fixture, "POST", "/sessions/a%00/interrupt"), 422);
    struct session *session = enter(fixture, "a/b");
    assert_int_equal(sessions_wish(sessions, session), WISH_NONE);
    assert_done(fixture, "POST", "/sessions/a%2fb/interrupt?x=y", true);
    assert_done(fixture, "POST", "/sessions/a%2Fb/interrupt", true);
    assert_int_equal(sessions_wish(sessions, session), WISH_INTERRUPT);
    sessions_leave(sessions, session);
    assert_done(fixture, "POST", "/sessions/%61%2Fb/interrupt", false);
    session = enter(fixture, "a/b");
    assert_int_equal(sessions_wish(sessions, session), WISH_NONE);
    sessions_leave(sessions, session);
}

static void a_page_has_to_ask_first(void **state) {
    struct fixture *fixture = *state;

    sessions_leave(fixture->app.sessions, enter(fixture, "a"));
    for (int i = 0; i < 2; i++) {
        memory_clear(&fixture->memory);
        memory_init(&fixture->memory, "POST", "/sessions/a/interrupt");
        fixture->memory.origin = "null";
        fixture->memory.content_type = i == 0 ? "text/plain" : "application/json";
        routes_handle(&fixture->app, &fixture->memory.connection);
        assert_int_equal(memory_status(&fixture->memory), i == 0 ? 415 : 200);
    }
}

static void sessions_are_ended_by_their_path(void **state) {
    struct fixture *fixture = *state;
    struct sessions *sessions = fixture->app.sessions;

    assert_int_equal(ask(fixture, "DELETE", "/sessions/interrupt"), 404);
    assert_int_equal(ask(fixture, "DELETE", "/sessions/%ff"), 422);
    sessions_leave(sessions, enter(fixture, "interrupt"));
    assert_done(fixture, "DELETE", "/sessions/interrupt", false);
    assert_int_equal(ask(fixture, "DELETE", "/sessions/interrupt"), 404);
    assert_int_equal(fixture->fake.ended, 0);
    struct session *session = enter(fixture, "a");
    sessions_set_sandbox(sessions, session, 7, -1);
    assert_done(fixture, "DELETE", "/sessions/a", true);
    assert_int_equal(fixture->fake.ended, 1);
    assert_int_equal(sessions_count(sessions), 0);
    assert_int_equal(sessions_wish(sessions, session), WISH_END);
    assert_int_equal(sessions_leave(sessions, session), 7);
}

/* It is gone all the same; what is left of it is found later. */
static void an_end_that_the_executor_does_not_hear_is_said(void **state) {
    struct fixture *fixture = *state;
    struct session *session = enter(fixture, "a");

    sessions_set_sandbox(fixture->app.sessions, session, 7, -1);
    sessions_leave(fixture->app.sessions, session);
    fixture->app.executor.path = "/nonexistent";
    assert_int_equal(ask(fixture, "DELETE", "/sessions/a"), 503);
    assert_true(memory_has_line(&fixture->memory, "Retry-After: 2"));
    fixture->app.executor.path = fixture->fake.path;
    assert_int_equal(ask(fixture, "DELETE", "/sessions/a"), 404);
}

/* Its session may be one of those. */
static void nothing_is_answered_before_the_sessions_of_before_are_known(void **state) {
    static const char *const requests[][2] = {
        {"POST", "/exec?sessionId=a"}, {"POST", "/sessions/a/interrupt"},
        {"DELETE", "/sessions/a"},     {"GET", "/sessions"},
        {"HEAD", "/sessions"},
    };
    struct fixture *fixture = *state;

    sessions_leave(fixture->app.sessions, enter(fixture, "a"));
    fixture->app.adopting = true;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        assert_int_equal(ask(fixture, requests[i][0], requests[i][1]), 503);
        assert_true(memory_has_line(&fixture->memory, "Retry-After: 2"));
    }
    assert_int_equal(ask(fixture, "GET", "/health"), 503);
    json_t *health = memory_json(&fixture->memory);
    assert_string_equal(json_string_value(json_object_get(health, "reason")),
                        "the sessions of before are not known yet");
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(health, "isolation"), "tier")),
        "full");
    json_decref(health);
    fixture->app.adopting = false;
    assert_int_equal(ask(fixture, "GET", "/health"), 200);
    assert_int_equal(ask(fixture, "GET", "/sessions"), 200);
}

static void a_malformed_length_is_a_malformed_request(void **state) {
    struct fixture *fixture = *state;

    memory_init(&fixture->memory, "POST", "/exec?sessionId=a");
    strcpy(fixture->memory.length, "ten");
    routes_handle(&fixture->app, &fixture->memory.connection);
    assert_int_equal(memory_status(&fixture->memory), 400);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        with_fixture(unknown_paths_are_not_found),
        with_fixture(other_methods_are_told_which_are_allowed),
        with_fixture(health_tells_version_sessions_and_isolation),
        with_fixture(isolation_tells_slots_and_why_it_is_not_better),
        with_fixture(checkpoints_that_are_not_made_have_a_reason),
        with_fixture(what_is_wrong_makes_it_unhealthy),
        with_fixture(health_is_kept_for_a_moment),
        with_fixture(sessions_are_listed),
        with_fixture(sessions_are_interrupted_by_their_path),
        with_fixture(a_page_has_to_ask_first),
        with_fixture(sessions_are_ended_by_their_path),
        with_fixture(an_end_that_the_executor_does_not_hear_is_said),
        with_fixture(nothing_is_answered_before_the_sessions_of_before_are_known),
        with_fixture(a_malformed_length_is_a_malformed_request),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
