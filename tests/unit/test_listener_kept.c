/* SPDX-License-Identifier: MIT */
/* A listener that is given its socket by who started it. */
#include "tests/unit/unit.h"

#include <fcntl.h>

#include "fcgi-app/listener.h"
#include "tests/unit/listener_fixture.h"

/* A socket that listens, of one who keeps it. */
static int listen_for_others(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, 10), 0);
    return fd;
}

static int copy_of(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 0); }

static void a_socket_that_is_kept_outlives_us(void **state) {
    const struct fixture *fixture = *state;
    int kept = listen_for_others(fixture->path);
    struct listener listener, second;
    struct viv_error err;

    assert_int_equal(listener_open(&listener, fixture->address, "", copy_of(kept), NULL),
                     0);
    assert_true(listener.kept);
    assert_fails(listener_open(&second, fixture->address, "", copy_of(kept), &err), &err,
                 VIV_SYSTEM, "locked");
    assert_int_equal(connect_to(fixture->path), 0);
    close(listener_accept(&listener));
    listener_close(&listener);
    assert_int_equal(connect_to(fixture->path), 0); /* it waits for the next of us */
    assert_int_equal(listener_open(&listener, fixture->address, "", copy_of(kept), NULL),
                     0);
    int connection = listener_accept(&listener);
    assert_true(connection >= 0);
    close(connection);
    listener_close(&listener);
    close(kept);
}

static void what_listens_elsewhere_or_not_at_all_is_not_used(void **state) {
    const struct fixture *fixture = *state;
    struct listener listener;
    char path[sizeof fixture->address];

    snprintf(path, sizeof path, "%s.other", fixture->path);
    int given[] = {listen_for_others(path), open("/dev/null", O_RDONLY | O_CLOEXEC)};
    for (size_t i = 0; i < COUNT_OF(given); i++) {
        assert_int_equal(listener_open(&listener, fixture->address, "", given[i], NULL),
                         0);
        assert_false(listener.kept);
        assert_true(listener.fd == given[i] || fcntl(given[i], F_GETFD) == -1);
        assert_int_equal(connect_to(fixture->path), 0);
        listener_close(&listener);
        assert_int_equal(connect_to(fixture->path), -1);
    }
    unlink(path);
}

static struct listener open_with(const struct fixture *fixture, int given, bool kept) {
    struct listener listener;

    assert_int_equal(listener_open(&listener, fixture->address, "", given, NULL), 0);
    assert_int_equal(listener.kept, kept);
    assert_int_equal(connect_to(fixture->path), 0);
    return listener;
}

static void a_kept_socket_that_nobody_can_reach_is_made_anew(void **state) {
    const struct fixture *fixture = *state;
    int kept = listen_for_others(fixture->path);
    struct viv_error err;
    struct listener listener;

    unlink(fixture->path);
    listener = open_with(fixture, copy_of(kept), false);
    listener_close(&listener);
    close(listen_for_others(fixture->path)); /* one that has ended */
    listener = open_with(fixture, copy_of(kept), false);
    listener_close(&listener);
    int other = listen_for_others(fixture->path);
    assert_fails(listener_open(&listener, fixture->address, "", copy_of(kept), &err),
                 &err, VIV_SYSTEM, "somebody listens");
    close(other);
    close(kept);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        with_fixture(a_socket_that_is_kept_outlives_us),
        with_fixture(what_listens_elsewhere_or_not_at_all_is_not_used),
        with_fixture(a_kept_socket_that_nobody_can_reach_is_made_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
