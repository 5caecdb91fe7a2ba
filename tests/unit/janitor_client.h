/* SPDX-License-Identifier: MIT */
/* A janitor in a process of its own, and its client. */
#ifndef VIV_TESTS_JANITOR_CLIENT_H
#define VIV_TESTS_JANITOR_CLIENT_H

#include "tests/unit/unit.h"

#include <dirent.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "executor/launcher/janitor.h"
#include "tests/unit/child.h"
#include "tests/unit/other_users.h"
#include "tests/unit/scratch.h"

#define SLOTS    "4"
#define PATIENCE 60000 /* ms; a guard against hangs */

struct janitor {
    struct settings settings;
    pid_t pid;
    int socket;
};

static inline void start(struct janitor *janitor, enum isolation_tier tier,
                         const char *slots) {
    char base[16];
    const char *const values[][2] = {
        {"slot_directory", slots}, {"slots", SLOTS}, {"slot_uid_base", base}};
    int pair[2];

    snprintf(base, sizeof base, "%u", other_users);
    settings_init(&janitor->settings);
    for (size_t i = 0; i < COUNT_OF(values); i++)
        assert_int_equal(
            settings_set(&janitor->settings, values[i][0], values[i][1], "test", NULL),
            0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    janitor->socket = pair[0];
    janitor->pid = fork();
    assert_true(janitor->pid >= 0);
    if (janitor->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        janitor_main(&janitor->settings, tier, pair[1]);
    }
    close(pair[1]);
}

/* Waits for the end of the janitor; returns its wait status. */
static inline int stop(struct janitor *janitor) {
    int status;

    close(janitor->socket);
    assert_int_equal(waitpid(janitor->pid, &status, 0), janitor->pid);
    settings_clear(&janitor->settings);
    return status;
}

static inline void ask(const struct janitor *janitor, uint32_t slot) {
    const struct janitor_request request = {slot};

    assert_int_equal(
        io_send_message(janitor->socket, &request, sizeof request, NULL, 0, NULL), 0);
}

/* The folder of the answer, or -1 when it is a failure. */
static inline int answered(const struct janitor *janitor, uint32_t slot,
                           struct janitor_reply *reply) {
    int folder = -1;
    size_t fd_count;

    assert_int_equal(io_wait(janitor->socket, false, viv_after_ms(PATIENCE), NULL), 0);
    assert_int_equal(io_receive_message(janitor->socket, reply, sizeof *reply, &folder, 1,
                                        &fd_count, NULL),
                     sizeof *reply);
    assert_int_equal(reply->slot, slot);
    assert_int_equal(fd_count, !reply->failed);
    return reply->failed ? -1 : folder;
}

static inline int prepared(const struct janitor *janitor, uint32_t slot) {
    struct janitor_reply reply;

    ask(janitor, slot);
    int folder = answered(janitor, slot, &reply);
    if (folder < 0)
        fail_msg("%s", reply.reason);
    assert_true(fcntl(folder, F_GETFL) & O_PATH);
    return folder;
}

static inline void assert_fresh(int folder, const char *const paths[3], uid_t owner) {
    struct stat status;

    for (int i = 0; i < 3; i++) {
        assert_int_equal(fstatat(folder, paths[i], &status, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(status.st_mode, S_IFDIR | 0700);
        assert_int_equal(status.st_uid, owner);
        int fd = openat(folder, paths[i], O_RDONLY | O_CLOEXEC);
        DIR *stream = fdopendir(fd);
        assert_non_null(stream);
        for (const struct dirent *entry; (entry = readdir(stream));)
            assert_true(entry->d_name[0] == '.');
        closedir(stream);
    }
}

#endif
