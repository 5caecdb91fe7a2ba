/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fcgi-app/listener.h"

struct fixture {
    char directory[64], address[96], lock[96];
    const char *path; /* of the address */
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);

    strcpy(fixture->directory, "/tmp/viv-test-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    snprintf(fixture->address, sizeof fixture->address, "unix:%s/fcgi.sock",
             fixture->directory);
    fixture->path = fixture->address + strlen("unix:");
    snprintf(fixture->lock, sizeof fixture->lock, "%s.lock", fixture->path);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;

    unlink(fixture->path);
    unlink(fixture->lock);
    assert_int_equal(rmdir(fixture->directory), 0);
    free(fixture);
    return 0;
}

static int connect_to(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int failed = connect(fd, (struct sockaddr *)&address, sizeof address);
    close(fd);
    return failed;
}

static void it_listens_for_owner_and_group(void **state) {
    struct fixture *fixture = *state;
    struct listener listener;
    struct stat status;
    mode_t before = umask(0);

    umask(before);
    assert_int_equal(listener_open(&listener, fixture->address, NULL), 0);
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

    assert_int_equal(listener_open(&first, fixture->address, NULL), 0);
    assert_fails(listener_open(&second, fixture->address, &err), &err, VIV_SYSTEM,
                 "lock");
    assert_int_equal(connect_to(fixture->path), 0);
    listener_close(&first);
    assert_int_equal(listener_open(&second, fixture->address, NULL), 0);
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
    assert_int_equal(listener_open(&listener, fixture->address, NULL), 0);
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
    assert_fails(listener_open(&listener, fixture->address, &err), &err, VIV_SYSTEM,
                 "somebody listens");
    assert_int_equal(connect_to(fixture->path), 0);
    close(fd);
    unlink(fixture->path);
    fd = open(fixture->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(fd);
    assert_fails(listener_open(&listener, fixture->address, &err), &err, VIV_SYSTEM,
                 "no socket");
    assert_int_equal(access(fixture->path, F_OK), 0);
}

static void addresses_of_another_form_are_refused(void **state) {
    char longest[200] = "unix:/tmp/";
    const char *addresses[] = {
        ":9000", "127.0.0.1:9000", "/run/x.sock", "unix:", "", longest};
    struct listener listener;
    struct viv_error err;

    (void)state;
    memset(longest + strlen(longest), 'x', 120);
    for (size_t i = 0; i < COUNT_OF(addresses); i++)
        assert_fails(listener_open(&listener, addresses[i], &err), &err, VIV_CONFIG,
                     "listen");
    assert_fails(listener_open(&listener, "unix:/nonexistent/x", &err), &err, VIV_SYSTEM,
                 "/nonexistent/x");
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        with_fixture(it_listens_for_owner_and_group),
        with_fixture(two_never_listen_at_one_path),
        with_fixture(a_socket_that_was_left_behind_is_replaced),
        with_fixture(another_program_at_the_path_is_left_alone),
        cmocka_unit_test(addresses_of_another_form_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
