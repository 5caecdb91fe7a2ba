/* SPDX-License-Identifier: MIT */
/* The threads behind a listening socket: many requests at once, and how they stop. */
#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>

#include "common/log.h"
#include "fcgi-app/fastcgi.h"
#include "fcgi-app/listener.h"
#include "fcgi-app/server.h"
#include "fcgi-app/session_table.h"
#include "tests/unit/fake_executor.h"
#include "tests/unit/fastcgi_client.h"

struct fixture {
    struct fake_executor fake;
    int stop;
    struct settings settings;
    struct app app;
    struct listener listener;
    struct server server;
    char path[108];
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    char address[128];

    viv_log_set_level(VIV_LOG_ERROR);
    fake_executor_start(&fixture->fake, &fixture->stop);
    settings_init(&fixture->settings);
    free(fixture->settings.executor_socket);
    fixture->settings.executor_socket = strdup(fixture->fake.path);
    fixture->settings.rate_limit = 0;
    fixture->settings.threads = 6;
    fixture->settings.reserved_threads = 2;
    assert_int_equal(app_init(&fixture->app, &fixture->settings, NULL), 0);
    snprintf(fixture->path, sizeof fixture->path, "%s/fcgi.sock",
             fixture->fake.directory);
    snprintf(address, sizeof address, "unix:%s", fixture->path);
    assert_int_equal(listener_open(&fixture->listener, address, "", -1, NULL), 0);
    assert_int_equal(
        server_start(&fixture->server, &fixture->app, &fixture->listener, NULL), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    char lock[128];

    listener_close(&fixture->listener);
    snprintf(lock, sizeof lock, "%s.lock", fixture->path);
    unlink(lock);
    app_clear(&fixture->app);
    fake_executor_stop(&fixture->fake, fixture->stop);
    settings_clear(&fixture->settings);
    free(fixture);
    return 0;
}

/* One request in a thread. */
struct client {
    struct fixture *fixture;
    pthread_t thread;
    char target[64];
    const char *method, *body;
    struct buffer answer;
    atomic_bool answered;
};

static void *run_client(void *context) {
    struct client *client = context;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char length[32];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const char *const variables[] = {"REQUEST_METHOD",
                                     client->method,
                                     "REQUEST_URI",
                                     client->target,
                                     "CONTENT_TYPE",
                                     "application/json",
                                     "CONTENT_LENGTH",
                                     length,
                                     "REMOTE_ADDR",
                                     "192.0.2.1",
                                     NULL};

    snprintf(length, sizeof length, "%zu", strlen(client->body));
    snprintf(address.sun_path, sizeof address.sun_path, "%s", client->fixture->path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address))
        abort();
    client_begin(fd, false);
    client_variables(fd, variables);
    client_body(fd, client->body, strlen(client->body));
    client_answer(fd, &client->answer);
    client->answered = true;
    return NULL;
}

static void start_client(struct client *client, struct fixture *fixture,
                         const char *target, const char *body) {
    *client = (struct client){
        .fixture = fixture, .method = body ? "POST" : "GET", .body = body ? body : ""};
    snprintf(client->target, sizeof client->target, "%s", target);
    assert_int_equal(pthread_create(&client->thread, NULL, run_client, client), 0);
}

/* The status of the client's answer, 0 for none. */
static int finish_client(struct client *client) {
    int status = 0;

    pthread_join(client->thread, NULL);
    if (client->answer.size > 0 &&
        buffer_append(&client->answer, "", 1, SIZE_MAX / 2, NULL) == 0)
        sscanf(client->answer.data, "Status: %d", &status);
    buffer_clear(&client->answer);
    return status;
}

static void wait_until_busy(struct fixture *fixture, size_t sessions) {
    while (sessions_count(fixture->app.sessions) < sessions)
        usleep(1000);
}

#define WAITING "{\"code\": \"wait\\nprint\"}"

