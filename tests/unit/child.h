/* SPDX-License-Identifier: MIT */
/*
 * A test's own process, for what changes a process for ever or needs namespaces. In the
 * child cmocka's assertions do not work: REQUIRE() takes their place, and the child's
 * exit status is its result.
 */
#ifndef VIV_TESTS_CHILD_H
#define VIV_TESTS_CHILD_H

#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_FAILED 99
#define CHILD_CANNOT 77

#define REQUIRE(condition)                                                               \
    do {                                                                                 \
        if (!(condition)) {                                                              \
            fprintf(stderr, "%s:%d: not so: %s (errno: %m)\n", __FILE__, __LINE__,       \
                    #condition);                                                         \
            _exit(CHILD_FAILED);                                                         \
        }                                                                                \
    } while (0)

/* Leaves a test out because this machine cannot show it; where everything must run, that
 * is a failure. */
static inline void cannot(const char *reason) {
    const char *must = getenv("VIVARIUM_MUST_WORK");

    if (must && strcmp(must, "1") == 0)
        fail_msg("everything must work here, but: %s", reason);
    print_message("skipped: %s\n", reason);
    skip();
}

/* Forks a child that runs `body`, and returns its wait status. */
static inline int child_status(int (*body)(void *context), void *context) {
    int status;
    pid_t child = fork();

    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGSEGV, SIG_DFL); /* cmocka's would go on with the next test */
        _exit(body(context));
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* Runs `body` in a child, which must return 0. */
static inline void in_child(int (*body)(void *context), void *context) {
    int status = child_status(body, context);

    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_CANNOT)
        cannot("the child lacks what it needs");
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static inline void child_write(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    REQUIRE(fd >= 0);
    REQUIRE(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

/* Moves the child into a user namespace of its own, and into those of `flags`, with its
 * user as `id` inside. Ends the child where the machine does not allow it. */
static inline void child_unshare(int flags, unsigned id) {
    char map[64];
    unsigned uid = geteuid(), gid = getegid();

    if (unshare(CLONE_NEWUSER | flags)) {
        perror("unshare");
        _exit(CHILD_CANNOT);
    }
    child_write("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1\n", id, gid);
    child_write("/proc/self/gid_map", map);
    snprintf(map, sizeof map, "%u %u 1\n", id, uid);
    child_write("/proc/self/uid_map", map);
}

/* Runs `body` in a child that is PID 1 of a PID namespace, as a supervisor is: it may
 * kill and reap whatever is there. It must return 0. */
static inline int child_as_pid_1(void *context) {
    int (*body)(void) = *(int (**)(void))context;
    int status;

    child_unshare(CLONE_NEWPID, 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        REQUIRE(getpid() == 1);
        _exit(body());
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : CHILD_FAILED;
}

static inline void in_pid_namespace(int (*body)(void)) {
    in_child(child_as_pid_1, &body);
}

/* The value of a field of /proc/self/status, read as a number of `base`. */
static inline uint64_t child_status_field(const char *name, int base) {
    char line[256];
    size_t length = strlen(name);
    FILE *file = fopen("/proc/self/status", "re");

    REQUIRE(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            fclose(file);
            return strtoull(line + length + 1, NULL, base);
        }
    REQUIRE(!"the field is there");
    return 0;
}

static inline int open_descriptors(void) {
    int count = 0;

    for (int fd = 0; fd < 1024; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

#endif
