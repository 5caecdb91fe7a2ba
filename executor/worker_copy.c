/* SPDX-License-Identifier: MIT */
#include "executor/worker_copy.h"

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "executor/checkpoint.h"
#include "executor/seccomp/checkpoint_filter.h"

#define ALL_SIGNALS UINT64_MAX

int worker_copy_offer(int channel, const void *message, size_t size,
                      struct viv_error *err) {
    CLEANUP(close_fd) int listener = checkpoint_filter_load(err);

    if (listener < 0)
        return -1;
    return io_send_message(channel, message, size, &listener, 1, err);
}

/* By system calls: libc keeps some signals out of each mask. */
static void set_mask(const uint64_t *mask, uint64_t *before) {
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, mask, before, sizeof *mask);
}

/* Signals that the session has sent to the copy were meant for nobody. */
static void drop_pending(void) {
    const uint64_t all = ALL_SIGNALS;
    const struct timespec now = {0};

    while (syscall(SYS_rt_sigtimedwait, &all, NULL, &now, sizeof all) > 0)
        ;
}

enum worker_copy worker_copy_make(const struct raw_fork *thread, int channel) {
    const uint64_t all = ALL_SIGNALS;
    uint64_t before = 0;

    /* No handler of the session's runs in the copy, nor while the clone is let
     * through. */
    set_mask(&all, &before);
    pid_t copy = raw_fork(thread, CHECKPOINT_CLONE_FLAGS);
    if (copy == 0) {
        close(channel);
        if (syscall(SYS_getppid, CHECKPOINT_PARK) != 0)
            _exit(0); /* not accepted, or the supervisor is gone */
        drop_pending();
    }
    set_mask(&before, NULL);
    if (copy < 0)
        return WORKER_COPY_FAILED;
    return copy == 0 ? WORKER_COPY_WOKEN : WORKER_COPY_MADE;
}