static void many_requests_are_answered(void **state) {
    struct fixture *fixture = *state;
    struct client clients[12];

    for (int round = 0; round < 10; round++) {
        for (size_t i = 0; i < COUNT_OF(clients); i++)
            start_client(&clients[i], fixture, i % 3 ? "/sessions" : "/nothing", NULL);
        for (size_t i = 0; i < COUNT_OF(clients); i++)
            assert_int_equal(finish_client(&clients[i]), i % 3 ? 200 : 404);
    }
    assert_true(server_stop(&fixture->server, viv_after_ms(60000)));
}

static void calls_never_hold_all_threads(void **state) {
    struct fixture *fixture = *state;
    struct client calls[4], health, one_more;

    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        char target[64];
        snprintf(target, sizeof target, "/exec?sessionId=s%zu", i);
        start_client(&calls[i], fixture, target, WAITING);
    }
    wait_until_busy(fixture, COUNT_OF(calls));
    start_client(&one_more, fixture, "/exec?sessionId=more", WAITING);
    assert_int_equal(finish_client(&one_more), 503);
    start_client(&health, fixture, "/health", NULL);
    assert_int_equal(finish_client(&health), 200);
    fixture->fake.gate = true;
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        assert_int_equal(finish_client(&calls[i]), 200);
    assert_true(server_stop(&fixture->server, viv_after_ms(60000)));
}

static void a_stop_lets_running_calls_end(void **state) {
    struct fixture *fixture = *state;
    struct client running, waiting;

    start_client(&running, fixture, "/exec?sessionId=a", WAITING);
    wait_until_busy(fixture, 1);
    start_client(&waiting, fixture, "/exec?sessionId=a", WAITING);
    while (fixture->app.calls.used < 2)
        usleep(1000);
    sessions_stop(fixture->app.sessions);
    assert_int_equal(finish_client(&waiting), 503);
    assert_false(server_stop(&fixture->server, viv_after_ms(50)));
    assert_false(running.answered);
    fixture->fake.gate = true;
    assert_true(server_stop(&fixture->server, viv_after_ms(60000)));
    assert_int_equal(finish_client(&running), 200);
}

/* The wait for calls, in a thread of its own. */
struct ending {
    struct server *server;
    sigset_t signals;
    viv_time deadline;
    atomic_bool ended, all;
    pthread_t thread;
};

static void *run_ending(void *context) {
    struct ending *ending = context;

    ending->all = server_finish_calls(ending->server, ending->deadline, &ending->signals);
    ending->ended = true;
    return NULL;
}

static void begin_ending(struct ending *ending, struct fixture *fixture, int64_t ms) {
    *ending = (struct ending){.server = &fixture->server, .deadline = viv_after_ms(ms)};
    sigemptyset(&ending->signals);
    sigaddset(&ending->signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &ending->signals, NULL);
    sessions_stop(fixture->app.sessions);
    assert_int_equal(pthread_create(&ending->thread, NULL, run_ending, ending), 0);
}

static bool finish_ending(struct ending *ending) {
    pthread_join(ending->thread, NULL);
    return ending->all;
}

static void while_calls_end_others_are_answered(void **state) {
    static const char *const targets[] = {"/exec?sessionId=a", "/exec?sessionId=new",
                                          "/sessions"};
    static const int expected[] = {503, 503, 200};
    struct fixture *fixture = *state;
    struct client running, other;
    struct ending ending;

    start_client(&running, fixture, "/exec?sessionId=a", WAITING);
    wait_until_busy(fixture, 1);
    begin_ending(&ending, fixture, 60000);
    for (size_t i = 0; i < COUNT_OF(targets); i++) {
        start_client(&other, fixture, targets[i], i < 2 ? WAITING : NULL);
        assert_int_equal(finish_client(&other), expected[i]);
    }
    assert_false(ending.ended);
    fixture->fake.gate = true;
    assert_true(finish_ending(&ending));
    assert_true(server_stop(&fixture->server, viv_after_ms(60000)));
    assert_int_equal(finish_client(&running), 200);
}

