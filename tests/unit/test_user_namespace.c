/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "common/cleanup.h"
#include "executor/control.h"
#include "executor/launcher/user_namespace.h"
#include "tests/unit/child.h"

/* A child in a user namespace without a map, which waits to be ended. */
static pid_t unmapped_child(void) {
    int ready[2];
    char byte = 0;

    if (geteuid() != 0 && geteuid() != getegid())
        cannot(
            "the numbers of user and group differ, and an ordinary user has no others");
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        byte = unshare(CLONE_NEWUSER) == 0;
        REQUIRE(write(ready[1], &byte, 1) == 1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    if (!byte) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        cannot("user namespaces are not allowed");
    }
    return child;
}

static void end_child(pid_t child) {
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

/* The content of a file of the child, with single spaces. */
static void assert_proc(pid_t child, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void assert_proc(pid_t child, const char *name, const char *format, ...) {
    char path[64], text[256], expected[256], squeezed[256];
    size_t length = 0;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(expected, sizeof expected, format, arguments);
    va_end(arguments);
    snprintf(path, sizeof path, "/proc/%d/%s", (int)child, name);
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t got = read(fd, text, sizeof text - 1);
    assert_true(got >= 0);
    text[got] = '\0';
    for (const char *word = strtok(text, " \n"); word; word = strtok(NULL, " \n"))
        length += (size_t)snprintf(squeezed + length, sizeof squeezed - length, "%s%s",
                                   length ? " " : "", word);
    assert_string_equal(squeezed, expected);
}

static void maps_the_outer_namespace(void **state) {
    pid_t child = unmapped_child();
    struct viv_error err;

    (void)state;
    if (user_namespace_map_outer(child, 300000, &err)) {
        end_child(child);
        cannot(err.message);
    }
    if (geteuid() == 0) {
        assert_proc(child, "uid_map", "0 300000 65536");
        assert_proc(child, "gid_map", "0 300000 65536");
        assert_proc(child, "setgroups", "allow");
    } else {
        assert_proc(child, "uid_map", "%u %u 1", ORDINARY_ID, geteuid());
        assert_proc(child, "gid_map", "%u %u 1", ORDINARY_ID, getegid());
        assert_proc(child, "setgroups", "deny");
    }
    end_child(child);
}

/* The ids of one session, or the only id of an ordinary user. */
static void maps_the_namespace_of_a_session(void **state) {
    CLEANUP(close_fd) int proc = open("/proc", O_DIRECTORY | O_PATH | O_CLOEXEC);
    pid_t child = unmapped_child();
    bool ordinary = geteuid() != 0;
    uint32_t outer_id = ordinary ? geteuid() : 4321;

    (void)state;
    assert_int_equal(user_namespace_map_session(proc, child, outer_id, ordinary, NULL),
                     0);
    assert_proc(child, "uid_map", "%d %u 1", SESSION_UID, outer_id);
    assert_proc(child, "gid_map", "%d %u 1", SESSION_GID, outer_id);
    assert_proc(child, "setgroups", ordinary ? "deny" : "allow");
    end_child(child);
}

static void a_map_is_written_once(void **state) {
    CLEANUP(close_fd) int proc = open("/proc", O_DIRECTORY | O_PATH | O_CLOEXEC);
    pid_t child = unmapped_child();
    bool ordinary = geteuid() != 0;
    uint32_t outer_id = ordinary ? geteuid() : 4321;
    struct viv_error err;

    (void)state;
    assert_int_equal(user_namespace_map_session(proc, child, outer_id, ordinary, NULL),
                     0);
    assert_fails(user_namespace_map_session(proc, child, outer_id, ordinary, &err), &err,
                 VIV_SYSTEM, "/proc/");
    end_child(child);
}

static void a_process_that_is_gone_is_a_failure(void **state) {
    CLEANUP(close_fd) int proc = open("/proc", O_DIRECTORY | O_PATH | O_CLOEXEC);
    pid_t child = unmapped_child();
    struct viv_error err;

    (void)state;
    end_child(child);
    assert_fails(user_namespace_map_session(proc, child, 4321, false, &err), &err,
                 VIV_SYSTEM, "open /proc/");
    assert_fails(user_namespace_map_outer(child, 300000, &err), &err, VIV_SYSTEM,
                 "open /proc/");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_the_outer_namespace),
        cmocka_unit_test(maps_the_namespace_of_a_session),
        cmocka_unit_test(a_map_is_written_once),
        cmocka_unit_test(a_process_that_is_gone_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
