/* SPDX-License-Identifier: MIT */
#include "executor/launcher/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/descriptors.h"
#include "common/io.h"
#include "common/log.h"
#include "executor/confine.h"
#include "executor/isolation.h"
#include "executor/launcher/launcher.h"
#include "executor/launcher/listen_socket.h"
#include "executor/launcher/template_root.h"
#include "executor/launcher/user_namespace.h"

#define START_LIMIT_MS  10000
#define BIT(capability) (UINT64_C(1) << (capability))

struct keeper {
    const struct settings *settings;
    uid_t client; /* that may connect, besides root and our own user */
    int listening;
    int signals; /* signalfd */
    int to_launcher;
    pid_t launcher;
};

/* ---- the child: on its way to be the launcher ---- */

/* Enters the outer user namespace; the parent writes its map in between. */
static int enter_user_namespace(int keeper, bool ordinary, struct viv_error *err) {
    char byte = 0;
    size_t fd_count;

    if (unshare(CLONE_NEWUSER))
        return viv_fail(
            err, VIV_SYSTEM,
            "unshare a user namespace: %m (user namespaces must be allowed on this "
            "host)");
    if (io_send_message(keeper, &byte, 1, NULL, 0, err) ||
        io_receive_message(keeper, &byte, 1, NULL, 0, &fd_count, err) != 1)
        return viv_fail(err, VIV_SYSTEM, "the user namespace was not mapped");
    if (!ordinary && (setresgid(0, 0, 0) || setresuid(0, 0, 0)))
        return viv_fail(err, VIV_SYSTEM, "change to the user of the namespace: %m");
    /* A change of user makes a process not dumpable, and then it may not write the maps
     * of its children, whose files in /proc are not its own: proc(5). */
    if (prctl(PR_SET_DUMPABLE, 1))
        return viv_fail(err, VIV_SYSTEM, "set dumpable: %m");
    return 0;
}

static int become_launcher(int keeper, bool ordinary, struct viv_error *err) {
    /* What it takes to make namespaces and map ids, to make them anew for the zygote, and
     * to end sandboxes. All of it inside the outer user namespace only. */
    const uint64_t kept = BIT(CAP_SYS_ADMIN) | BIT(CAP_SETUID) | BIT(CAP_SETGID) |
                          BIT(CAP_SETPCAP) | BIT(CAP_KILL);

    /* Its own process group: a terminal's interrupt is for the keeper. */
    setsid();
    if (enter_user_namespace(keeper, ordinary, err))
        return -1;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL))
        return viv_fail(err, VIV_SYSTEM, "set the parent-death signal: %m");
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS |
                CLONE_NEWCGROUP))
        return viv_fail(err, VIV_SYSTEM, "unshare: %m");
    if (template_root_enter(err))
        return -1;
    return confine_to_capabilities(kept, err);
}

__attribute__((noreturn)) static void launcher_main(const struct settings *settings,
                                                    int keeper, int program) {
    struct viv_error err;
    struct launcher_start start = {
        .settings = settings,
        .keeper = keeper,
        .program = program,
        .proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
        .ordinary = geteuid() != 0,
    };

    if (start.proc < 0)
        viv_fail(&err, VIV_SYSTEM, "open /proc: %m");
    else if (become_launcher(keeper, start.ordinary, &err) == 0)
        _exit(launcher_run(&start));
    viv_log_failure(VIV_LOG_ERROR, "launcher_not_started", err.message, NULL);
    _exit(EXIT_FAILURE);
}

/* ---- the keeper itself ---- */

/* The user that may ask, besides root and our own. */
static int find_client(const struct settings *settings, uid_t *client,
                       struct viv_error *err) {
    *client = geteuid();
    if (geteuid() != 0)
        return 0;
    const struct passwd *entry = getpwnam(settings->executor_client);
    if (!entry)
        return viv_fail(err, VIV_CONFIG, "executor_client: there is no user %s",
                        settings->executor_client);
    *client = entry->pw_uid;
    return 0;
}

int keeper_check(const struct settings *settings, struct viv_error *err) {
    uid_t client;

    if (isolation_check(ISOLATION_ISOLATED, settings->min_isolation, err))
        return -1;
    return find_client(settings, &client, err);
}

static int block_signals(struct viv_error *err) {
    sigset_t mask;

    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    int fd = signalfd(-1, &mask, SFD_CLOEXEC);
    return fd < 0 ? viv_fail(err, VIV_SYSTEM, "signalfd: %m") : fd;
}