static void a_call_is_waited_for_until_the_deadline_or_a_signal(void **state) {
    struct fixture *fixture = *state;
    struct client running;
    struct ending ending;

    start_client(&running, fixture, "/exec?sessionId=a", WAITING);
    wait_until_busy(fixture, 1);
    begin_ending(&ending, fixture, 50);
    assert_false(finish_ending(&ending));
    begin_ending(&ending, fixture, 3600000);
    assert_int_equal(pthread_kill(ending.thread, SIGUSR1), 0);
    assert_false(finish_ending(&ending));
    fixture->fake.gate = true;
    assert_int_equal(finish_client(&running), 200);
    assert_true(server_stop(&fixture->server, viv_after_ms(60000)));
}

/* With all threads but one held, most of these are still in the socket's queue. */
static void who_has_connected_before_the_end_is_answered(void **state) {
    struct fixture *fixture = *state;
    struct client calls[4], others[20];

    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        char target[64];
        snprintf(target, sizeof target, "/exec?sessionId=s%zu", i);
        start_client(&calls[i], fixture, target, WAITING);
    }
    wait_until_busy(fixture, COUNT_OF(calls));
    pthread_mutex_lock(&fixture->app.sessions->lock);
    for (size_t i = 0; i < COUNT_OF(others); i++)
        start_client(&others[i], fixture, "/sessions", NULL);
    usleep(300000); /* they connect; the lock that an answer takes is held */
    assert_false(server_stop(&fixture->server, viv_now()));
    pthread_mutex_unlock(&fixture->app.sessions->lock);
    fixture->fake.gate = true;
    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_int_equal(finish_client(&others[i]), 200);
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        assert_int_equal(finish_client(&calls[i]), 200);
    assert_true(server_stop(&fixture->server, viv_after_ms(60000)));
}

static void connections_without_a_request_are_nothing(void **state) {
    struct fixture *fixture = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct client client;

    snprintf(address.sun_path, sizeof address.sun_path, "%s", fixture->path);
    for (int i = 0; i < 20; i++) {
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
        client_send(fd, "garbage", (size_t)(i % 7));
        close(fd);
    }
    start_client(&client, fixture, "/health", NULL);
    assert_int_equal(finish_client(&client), 200);
    assert_true(server_stop(&fixture->server, viv_after_ms(60000)));
}

static int set_up_group(void **state) {
    (void)state;
    return fastcgi_set_up(NULL);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

/* Calls that begin while none of us runs wait for the next one. */
static void a_socket_that_outlives_us_keeps_who_connects(void **state) {
    struct fixture *fixture = *state;
    struct client client;

    fixture->listener.kept = true; /* as far as the server knows */
    assert_true(server_stop(&fixture->server, viv_after_ms(60000)));
    start_client(&client, fixture, "/sessions", NULL);
    usleep(100000);
    assert_false(client.answered);
    assert_int_equal(
        server_start(&fixture->server, &fixture->app, &fixture->listener, NULL), 0);
    assert_int_equal(finish_client(&client), 200);
    assert_true(server_stop(&fixture->server, viv_after_ms(60000)));
    fixture->listener.kept = false;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        with_fixture(many_requests_are_answered),
        with_fixture(calls_never_hold_all_threads),
        with_fixture(a_stop_lets_running_calls_end),
        with_fixture(while_calls_end_others_are_answered),
        with_fixture(a_call_is_waited_for_until_the_deadline_or_a_signal),
        with_fixture(who_has_connected_before_the_end_is_answered),
        with_fixture(a_socket_that_outlives_us_keeps_who_connects),
        with_fixture(connections_without_a_request_are_nothing),
    };

    return cmocka_run_group_tests(tests, set_up_group, NULL);
}
