/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "common/cleanup.h"
#include "executor/launcher/listen_socket.h"
#include "tests/unit/child.h"
#include "tests/unit/scratch.h"

struct bench {
    struct scratch folder;
    char path[80];
};

static struct bench bench_new(void) {
    struct bench bench = {.folder = scratch_new()};

    snprintf(bench.path, sizeof bench.path, "%s/socket", bench.folder.path);
    return bench;
}

static void bench_cleanup(struct bench *bench) { scratch_remove(&bench->folder); }

static int make_socket(const char *path, int type) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    strcpy(address.sun_path, path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static int try_connect(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    strcpy(address.sun_path, path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    close(fd);
    return -1;
}

static struct stat status_of(const char *path) {
    struct stat status;

    assert_int_equal(lstat(path, &status), 0);
    return status;
}

static void listens_for_its_user_alone(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();
    mode_t mask = umask(0);

    (void)state;
    CLEANUP(close_fd) int fd = listen_socket_open(bench.path, geteuid(), NULL);
    assert_true(fd >= 0);
    struct stat status = status_of(bench.path);
    assert_true(S_ISSOCK(status.st_mode));
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(status.st_uid, geteuid());
    assert_int_equal(umask(mask), 0); /* as it was */
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
    CLEANUP(close_fd) int client = try_connect(bench.path);
    assert_true(client >= 0);
    CLEANUP(close_fd) int accepted = accept(fd, NULL, NULL);
    assert_true(accepted >= 0);
}

static void gives_the_socket_to_another_user(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();
    const uid_t other = 12345;
    struct viv_error err;

    (void)state;
    CLEANUP(close_fd) int fd = listen_socket_open(bench.path, other, &err);
    if (geteuid() == 0) {
        assert_true(fd >= 0);
        assert_int_equal(status_of(bench.path).st_uid, other);
        assert_int_equal(status_of(bench.path).st_mode & 07777, 0600);
    } else {
        assert_int_equal(fd, -1);
        assert_int_equal(err.code, VIV_SYSTEM);
        assert_int_equal(access(bench.path, F_OK), -1);
    }
}

static void replaces_a_stale_socket(void **state) {
    static const int types[] = {SOCK_SEQPACKET, SOCK_STREAM, SOCK_DGRAM};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        CLEANUP(bench) struct bench bench = bench_new();
        close(make_socket(bench.path, types[i]));
        CLEANUP(close_fd) int fd = listen_socket_open(bench.path, geteuid(), NULL);
        assert_true(fd >= 0);
    }
}

static void does_not_replace_one_that_answers(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();
    struct viv_error err;

    (void)state;
    CLEANUP(close_fd) int fd = listen_socket_open(bench.path, geteuid(), NULL);
    assert_true(fd >= 0);
    assert_fails(listen_socket_open(bench.path, geteuid(), &err), &err, VIV_SYSTEM,
                 "another vivarium-executor");
    CLEANUP(close_fd) int client = try_connect(bench.path);
    assert_true(client >= 0);
}

/* It neither waits for one that is too busy to answer, nor takes it for gone. */
static void does_not_replace_one_that_is_busy(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();
    CLEANUP(close_fd) int busy = make_socket(bench.path, SOCK_SEQPACKET);
    struct viv_error err;

    (void)state;
    assert_int_equal(listen(busy, 0), 0);
    CLEANUP(close_fd) int waiting = try_connect(bench.path);
    assert_true(waiting >= 0);
    assert_int_equal(try_connect(bench.path), -1);
    assert_fails(listen_socket_open(bench.path, geteuid(), &err), &err, VIV_SYSTEM,
                 "another vivarium-executor");
    assert_true(S_ISSOCK(status_of(bench.path).st_mode));
}

static void does_not_replace_a_socket_of_another_kind(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();
    CLEANUP(close_fd) int other = make_socket(bench.path, SOCK_STREAM);
    struct viv_error err;

    (void)state;
    assert_int_equal(listen(other, 1), 0);
    assert_fails(listen_socket_open(bench.path, geteuid(), &err), &err, VIV_SYSTEM,
                 bench.path);
    assert_true(S_ISSOCK(status_of(bench.path).st_mode));
}

/* A path that was mistyped costs nobody a file. */
static void does_not_replace_what_is_no_socket(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();
    struct viv_error err;

    (void)state;
    put_file(bench.folder.fd, "socket", "precious");
    assert_fails(listen_socket_open(bench.path, geteuid(), &err), &err, VIV_SYSTEM,
                 bench.path);
    assert_content(bench.folder.fd, "socket", "precious");

    assert_int_equal(unlinkat(bench.folder.fd, "socket", 0), 0);
    put_file(bench.folder.fd, "file", "precious");
    assert_int_equal(symlinkat("file", bench.folder.fd, "socket"), 0);
    assert_fails(listen_socket_open(bench.path, geteuid(), &err), &err, VIV_SYSTEM,
                 bench.path);
    assert_true(S_ISLNK(status_of(bench.path).st_mode));
    assert_content(bench.folder.fd, "file", "precious");
}

static void says_why_it_cannot_listen(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();
    char path[200];
    struct viv_error err;

    (void)state;
    memset(path, 'x', sizeof path);
    path[sizeof path - 1] = '\0';
    assert_fails(listen_socket_open(path, geteuid(), &err), &err, VIV_CONFIG, "too long");
    /* The longest that fits and the shortest that does not. */
    path[sizeof((struct sockaddr_un *)0)->sun_path] = '\0';
    assert_fails(listen_socket_open(path, geteuid(), &err), &err, VIV_CONFIG, "too long");
    snprintf(path, sizeof path, "%s/nowhere/socket", bench.folder.path);
    assert_fails(listen_socket_open(path, geteuid(), &err), &err, VIV_SYSTEM, path);
}

/* Opens the socket when it is told to, and says whether it has it. */
static pid_t start_rival(const char *path, const int gate[2], int told) {
    pid_t rival = fork();
    char byte;

    if (rival != 0)
        return rival;
    close(gate[1]);
    REQUIRE(read(gate[0], &byte, 1) == 0); /* all begin when the last end is closed */
    int fd = listen_socket_open(path, geteuid(), NULL);
    REQUIRE(write(told, fd >= 0 ? "y" : "n", 1) == 1);
    pause();
    _exit(0);
}

static void of_those_that_start_at_once_one_listens(void **state) {
    (void)state;
    for (int round = 0; round < 50; round++) {
        CLEANUP(bench) struct bench bench = bench_new();
        int gate[2], told[2], listening = 0;
        pid_t rivals[4];
        char answer;
        close(make_socket(bench.path, SOCK_SEQPACKET)); /* stale */
        assert_int_equal(pipe2(told, O_CLOEXEC), 0);
        assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
        for (size_t i = 0; i < COUNT_OF(rivals); i++) {
            rivals[i] = start_rival(bench.path, gate, told[1]);
            assert_true(rivals[i] > 0);
        }
        close(gate[0]);
        close(gate[1]);
        for (size_t i = 0; i < COUNT_OF(rivals); i++) {
            assert_int_equal(read(told[0], &answer, 1), 1);
            listening += answer == 'y';
        }
        for (size_t i = 0; i < COUNT_OF(rivals); i++) {
            kill(rivals[i], SIGKILL);
            waitpid(rivals[i], NULL, 0);
        }
        close(told[0]);
        close(told[1]);
        assert_int_equal(listening, 1);
    }
}

static void a_failure_leaves_no_descriptor_open(void **state) {
    CLEANUP(bench) struct bench bench = bench_new();

    (void)state;
    put_file(bench.folder.fd, "socket", "");
    int before = open_descriptors();
    assert_int_equal(listen_socket_open(bench.path, geteuid(), NULL), -1);
    assert_int_equal(open_descriptors(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listens_for_its_user_alone),
        cmocka_unit_test(gives_the_socket_to_another_user),
        cmocka_unit_test(replaces_a_stale_socket),
        cmocka_unit_test(does_not_replace_one_that_answers),
        cmocka_unit_test(does_not_replace_one_that_is_busy),
        cmocka_unit_test(does_not_replace_a_socket_of_another_kind),
        cmocka_unit_test(does_not_replace_what_is_no_socket),
        cmocka_unit_test(says_why_it_cannot_listen),
        cmocka_unit_test(of_those_that_start_at_once_one_listens),
        cmocka_unit_test(a_failure_leaves_no_descriptor_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