/* Starts the child that becomes the launcher and maps its user namespace. */
static int start_launcher(struct keeper *keeper, int program, struct viv_error *err) {
    int pair[2];
    char byte = 0;
    size_t fd_count;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return viv_fail(err, VIV_SYSTEM, "socketpair: %m");
    keeper->to_launcher = pair[0];
    CLEANUP(close_fd) int theirs = pair[1];
    pid_t parent = getpid();
    keeper->launcher = fork();
    if (keeper->launcher < 0)
        return viv_fail(err, VIV_SYSTEM, "fork: %m");
    if (keeper->launcher == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(EXIT_FAILURE);
        close(keeper->to_launcher);
        close(keeper->listening);
        close(keeper->signals);
        launcher_main(keeper->settings, theirs, program);
    }
    if (io_wait(keeper->to_launcher, false, viv_after_ms(START_LIMIT_MS), err))
        return -1;
    if (io_receive_message(keeper->to_launcher, &byte, 1, NULL, 0, &fd_count, err) != 1)
        return viv_fail(err, VIV_SYSTEM, "the launcher did not start");
    if (user_namespace_map_outer(keeper->launcher, keeper->settings->uid_base, err))
        return -1;
    return io_send_message(keeper->to_launcher, &byte, 1, NULL, 0, err);
}

/* Hands a new connection on, if it comes from one who may ask. */
static void accept_client(const struct keeper *keeper) {
    CLEANUP(close_fd) int fd = accept4(keeper->listening, NULL, NULL, SOCK_CLOEXEC);
    struct ucred peer;
    socklen_t size = sizeof peer;
    char byte = 0;

    if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
        return;
    if (peer.uid != 0 && peer.uid != geteuid() && peer.uid != keeper->client) {
        viv_log(VIV_LOG_WARNING, "client_refused", "uid=%u", (unsigned)peer.uid);
        return;
    }
    if (io_send_message(keeper->to_launcher, &byte, 1, &fd, 1, NULL))
        viv_log_failure(VIV_LOG_WARNING, "client_dropped", "the launcher is too busy",
                        NULL);
}

/* Serves until a signal asks to stop (true) or the launcher has ended (false). */
static bool serve(const struct keeper *keeper) {
    struct pollfd watched[] = {{keeper->signals, POLLIN, 0},
                               {keeper->listening, POLLIN, 0}};
    struct signalfd_siginfo info;

    for (;;) {
        if (poll(watched, 2, -1) < 0 && errno != EINTR)
            return false;
        if (watched[1].revents)
            accept_client(keeper);
        if (!watched[0].revents ||
            read(keeper->signals, &info, sizeof info) != sizeof info)
            continue;
        if (info.ssi_signo != SIGCHLD)
            return true;
        /* SIGCHLD is also sent for one that was stopped. */
        siginfo_t ended = {0};
        if (waitid(P_PID, (id_t)keeper->launcher, &ended, WEXITED | WNOWAIT | WNOHANG) ==
                0 &&
            ended.si_pid == keeper->launcher)
            return false;
    }
}

/* Ends the launcher: by its socket, then by force. */
static void stop_launcher(struct keeper *keeper) {
    viv_time deadline = viv_after_ms((int64_t)keeper->settings->stop_timeout);

    close_and_clear(&keeper->to_launcher);
    while (waitpid(keeper->launcher, NULL, WNOHANG) == 0) {
        if (viv_now() > deadline)
            kill(keeper->launcher, SIGKILL);
        io_wait(keeper->signals, false, viv_after_ms(20), NULL);
        struct signalfd_siginfo info;
        if (io_wait(keeper->signals, false, viv_now(), NULL) == 0 &&
            read(keeper->signals, &info, sizeof info) < 0)
            break;
    }
}

static int set_up(struct keeper *keeper, int program, struct viv_error *err) {
    if (find_client(keeper->settings, &keeper->client, err))
        return -1;
    descriptors_raise_limit();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return viv_fail(err, VIV_SYSTEM, "set no_new_privs: %m");
    if (geteuid() == 0 && setgroups(0, NULL))
        return viv_fail(err, VIV_SYSTEM, "setgroups: %m");
    keeper->signals = block_signals(err);
    if (keeper->signals < 0)
        return -1;
    keeper->listening =
        listen_socket_open(keeper->settings->executor_socket, keeper->client, err);
    if (keeper->listening < 0 || start_launcher(keeper, program, err))
        return -1;
    return confine_to_capabilities(geteuid() == 0 ? BIT(CAP_KILL) : 0, err);
}

int keeper_run(const struct settings *settings, int program) {
    struct keeper keeper = {
        .settings = settings, .listening = -1, .signals = -1, .to_launcher = -1};
    struct viv_error err;
    int status = EXIT_FAILURE;

    if (set_up(&keeper, program, &err)) {
        viv_log_failure(VIV_LOG_ERROR, "executor_not_started", err.message, NULL);
    } else {
        viv_log(VIV_LOG_INFO, "executor_started", "socket=%s", settings->executor_socket);
        bool asked = serve(&keeper);
        viv_log_failure(asked ? VIV_LOG_INFO : VIV_LOG_ERROR, "executor_stops",
                        asked ? "asked to" : "the launcher ended", NULL);
        status = asked ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (keeper.launcher > 0)
        stop_launcher(&keeper);
    if (keeper.listening >= 0)
        unlink(settings->executor_socket);
    return status;
}
