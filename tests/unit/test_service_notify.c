/* SPDX-License-Identifier: MIT */
/* The other end of each test is a socket in the place of the service manager's. */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/service_notify.h"
#include "tests/unit/child.h"
#include "tests/unit/scratch.h"

static int bind_manager(const struct sockaddr_un *address, socklen_t size) {
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)address, size), 0);
    return fd;
}

/* Listens below the folder; its address becomes NOTIFY_SOCKET. */
static int manager_at_path(const struct scratch *scratch) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof address.sun_path, "%s/notify", scratch->path);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    return bind_manager(&address, sizeof address);
}

static int manager_at_abstract_name(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char name[64];
    int length = snprintf(name, sizeof name, "@viv-unit-%d", (int)getpid());

    setenv("NOTIFY_SOCKET", name, 1);
    memcpy(address.sun_path + 1, name + 1, (size_t)length - 1);
    return bind_manager(
        &address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)length));
}

static void assert_told(int manager, const char *expected) {
    char text[256];
    ssize_t got = recv(manager, text, sizeof text - 1, 0);

    assert_true(got >= 0);
    text[got] = '\0';
    assert_string_equal(text, expected);
}

static void assert_told_nothing(int manager) {
    char byte;

    assert_int_equal(recv(manager, &byte, 1, 0), -1);
    assert_int_equal(errno, EAGAIN);
}

static struct service_notify opened(void) {
    struct service_notify notify;
    struct viv_error err;

    assert_int_equal(service_notify_open(&notify, &err), 0);
    return notify;
}

static int clear(void **state) {
    (void)state;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
    return 0;
}

static void without_a_manager_nothing_happens(void **state) {
    (void)state;
    setenv("WATCHDOG_USEC", "1000000", 1);
    struct service_notify notify = opened();
    assert_int_equal(notify.fd, -1);
    assert_int_equal(notify.beat_ms, 0);
    service_notify_tell(&notify, "READY=1");
    service_notify_beat(&notify, viv_now());
    service_notify_close(&notify);
    setenv("NOTIFY_SOCKET", "", 1);
    assert_int_equal(opened().fd, -1);
}

static void a_manager_at_a_path_is_told(void **state) {
    struct scratch scratch = scratch_new();
    int manager = manager_at_path(&scratch);

    (void)state;
    struct service_notify notify = opened();
    service_notify_tell(&notify, "READY=1\nSTATUS=all is well");
    assert_told(manager, "READY=1\nSTATUS=all is well");
    service_notify_close(&notify);
    service_notify_tell(&notify, "STOPPING=1");
    assert_told_nothing(manager);
    close(manager);
    scratch_remove(&scratch);
}

static void a_manager_at_an_abstract_name_is_told(void **state) {
    int manager = manager_at_abstract_name();

    (void)state;
    struct service_notify notify = opened();
    service_notify_tell(&notify, "READY=1");
    assert_told(manager, "READY=1");
    service_notify_close(&notify);
    close(manager);
}

static void a_manager_that_was_started_anew_is_told(void **state) {
    struct scratch scratch = scratch_new();
    int manager = manager_at_path(&scratch);

    (void)state;
    struct service_notify notify = opened();
    close(manager);
    service_notify_tell(&notify, "READY=1"); /* goes to the log */
    assert_int_equal(unlinkat(scratch.fd, "notify", 0), 0);
    setenv("NOTIFY_SOCKET", "unused", 1);
    manager = manager_at_path(&scratch);
    service_notify_tell(&notify, "READY=1");
    assert_told(manager, "READY=1");
    service_notify_close(&notify);
    close(manager);
    scratch_remove(&scratch);
}

