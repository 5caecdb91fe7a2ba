/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "fcgi-app/fastcgi.h"
#include "tests/unit/fastcgi_client.h"

static const char *const variables[] = {"REQUEST_METHOD",
                                        "POST",
                                        "REQUEST_URI",
                                        "/exec?sessionId=a",
                                        "EMPTY",
                                        "",
                                        "TWICE",
                                        "a",
                                        "TWO",
                                        "a",
                                        "TWICE",
                                        "a",
                                        "TWO",
                                        "b",
                                        NULL};

/* A web server in a thread: sends a request, takes the answer. */
struct client {
    pthread_t thread;
    int fd;
    const pthread_t
        *disturbed; /* gets signals while it waits for the client; NULL: nobody */
    bool keep;
    const char *body;
    size_t body_size;
    struct buffer answer;
    bool ended;
};

static void disturb(const struct client *client) {
    const struct timespec pause = {.tv_nsec = 20000000};

    for (int i = 0; client->disturbed && i < 5; i++) {
        nanosleep(&pause, NULL);
        pthread_kill(*client->disturbed, SIGUSR2);
    }
}

static void *run_client(void *context) {
    struct client *client = context;

    disturb(client);
    client_begin(client->fd, client->keep);
    client_variables(client->fd, variables);
    disturb(client);
    client_body(client->fd, client->body, client->body_size);
    disturb(client);
    client->ended = client_answer(client->fd, &client->answer);
    return NULL;
}

/* Starts the client; returns the request that came of it. */
static struct fastcgi_request *begin(struct client *client) {
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    client->fd = ends[0];
    assert_int_equal(pthread_create(&client->thread, NULL, run_client, client), 0);
    struct fastcgi_request *request = fastcgi_begin(ends[1], NULL);
    assert_non_null(request);
    return request;
}

static void a_request_is_read_and_answered(void **state) {
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        struct client client = {.keep = keep, .body = "hello", .body_size = 5};
        struct fastcgi_request *request = begin(&client);
        const struct http_connection *connection = fastcgi_connection(request);
        char body[5];
        assert_string_equal(connection->variable(connection->context, "REQUEST_METHOD"),
                            "POST");
        assert_string_equal(connection->variable(connection->context, "EMPTY"), "");
        assert_null(connection->variable(connection->context, "REQUEST"));
        assert_string_equal(connection->variable(connection->context, "TWICE"), "a");
        assert_null(connection->variable(connection->context, "TWO"));
        assert_int_equal(connection->read(connection->context, body, 5, NULL), 0);
        assert_memory_equal(body, "hello", 5);
        assert_int_equal(connection->write(connection->context, "answer", 6), 0);
        assert_int_equal(connection->write(connection->context, "", 0), 0);
        connection->end(connection->context);
        fastcgi_free(request);
        pthread_join(client.thread, NULL);
        assert_true(client.ended);
        assert_slice_equal((struct slice){client.answer.data, client.answer.size},
                           "answer");
        buffer_clear(&client.answer);
    }
}

static void large_bodies_and_answers_come_whole(void **state) {
    size_t size = 5000001;
    char *sent = malloc(size), *got = malloc(size);

    (void)state;
    for (size_t i = 0; i < size; i++)
        sent[i] = (char)(i * 7 + i / 251);
    struct client client = {.body = sent, .body_size = size};
    struct fastcgi_request *request = begin(&client);
    const struct http_connection *connection = fastcgi_connection(request);
    assert_int_equal(connection->read(connection->context, got, size, NULL), 0);
    assert_memory_equal(got, sent, size);
    assert_int_equal(connection->write(connection->context, got, size), 0);
    connection->end(connection->context);
    fastcgi_free(request);
    pthread_join(client.thread, NULL);
    assert_int_equal(client.answer.size, size);
    assert_memory_equal(client.answer.data, sent, size);
    buffer_clear(&client.answer);
    free(sent);
    free(got);
}

static void heed(int number) { (void)number; }

/* As a stop of the process would be: system calls end with EINTR. */
static void interruptions_cut_nothing(void **state) {
    const struct sigaction action = {.sa_handler = heed};
    const pthread_t self = pthread_self();
    struct sigaction before;
    size_t size = 2000000;
    char *body = calloc(1, size), *got = malloc(size);

    (void)state;
    assert_int_equal(sigaction(SIGUSR2, &action, &before), 0);
    struct client client = {.disturbed = &self, .body = body, .body_size = size};
    struct fastcgi_request *request = begin(&client);
    const struct http_connection *connection = fastcgi_connection(request);
    assert_int_equal(connection->read(connection->context, got, size, NULL), 0);
    assert_int_equal(connection->write(connection->context, got, size), 0);
    connection->end(connection->context);
    fastcgi_free(request);
    pthread_join(client.thread, NULL);
    assert_true(client.ended);
    assert_int_equal(client.answer.size, size);
    sigaction(SIGUSR2, &before, NULL);
    buffer_clear(&client.answer);
    free(body);
    free(got);
}

static void a_short_body_is_noticed(void **state) {
    struct client client = {.body = "1234", .body_size = 4};
    struct fastcgi_request *request = begin(&client);
    const struct http_connection *connection = fastcgi_connection(request);
    char body[5];
    struct viv_error err;

    (void)state;
    assert_fails(connection->read(connection->context, body, 5, &err), &err, VIV_NOT_JSON,
                 "shorter");
    connection->end(connection->context);
    fastcgi_free(request);
    pthread_join(client.thread, NULL);
}

