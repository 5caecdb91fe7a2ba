/* SPDX-License-Identifier: MIT */
#include "tests/unit/scratch.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "common/path_lock.h"

struct fixture {
    struct scratch scratch;
    char path[96], lock[128];
};

static int set_up(void **state) {
    static struct fixture fixture;

    fixture.scratch = scratch_new();
    snprintf(fixture.path, sizeof fixture.path, "%s/socket", fixture.scratch.path);
    snprintf(fixture.lock, sizeof fixture.lock, "%s.lock", fixture.path);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;

    scratch_remove(&fixture->scratch);
    return 0;
}

static void it_is_had_once_at_a_time(void **state) {
    const struct fixture *fixture = *state;
    struct viv_error err;
    int first = path_lock_take(fixture->path, viv_now(), NULL);

    assert_true(first >= 0);
    assert_true(fcntl(first, F_GETFD) & FD_CLOEXEC);
    assert_fails(path_lock_take(fixture->path, viv_now(), &err), &err, VIV_SYSTEM,
                 "locked by another");
    close(first);
    int second = path_lock_take(fixture->path, viv_now(), NULL);
    assert_true(second >= 0);
    close(second);
}

static void the_file_is_for_nobody_else_and_stays(void **state) {
    const struct fixture *fixture = *state;
    struct stat status;

    close(path_lock_take(fixture->path, viv_now(), NULL));
    assert_int_equal(lstat(fixture->lock, &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0600);
}

/* A process that holds it, for that long at most. */
static pid_t holder(const char *path, int ms) {
    const struct timespec time = {ms / 1000, ms % 1000 * VIV_MS};
    int told[2];
    char byte;

    assert_int_equal(pipe(told), 0);
    pid_t pid = fork();
    if (pid == 0) {
        if (path_lock_take(path, viv_now(), NULL) < 0 || write(told[1], "x", 1) != 1)
            _exit(1);
        nanosleep(&time, NULL);
        _exit(0);
    }
    close(told[1]);
    assert_int_equal(read(told[0], &byte, 1), 1);
    close(told[0]);
    return pid;
}

static void who_waits_has_it_after_the_other(void **state) {
    const struct fixture *fixture = *state;
    pid_t other = holder(fixture->path, 100);
    int fd = path_lock_take(fixture->path, viv_after_ms(60000), NULL);

    assert_true(fd >= 0);
    close(fd);
    waitpid(other, NULL, 0);
}

static void who_waits_gives_up_at_the_deadline(void **state) {
    const struct fixture *fixture = *state;
    struct viv_error err;
    pid_t other = holder(fixture->path, 60000);
    viv_time deadline = viv_after_ms(50);

    kill(other, SIGSTOP);
    assert_fails(path_lock_take(fixture->path, deadline, &err), &err, VIV_SYSTEM,
                 "locked by another");
    assert_true(viv_now() >= deadline);
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
}

static void a_killed_process_holds_none(void **state) {
    const struct fixture *fixture = *state;
    pid_t other = holder(fixture->path, 60000);

    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    int fd = path_lock_take(fixture->path, viv_now(), NULL);
    assert_true(fd >= 0);
    close(fd);
}

static void no_link_is_followed(void **state) {
    const struct fixture *fixture = *state;
    struct viv_error err;

    assert_int_equal(symlink("elsewhere", fixture->lock), 0);
    assert_fails(path_lock_take(fixture->path, viv_now(), &err), &err, VIV_SYSTEM,
                 "socket.lock");
    assert_int_equal(faccessat(fixture->scratch.fd, "elsewhere", F_OK, 0), -1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(it_is_had_once_at_a_time),
        TEST(the_file_is_for_nobody_else_and_stays),
        TEST(who_waits_has_it_after_the_other),
        TEST(who_waits_gives_up_at_the_deadline),
        TEST(a_killed_process_holds_none),
        TEST(no_link_is_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
