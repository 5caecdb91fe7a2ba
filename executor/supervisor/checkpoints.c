/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/checkpoints.h"

#include <signal.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"

void checkpoints_init(struct checkpoints *checkpoints, const struct settings *settings,
                      bool on) {
    *checkpoints = (struct checkpoints){
        .on = on,
        .delay_ms = (int64_t)settings->checkpoint_delay,
        .most_memory = settings->checkpoint_memory,
        .due = VIV_TIME_NEVER,
    };
}

bool checkpoints_have(const struct parked_copy *copy) {
    return copy->pid > 0 && io_wait(copy->pidfd, false, viv_now(), NULL) != 0;
}

void checkpoints_drop(struct parked_copy *copy) {
    /* The number of one that has ended may be another's by now. */
    if (checkpoints_have(copy))
        kill(copy->pid, SIGKILL);
    if (copy->pid > 0)
        close(copy->pidfd);
    copy->pid = 0;
}
