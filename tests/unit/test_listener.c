/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fcgi-app/listener.h"
#include "tests/unit/listener_fixture.h"

static void it_listens_for_owner_and_group(void **state) {
    struct fixture *fixture = *state;
    struct listener listener;
    struct stat status;
    mode_t before = umask(0);

    umask(before);
    assert_int_equal(listener_open(&listener, fixture->address, "", -1, NULL), 0);
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0660);
    assert_true(fcntl(listener.fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(listener.lock, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(umask(before), before);
    assert_int_equal(connect_to(fixture->path), 0);
    listener_close(&listener);
    assert_int_not_equal(access(fixture->path, F_OK), 0);
    listener_close(&listener);
}

static void two_never_listen_at_one_path(void **state) {
    struct fixture *fixture = *state;
    struct listener first, second;
    struct viv_error err;

    assert_int_equal(listener_open(&first, fixture->address, "", -1, NULL), 0);
    assert_fails(listener_open(&second, fixture->address, "", -1, &err), &err, VIV_SYSTEM,
                 "lock");
    assert_int_equal(connect_to(fixture->path), 0);
    listener_close(&first);
    assert_int_equal(listener_open(&second, fixture->address, "", -1, NULL), 0);
    listener_close(&second);
}

static void a_socket_that_was_left_behind_is_replaced(void **state) {
    struct fixture *fixture = *state;
    struct listener listener;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", fixture->path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    close(fd);
    assert_int_equal(listener_open(&listener, fixture->address, "", -1, NULL), 0);
    assert_int_equal(connect_to(fixture->path), 0);
    listener_close(&listener);
}

static void another_program_at_the_path_is_left_alone(void **state) {
    struct fixture *fixture = *state;
    struct listener listener;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct viv_error err;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", fixture->path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_fails(listener_open(&listener, fixture->address, "", -1, &err), &err,
                 VIV_SYSTEM, "somebody listens");
    assert_int_equal(connect_to(fixture->path), 0);
    close(fd);
    unlink(fixture->path);
    fd = open(fixture->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(fd);
    assert_fails(listener_open(&listener, fixture->address, "", -1, &err), &err,
                 VIV_SYSTEM, "no socket");
    assert_int_equal(access(fixture->path, F_OK), 0);
}

static void addresses_of_another_form_are_refused(void **state) {
    char longest[200] = "unix:/tmp/";
    const char *addresses[] = {":9000",
                               "127.0.0.1:9000",
                               "/run/x.sock",
                               "unix:",
                               "",
                               longest,
                               "tcp:",
                               "tcp:9000",
                               "tcp::9000",
                               "tcp:127.0.0.1",
                               "tcp:127.0.0.1:",
                               "tcp:127.0.0.1:0",
                               "tcp:127.0.0.1:65536",
                               "tcp:127.0.0.1:9000x",
                               "tcp:127.0.0.1:-1",
                               "tcp:127.0.0.1: 9000",
                               "tcp:127.1:9000",
                               "tcp:localhost:9000",
                               "tcp:*:9000",
                               "tcp:::1:9000",
                               "tcp:[::1]",
                               "tcp:[::1]9000",
                               "tcp:[::1]:",
                               "tcp:[127.0.0.1]:9000",
                               "tcp:[::1:9000",
                               "tcp:127.0.0.1]:9000",
                               "tcp:127.0.0.1:9000:9000"};
    struct listener listener;
    struct viv_error err;

    (void)state;
    memset(longest + strlen(longest), 'x', 120);
    for (size_t i = 0; i < COUNT_OF(addresses); i++)
        assert_fails(listener_open(&listener, addresses[i], "", -1, &err), &err,
                     VIV_CONFIG, "listen");
    assert_fails(listener_open(&listener, "unix:/nonexistent/x", "", -1, &err), &err,
                 VIV_SYSTEM, "/nonexistent/x");
}

/* ---- TCP ---- */

static const char loopback[] = "127.0.0.0/8,::1";

/* A port of 127.0.0.1, or of ::1, that was free a moment ago. */
static unsigned free_port(int family) {
    struct sockaddr_in6 address = {.sin6_family = (sa_family_t)family};
    socklen_t size = sizeof address;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    /* An address of IPv4 has it at the same place. */
    return ntohs(address.sin6_port);
}

/* A connection from `source` to a port of that address. */
static int connect_from(const char *source, unsigned port) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(inet_pton(AF_INET, source, &address.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(inet_pton(AF_INET, "127.0.0.1", &address.sin_addr), 1);
    address.sin_port = htons((in_port_t)port);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void it_listens_at_an_address_of_tcp(void **state) {
    struct listener listener;
    struct viv_error err;
    char address[64], byte;
    int on = 0;
    socklen_t size = sizeof on;
    unsigned port = free_port(AF_INET);

    (void)state;
    snprintf(address, sizeof address, "tcp:127.0.0.1:%u", port);
    assert_int_equal(listener_open(&listener, address, loopback, -1, &err), 0);
    assert_false(listener.exposed);
    assert_true(fcntl(listener.fd, F_GETFD) & FD_CLOEXEC);
    int client = connect_from("127.0.0.9", port);
    int connection = listener_accept(&listener);
    assert_true(connection >= 0);
    assert_true(fcntl(connection, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(getsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, &size), 0);
    assert_true(on);
    assert_int_equal(write(connection, "x", 1), 1);
    assert_int_equal(read(client, &byte, 1), 1);
    close(connection);
    close(client);
    struct listener second;
    assert_fails(listener_open(&second, address, loopback, -1, &err), &err, VIV_SYSTEM,
                 address);
    listener_close(&listener);
    assert_int_equal(listener_open(&listener, address, loopback, -1, &err), 0);
    listener_close(&listener);
    listener_close(&listener);
}

static void others_than_those_named_are_turned_away(void **state) {
    struct listener listener;
    struct viv_error err;
    char address[64], byte;
    unsigned port = free_port(AF_INET);

    (void)state;
    snprintf(address, sizeof address, "tcp:127.0.0.1:%u", port);
    assert_int_equal(
        listener_open(&listener, address, "192.0.2.0/24, 127.0.0.2", -1, &err), 0);
    int client = connect_from("127.0.0.3", port);
    errno = 0;
    assert_int_equal(listener_accept(&listener), -1);
    assert_int_equal(errno, ECONNABORTED);
    assert_int_equal(read(client, &byte, 1), 0);
    close(client);
    client = connect_from("127.0.0.2", port);
    int connection = listener_accept(&listener);
    assert_true(connection >= 0);
    close(connection);
    close(client);
    listener_close(&listener);
}

static void nobody_connects_where_none_is_named(void **state) {
    struct listener listener;
    struct viv_error err;
    char address[64];
    unsigned port = free_port(AF_INET);

    (void)state;
    snprintf(address, sizeof address, "tcp:127.0.0.1:%u", port);
    assert_int_equal(listener_open(&listener, address, "", -1, &err), 0);
    int client = connect_from("127.0.0.1", port);
    assert_int_equal(listener_accept(&listener), -1);
    close(client);
    listener_close(&listener);
}

static void it_listens_at_ipv6(void **state) {
    struct listener listener;
    struct viv_error err;
    struct sockaddr_in6 peer = {.sin6_family = AF_INET6,
                                .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    char address[64];
    int client = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    if (client < 0 || bind(client, (struct sockaddr *)&peer, sizeof peer))
        skip(); /* a host without IPv6 */
    unsigned port = free_port(AF_INET6);
    snprintf(address, sizeof address, "tcp:[::1]:%u", port);
    assert_int_equal(listener_open(&listener, address, loopback, -1, &err), 0);
    assert_false(listener.exposed);
    peer.sin6_port = htons((in_port_t)port);
    assert_int_equal(connect(client, (struct sockaddr *)&peer, sizeof peer), 0);
    int connection = listener_accept(&listener);
    assert_true(connection >= 0);
    close(connection);
    close(client);
    listener_close(&listener);
}

static void it_knows_whether_other_hosts_could_connect(void **state) {
    struct listener listener;
    struct viv_error err;
    char address[64];

    (void)state;
    snprintf(address, sizeof address, "tcp:0.0.0.0:%u", free_port(AF_INET));
    assert_int_equal(listener_open(&listener, address, "", -1, &err), 0);
    assert_true(listener.exposed);
    listener_close(&listener);
    snprintf(address, sizeof address, "tcp:127.9.9.9:%u", free_port(AF_INET));
    assert_int_equal(listener_open(&listener, address, "", -1, &err), 0);
    assert_false(listener.exposed);
    listener_close(&listener);
}

static void settings_are_checked_without_listening(void **state) {
    static const char *const right[] = {"unix:/run/x.sock", "tcp:127.0.0.1:1",
                                        "tcp:10.0.0.1:65535", "tcp:[2001:db8::1]:9000",
                                        "tcp:[::]:9000"};
    struct viv_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(right); i++)
        assert_int_equal(listener_check(right[i], loopback, &err), 0);
    assert_fails(listener_check("tcp:127.0.0.1:1", "10.0.0.0/33", &err), &err, VIV_CONFIG,
                 "web_servers: a prefix");
    assert_fails(listener_check("unix:/run/x.sock", "localhost", &err), &err, VIV_CONFIG,
                 "web_servers: not an address");
}
int main(void) {
    const struct CMUnitTest tests[] = {
        with_fixture(it_listens_for_owner_and_group),
        with_fixture(two_never_listen_at_one_path),
        with_fixture(a_socket_that_was_left_behind_is_replaced),
        with_fixture(another_program_at_the_path_is_left_alone),
        cmocka_unit_test(addresses_of_another_form_are_refused),
        cmocka_unit_test(it_listens_at_an_address_of_tcp),
        cmocka_unit_test(others_than_those_named_are_turned_away),
        cmocka_unit_test(nobody_connects_where_none_is_named),
        cmocka_unit_test(it_listens_at_ipv6),
        cmocka_unit_test(it_knows_whether_other_hosts_could_connect),
        cmocka_unit_test(settings_are_checked_without_listening),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