static void no_child_gets_to_know_the_manager(void **state) {
    int manager = manager_at_abstract_name();

    (void)state;
    setenv("WATCHDOG_USEC", "3000000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    struct service_notify notify = opened();
    assert_null(getenv("NOTIFY_SOCKET"));
    assert_null(getenv("WATCHDOG_USEC"));
    assert_null(getenv("WATCHDOG_PID"));
    assert_true(fcntl(notify.fd, F_GETFD) & FD_CLOEXEC);
    service_notify_close(&notify);
    close(manager);
}

static void beats_are_sent_when_it_is_time(void **state) {
    int manager = manager_at_abstract_name();
    const viv_time start = viv_now();
    char pid[32];

    (void)state;
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    setenv("WATCHDOG_USEC", "3000000", 1);
    setenv("WATCHDOG_PID", pid, 1);
    struct service_notify notify = opened();
    assert_int_equal(notify.beat_ms, 1000);
    service_notify_beat(&notify, start);
    assert_told(manager, "WATCHDOG=1");
    service_notify_beat(&notify, start + 999 * VIV_MS);
    assert_told_nothing(manager);
    service_notify_beat(&notify, start + 1000 * VIV_MS);
    assert_told(manager, "WATCHDOG=1");
    assert_told_nothing(manager);
    service_notify_close(&notify);
    service_notify_beat(&notify, start + 9000 * VIV_MS);
    assert_told_nothing(manager);
    close(manager);
}

static void another_process_has_the_watchdog(void **state) {
    int manager = manager_at_abstract_name();

    (void)state;
    setenv("WATCHDOG_USEC", "3000000", 1);
    setenv("WATCHDOG_PID", "1", 1);
    struct service_notify notify = opened();
    assert_int_equal(notify.beat_ms, 0);
    service_notify_beat(&notify, viv_now());
    assert_told_nothing(manager);
    service_notify_tell(&notify, "READY=1");
    assert_told(manager, "READY=1");
    service_notify_close(&notify);
    close(manager);
}

static void a_short_interval_is_not_none(void **state) {
    int manager = manager_at_abstract_name();

    (void)state;
    setenv("WATCHDOG_USEC", "1", 1);
    struct service_notify notify = opened();
    assert_int_equal(notify.beat_ms, 1);
    service_notify_close(&notify);
    close(manager);
}

static void variables_that_make_no_sense_are_refused(void **state) {
    static const struct {
        const char *address, *interval, *process, *part;
    } cases[] = {
        {"relative", NULL, NULL, "NOTIFY_SOCKET"},
        {"vsock:2:1234", NULL, NULL, "NOTIFY_SOCKET"},
        {"@", NULL, NULL, "NOTIFY_SOCKET"},
        {"/", NULL, NULL, "NOTIFY_SOCKET"},
        {"@viv", "0", NULL, "WATCHDOG_USEC"},
        {"@viv", "-1", NULL, "WATCHDOG_USEC"},
        {"@viv", "1s", NULL, "WATCHDOG_USEC"},
        {"@viv", "99999999999999999999", NULL, "WATCHDOG_USEC"},
        {"@viv", "1000", "self", "WATCHDOG_PID"},
    };
    struct service_notify notify;
    struct viv_error err;
    char longest[256];

    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        clear(state);
        setenv("NOTIFY_SOCKET", cases[i].address, 1);
        if (cases[i].interval)
            setenv("WATCHDOG_USEC", cases[i].interval, 1);
        if (cases[i].process)
            setenv("WATCHDOG_PID", cases[i].process, 1);
        assert_fails(service_notify_open(&notify, &err), &err, VIV_CONFIG, cases[i].part);
        assert_int_equal(notify.fd, -1);
        assert_int_equal(notify.beat_ms, 0);
        assert_null(getenv("NOTIFY_SOCKET"));
    }
    memset(longest, 'a', sizeof longest);
    longest[0] = '/';
    longest[sizeof((struct sockaddr_un *)NULL)->sun_path] = '\0';
    setenv("NOTIFY_SOCKET", longest, 1);
    assert_fails(service_notify_open(&notify, &err), &err, VIV_CONFIG, "bytes");
    longest[sizeof((struct sockaddr_un *)NULL)->sun_path - 1] = '\0';
    setenv("NOTIFY_SOCKET", longest, 1);
    notify = opened();
    service_notify_close(&notify);
}

/* ---- what it keeps ---- */

