/* SPDX-License-Identifier: MIT */
#include "executor/launcher/launcher_process.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/io.h"
#include "common/log.h"
#include "executor/confine.h"
#include "executor/launcher/slot_ids.h"
#include "executor/launcher/slots.h"
#include "executor/launcher/template_root.h"
#include "executor/launcher/user_namespace.h"

#define START_LIMIT_MS  10000
#define TRIAL_LIMIT_MS  180000 /* a tree of the host's files may have to be copied */
#define BIT(capability) (UINT64_C(1) << (capability))

/* ---- the child: on its way to be the launcher ---- */

static int enter_namespaces(int keeper, bool ordinary, struct viv_error *err) {
    /* What it takes to make namespaces and map ids, to make them anew for the zygote, to
     * end sandboxes, and to look at a worker in /proc. All of it inside the outer user
     * namespace only. */
    const uint64_t kept = BIT(CAP_SYS_ADMIN) | BIT(CAP_SETUID) | BIT(CAP_SETGID) |
                          BIT(CAP_SETPCAP) | BIT(CAP_KILL) | BIT(CAP_SYS_PTRACE);

    if (user_namespace_enter_outer(keeper, ordinary, err))
        return -1;
    /* No cgroup namespace: moves out of it would be refused (cgroups(7), nsdelegate).
     * Sessions have theirs. */
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS))
        return viv_fail(err, VIV_SYSTEM, "unshare: %m");
    if (template_root_enter(err))
        return -1;
    return confine_to_capabilities(kept, err);
}

/* The root of the zygote, and a user of its own. */
static int enter_zygotes_root(const struct launcher_start *start, struct viv_error *err) {
    /* To change the root and the user of sandboxes, and to end them. */
    const uint64_t kept = BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_SYS_CHROOT) |
                          BIT(CAP_SETPCAP) | BIT(CAP_KILL);
    const uid_t user = slot_launcher_uid(start->settings);

    if (confine_root(start->folder, err))
        return -1;
    if (prctl(PR_SET_KEEPCAPS, 1))
        return viv_fail(err, VIV_SYSTEM, "keep capabilities: %m");
    return confine_become_user(user, user, err) ? -1 : confine_to_capabilities(kept, err);
}

static int enter_slots(struct launcher_start *start, struct viv_error *err) {
    start->folder = slots_ask_for_zygote(start->janitor, err);
    if (start->folder < 0)
        return -1;
    return start->tier == ISOLATION_CONFINED ? enter_zygotes_root(start, err)
                                             : confine_to_capabilities(0, err);
}

static int become_launcher(struct launcher_start *start, struct viv_error *err) {
    /* Its own process group: a terminal's interrupt is for the keeper. */
    setsid();
    /* A supervisor that is gone does not read how its worker ended. */
    signal(SIGPIPE, SIG_IGN);
    start->proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (start->proc < 0)
        return viv_fail(err, VIV_SYSTEM, "open /proc: %m");
    if (isolation_has_namespaces(start->tier)
            ? enter_namespaces(start->keeper, start->ordinary, err)
            : enter_slots(start, err))
        return -1;
    /* A change of user makes a process not dumpable, and then it may not write the maps
     * of its children, whose files in /proc are not its own: proc(5). It clears the
     * parent-death signal, too: prctl(2). */
    if (prctl(PR_SET_DUMPABLE, 1) || prctl(PR_SET_PDEATHSIG, SIGKILL))
        return viv_fail(err, VIV_SYSTEM, "prctl: %m");
    return 0;
}

typedef void launcher_main(struct launcher_start *start); /* never returns */

__attribute__((noreturn)) static void serve(struct launcher_start *start) {
    struct viv_error err;

    if (become_launcher(start, &err) == 0)
        _exit(launcher_run(start));
    viv_log_failure(VIV_LOG_ERROR, "launcher_not_started", err.message, NULL);
    _exit(EXIT_FAILURE);
}

/* Sends what failed, or nothing. */
__attribute__((noreturn)) static void try(struct launcher_start *start) {
    struct viv_error err;

    if (become_launcher(start, &err) == 0 && launcher_try(start, &err) == 0)
        _exit(EXIT_SUCCESS);
    io_send_message(start->keeper, err.message, strlen(err.message), NULL, 0, NULL);
    _exit(EXIT_FAILURE);
}

/* ---- the parent ---- */

/* Forks the child and maps its user namespace, if it makes one. */
static int start_child(struct launcher_process *process,
                       const struct launcher_start *start, launcher_main *run,
                       const int unwanted[], size_t count, struct viv_error *err) {
    struct launcher_start told = *start;
    const pid_t parent = getpid();
    int pair[2];
    char byte = 0;
    size_t fd_count;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return viv_fail(err, VIV_SYSTEM, "socketpair: %m");
    process->socket = pair[0];
    CLEANUP(close_fd) int theirs = pair[1];
    process->pid = fork();
    if (process->pid < 0)
        return viv_fail(err, VIV_SYSTEM, "fork: %m");
    if (process->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(EXIT_FAILURE);
        close(process->socket);
        for (size_t i = 0; i < count; i++)
            close(unwanted[i]);
        told.keeper = steal_fd(&theirs);
        cgroups_become_launcher(told.cgroups);
        run(&told);
        _exit(EXIT_FAILURE);
    }
    if (!isolation_has_namespaces(start->tier))
        return 0;
    close_and_clear(&theirs);
    if (io_wait(process->socket, false, viv_after_ms(START_LIMIT_MS), err))
        return -1;
    char text[VIV_ERROR_MESSAGE_MAX];
    ssize_t got = io_receive_message(process->socket, text, sizeof text - 1, NULL, 0,
                                     &fd_count, err);
    if (got != 1)
        return viv_fail(err, VIV_SYSTEM, "%.*s", got > 0 ? (int)got : 0,
                        got > 0 ? text : "");
    if (user_namespace_map_outer(process->pid, start->settings->uid_base, err))
        return -1;
    return io_send_message(process->socket, &byte, 1, NULL, 0, err);
}

int launcher_process_start(struct launcher_process *process,
                           const struct launcher_start *start, const int unwanted[],
                           size_t count, struct viv_error *err) {
    return start_child(process, start, serve, unwanted, count, err);
}

/* What the child says before it ends. */
static int wait_for_verdict(int socket, struct viv_error *err) {
    char text[VIV_ERROR_MESSAGE_MAX];
    size_t fd_count;

    if (io_wait(socket, false, viv_after_ms(TRIAL_LIMIT_MS), err))
        return -1;
    ssize_t got =
        io_receive_message(socket, text, sizeof text - 1, NULL, 0, &fd_count, err);
    if (got < 0)
        return -1;
    text[got] = '\0';
    return got == 0 ? 0 : viv_fail(err, VIV_SYSTEM, "%s", text);
}

int launcher_process_try(const struct launcher_start *start, const int unwanted[],
                         size_t count, struct viv_error *err) {
    struct launcher_process process = {.socket = -1};
    int status = 0;
    int failed = start_child(&process, start, try, unwanted, count, err) ||
                 wait_for_verdict(process.socket, err);

    close_fd_cleanup(&process.socket);
    if (process.pid > 0) {
        if (failed)
            kill(process.pid, SIGKILL);
        waitpid(process.pid, &status, 0);
    }
    if (failed)
        return -1;
    return status == 0 ? 0 : viv_fail(err, VIV_SYSTEM, "the trial of a sandbox died");
}
