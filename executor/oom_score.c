/* SPDX-License-Identifier: MIT */
#include "executor/oom_score.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/cleanup.h"

int oom_score_raise(int proc, struct viv_error *err) {
    CLEANUP(close_fd) int fd = openat(proc, "self/oom_score_adj", O_RDWR | O_CLOEXEC);
    char text[16];

    ssize_t got = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
    if (got < 0)
        return viv_fail(err, VIV_SYSTEM, "read oom_score_adj: %m");
    text[got] = '\0';
    if (atoi(text) >= OOM_SCORE_OF_SESSIONS)
        return 0;
    int length = snprintf(text, sizeof text, "%d", OOM_SCORE_OF_SESSIONS);
    if (pwrite(fd, text, (size_t)length, 0) != length)
        return viv_fail(err, VIV_SYSTEM, "raise oom_score_adj: %m");
    return 0;
}
