/* SPDX-License-Identifier: MIT */
#include "executor/raw_fork.h"

#include <linux/prctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct raw_fork raw_fork_prepare(void) {
    struct raw_fork thread = {0};

    /* Only with CONFIG_CHECKPOINT_RESTORE, which distributions have. */
    if (prctl(PR_GET_TID_ADDRESS, &thread.id, 0, 0, 0))
        thread.id = NULL;
    if (syscall(SYS_get_robust_list, 0, &thread.robust, &thread.robust_size))
        thread.robust = NULL;
    return thread;
}

pid_t raw_fork(const struct raw_fork *thread, unsigned long flags) {
#if defined(__x86_64__)
    long child = syscall(SYS_clone, flags, NULL, NULL, thread->id, 0);
#else
    long child = syscall(SYS_clone, flags, NULL, NULL, 0, thread->id);
#endif
    /* The list is empty: nobody holds such a mutex at a fork. */
    if (child == 0 && thread->robust)
        syscall(SYS_set_robust_list, thread->robust, thread->robust_size);
    return (pid_t)child;
}