/* An early answer is not lost because of a body that nobody read. */
static void a_body_need_not_be_read(void **state) {
    size_t size = 2000000;
    char *body = calloc(1, size);
    struct client client = {.body = body, .body_size = size};
    struct fastcgi_request *request = begin(&client);
    const struct http_connection *connection = fastcgi_connection(request);

    (void)state;
    assert_int_equal(connection->write(connection->context, "413", 3), 0);
    connection->end(connection->context);
    fastcgi_free(request);
    pthread_join(client.thread, NULL);
    assert_slice_equal((struct slice){client.answer.data, client.answer.size}, "413");
    assert_true(client.ended);
    buffer_clear(&client.answer);
    free(body);
}

static void what_is_no_request_is_closed(void **state) {
    static const char *const texts[] = {"", "G",
                                        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"};
    struct viv_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        int ends[2];
        char byte;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
        client_send(ends[0], texts[i], strlen(texts[i]));
        shutdown(ends[0], SHUT_WR);
        assert_null(fastcgi_begin(ends[1], &err));
        assert_int_equal(fcntl(ends[1], F_GETFD), -1);
        ssize_t got = recv(ends[0], &byte, 1, 0);
        assert_true(got <= 0);
        close(ends[0]);
    }
}

static void only_a_peer_that_closed_is_gone(void **state) {
    int ends[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    client_begin(ends[0], false);
    client_variables(ends[0], variables);
    client_body(ends[0], "", 0);
    struct fastcgi_request *request = fastcgi_begin(ends[1], NULL);
    assert_non_null(request);
    const struct http_connection *connection = fastcgi_connection(request);
    assert_false(connection->gone(connection->context));
    shutdown(ends[0], SHUT_WR);
    assert_false(connection->gone(connection->context));
    close(ends[0]);
    assert_true(connection->gone(connection->context));
    connection->end(connection->context);
    fastcgi_free(request);
}

/* A connection of TCP over the loopback device: ends[0] is the client's. */
static void connect_over_tcp(int ends[2]) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &size), 0);
    ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(ends[0], (struct sockaddr *)&address, size), 0);
    ends[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_true(ends[1] >= 0);
    close(listener);
}

static struct fastcgi_request *begin_over_tcp(int ends[2]) {
    connect_over_tcp(ends);
    client_begin(ends[0], false);
    client_variables(ends[0], variables);
    client_body(ends[0], "", 0);
    struct fastcgi_request *request = fastcgi_begin(ends[1], NULL);
    assert_non_null(request);
    return request;
}

static void one_that_closed_is_gone_over_tcp_as_well(void **state) {
    int ends[2], asked = 0;
    struct fastcgi_request *request = begin_over_tcp(ends);
    const struct http_connection *connection = fastcgi_connection(request);

    (void)state;
    assert_false(connection->gone(connection->context));
    close(ends[0]);
    /* It is known when its host has answered. */
    while (!connection->gone(connection->context) && ++asked < 2000)
        usleep(10000);
    assert_in_range(asked, 1, 1999);
    connection->end(connection->context);
    fastcgi_free(request);
}

static void one_that_has_said_all_may_still_read_over_tcp(void **state) {
    int ends[2];
    struct fastcgi_request *request = begin_over_tcp(ends);
    const struct http_connection *connection = fastcgi_connection(request);
    char text[4096] = "";

    (void)state;
    shutdown(ends[0], SHUT_WR);
    for (int i = 0; i < 20; i++) {
        assert_false(connection->gone(connection->context));
        usleep(5000);
    }
    assert_int_equal(connection->write(connection->context, "all", 3), 0);
    connection->end(connection->context);
    fastcgi_free(request);
    /* One empty record of stderr, asked once, then what was written. */
    static const unsigned char probe[8] = {1, 7, 0, 1};
    assert_true(client_receive(ends[0], text, 8));
    assert_memory_equal(text, probe, sizeof probe);
    assert_true(client_receive(ends[0], text, 8 + 3));
    assert_int_equal(text[1], FCGI_OUT);
    assert_memory_equal(text + 8, "all", 3);
    close(ends[0]);
}

static void writing_to_one_who_left_fails(void **state) {
    char block[65536] = "";
    int ends[2], failed = 0;

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    client_begin(ends[0], false);
    client_variables(ends[0], variables);
    client_body(ends[0], "", 0);
    struct fastcgi_request *request = fastcgi_begin(ends[1], NULL);
    const struct http_connection *connection = fastcgi_connection(request);
    close(ends[0]);
    for (int i = 0; i < 4 && !failed; i++)
        failed = connection->write(connection->context, block, sizeof block);
    assert_int_equal(failed, -1);
    connection->end(connection->context);
    fastcgi_free(request);
}

static int set_up(void **state) {
    struct sigaction action;

    (void)state;
    assert_int_equal(fastcgi_set_up(NULL), 0);
    sigaction(SIGPIPE, NULL, &action);
    assert_ptr_equal(action.sa_handler, SIG_IGN);
    sigaction(SIGTERM, NULL, &action);
    assert_ptr_equal(action.sa_handler, SIG_DFL);
    sigaction(SIGUSR1, NULL, &action);
    assert_ptr_equal(action.sa_handler, SIG_DFL);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_read_and_answered),
        cmocka_unit_test(large_bodies_and_answers_come_whole),
        cmocka_unit_test(interruptions_cut_nothing),
        cmocka_unit_test(a_short_body_is_noticed),
        cmocka_unit_test(a_body_need_not_be_read),
        cmocka_unit_test(what_is_no_request_is_closed),
        cmocka_unit_test(only_a_peer_that_closed_is_gone),
        cmocka_unit_test(one_that_closed_is_gone_over_tcp_as_well),
        cmocka_unit_test(one_that_has_said_all_may_still_read_over_tcp),
        cmocka_unit_test(writing_to_one_who_left_fails),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
