/* SPDX-License-Identifier: MIT */
/* A folder for the socket of a listener. */
#ifndef VIV_TESTS_LISTENER_FIXTURE_H
#define VIV_TESTS_LISTENER_FIXTURE_H

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

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

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
