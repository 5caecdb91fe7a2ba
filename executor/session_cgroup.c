/* SPDX-License-Identifier: MIT */
#include "executor/session_cgroup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int session_cgroup_enter(int procs, struct viv_error *err) {
    /* 0 is the process that writes: cgroups(7). */
    if (write(procs, "0", 1) != 1)
        return viv_fail(err, VIV_SYSTEM, "move the worker into its cgroup: %m");
    return 0;
}

int session_cgroup_oom_kills(int events, uint64_t *kills, struct viv_error *err) {
    char text[512];
    ssize_t got = pread(events, text, sizeof text - 1, 0);

    if (got < 0)
        return viv_fail(err, VIV_SYSTEM, "read memory.events of a cgroup: %m");
    text[got] = '\0';
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, "oom_kill %" SCNu64, kills) == 1)
            return 0;
    }
    return viv_fail(err, VIV_SYSTEM, "memory.events of a cgroup tells no oom_kill");
}
