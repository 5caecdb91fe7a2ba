/* SPDX-License-Identifier: MIT */
#include "executor/zygote/fork_orphan.h"

#include <errno.h>
#include <linux/prctl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* What _Fork(3) would set in the child. */
struct thread_of_libc {
    pid_t *id;    /* where libc keeps gettid(2); NULL if the kernel does not tell */
    void *robust; /* get_robust_list(2) */
    size_t robust_size;
};

static struct thread_of_libc own_thread(void) {
    struct thread_of_libc thread = {0};

    /* Only with CONFIG_CHECKPOINT_RESTORE, which distributions have. */
    if (prctl(PR_GET_TID_ADDRESS, &thread.id, 0, 0, 0))
        thread.id = NULL;
    if (syscall(SYS_get_robust_list, 0, &thread.robust, &thread.robust_size))
        thread.robust = NULL;
    return thread;
}

/* clone(2) as fork(2), without libc. */
static pid_t fork_without_libc(const struct thread_of_libc *thread) {
    const unsigned long flags = CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
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

/*
 * The child of a process that forks into another PID namespace would have that process
 * for its parent. It shall have the namespace's PID 1: so a process in between forks it
 * and ends, and the kernel gives it to the reaper of its namespace (pid_namespaces(7)),
 * or in ours to the launcher, which has asked for that (prctl(2),
 * PR_SET_CHILD_SUBREAPER). The one in between shares this process's memory (vfork(2)), so
 * that only one copy of the page tables is made.
 */
__attribute__((noinline)) pid_t fork_orphan(void) {
    const struct thread_of_libc thread = own_thread();
    int status = 0;
    /* What holds if it is killed meanwhile, with the PID namespace that it is in. */
    volatile int failed = ESRCH;
    volatile pid_t made = -1;
    pid_t between = vfork(); /* NOLINT(*-unsafe-functions, cert-msc*) */

    if (between == 0) {
        /* libc takes locks at a fork, even _Fork(3) that of abort(3) since glibc 2.41. They
         * are in the memory that is shared, and a process that is killed does not give
         * them back: every later child would wait for it in sigaction(2) of SIGABRT. */
        pid_t child = thread.id ? fork_without_libc(&thread) : _Fork();
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
