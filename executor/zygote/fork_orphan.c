/* SPDX-License-Identifier: MIT */
#include "executor/zygote/fork_orphan.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/raw_fork.h"

#define FORK_FLAGS (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD)

/*
 * The child of a process that forks into another PID namespace would have that process
 * for its parent. It shall have the namespace's PID 1: so a process in between forks it
 * and ends, and the kernel gives it to the reaper of its namespace (pid_namespaces(7)),
 * or in ours to the launcher, which has asked for that (prctl(2),
 * PR_SET_CHILD_SUBREAPER). The one in between shares this process's memory (vfork(2)), so
 * that only one copy of the page tables is made.
 */
__attribute__((noinline)) pid_t fork_orphan(void) {
    const struct raw_fork thread = raw_fork_prepare();
    int status = 0;
    /* What holds if it is killed meanwhile, with the PID namespace that it is in. */
    volatile int failed = ESRCH;
    volatile pid_t made = -1;
    pid_t between = vfork(); /* NOLINT(*-unsafe-functions, cert-msc*) */

    if (between == 0) {
        /* libc takes locks at a fork, even _Fork(3) that of abort(3) since glibc 2.41.
         * They are in the memory that is shared, and a process that is killed does not
         * give them back: every later child would wait for it in sigaction(2) of
         * SIGABRT. */
        pid_t child = thread.id ? raw_fork(&thread, FORK_FLAGS) : _Fork();
        if (child == 0)
            return 0;
        failed = child < 0 ? errno : 0;
        made = child;
        _exit(0);
    }
    if (between < 0)
        return -1;
    while (waitpid(between, &status, 0) < 0 && errno == EINTR)
        ;
    if (!thread.id && WIFSIGNALED(status))
        _exit(EXIT_FAILURE); /* the next one starts with locks that are free */
    errno = failed;
    return made;
}