static void set_number(const char *name, long number) {
    char text[32];

    snprintf(text, sizeof text, "%ld", number);
    setenv(name, text, 1);
}

/* In a child: the places of what is given are fixed. */
static int body_given(void *context) {
    int null = open("/dev/null", O_RDONLY);

    (void)context;
    REQUIRE(service_notify_take_kept() == -1);
    for (int fd = 3; fd < 6; fd++)
        REQUIRE(fd == null || dup2(null, fd) == fd);
    set_number("LISTEN_FDS", 2);
    set_number("LISTEN_PID", getpid() + 1);
    REQUIRE(service_notify_take_kept() == -1 && !getenv("LISTEN_FDS"));
    setenv("LISTEN_FDS", "x", 1);
    set_number("LISTEN_PID", getpid());
    REQUIRE(service_notify_take_kept() == -1);
    set_number("LISTEN_FDS", 2);
    set_number("LISTEN_PID", getpid());
    setenv("LISTEN_FDNAMES", "a:b", 1);
    REQUIRE(service_notify_take_kept() == 3);
    REQUIRE(fcntl(3, F_GETFD) == FD_CLOEXEC && fcntl(4, F_GETFD) == -1);
    REQUIRE(fcntl(5, F_GETFD) == 0);
    REQUIRE(!getenv("LISTEN_FDS") && !getenv("LISTEN_PID") && !getenv("LISTEN_FDNAMES"));
    setenv("LISTEN_FDS", "18446744073709551615",
           1); /* to close each would take minutes */
    set_number("LISTEN_PID", getpid());
    REQUIRE(service_notify_take_kept() == 3 && fcntl(5, F_GETFD) == -1);
    return 0;
}

static void what_is_given_to_us_is_taken(void **state) {
    (void)state;
    in_child(body_given, NULL);
}

static int receive_descriptor(int manager, char *text, size_t room) {
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec part = {text, room - 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    int fd = -1;
    ssize_t got = recvmsg(manager, &message, MSG_CMSG_CLOEXEC);

    assert_true(got >= 0);
    text[got] = '\0';
    if (CMSG_FIRSTHDR(&message))
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static void a_descriptor_is_kept_in_the_place_of_the_one_before(void **state) {
    struct scratch scratch = scratch_new();
    int manager = manager_at_path(&scratch);
    char text[256];
    int pair[2];

    (void)state;
    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    struct service_notify notify = opened();
    assert_true(service_notify_keep(&notify, pair[1]));
    assert_told(manager, "FDSTOREREMOVE=1\nFDNAME=listener");
    int kept = receive_descriptor(manager, text, sizeof text);
    assert_string_equal(text, "FDSTORE=1\nFDNAME=listener");
    assert_int_equal(write(kept, "x", 1), 1);
    assert_int_equal(read(pair[0], text, 1), 1);
    service_notify_forget(&notify);
    assert_told(manager, "FDSTOREREMOVE=1\nFDNAME=listener");
    service_notify_close(&notify);
    service_notify_forget(&notify);
    assert_false(service_notify_keep(&notify, pair[1]));
    close(kept);
    close(pair[0]);
    close(pair[1]);
    close(manager);
    scratch_remove(&scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_a_manager_nothing_happens, clear),
        cmocka_unit_test_setup(a_manager_at_a_path_is_told, clear),
        cmocka_unit_test_setup(a_manager_at_an_abstract_name_is_told, clear),
        cmocka_unit_test_setup(a_manager_that_was_started_anew_is_told, clear),
        cmocka_unit_test_setup(no_child_gets_to_know_the_manager, clear),
        cmocka_unit_test_setup(beats_are_sent_when_it_is_time, clear),
        cmocka_unit_test_setup(another_process_has_the_watchdog, clear),
        cmocka_unit_test_setup(a_short_interval_is_not_none, clear),
        cmocka_unit_test_setup(variables_that_make_no_sense_are_refused, clear),
        cmocka_unit_test_setup(what_is_given_to_us_is_taken, clear),
        cmocka_unit_test_setup(a_descriptor_is_kept_in_the_place_of_the_one_before,
                               clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
