/* SPDX-License-Identifier: MIT */
#include "executor/launcher/keeper.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/descriptors.h"
#include "common/io.h"
#include "common/log.h"
#include "executor/confine.h"
#include "executor/launcher/launcher_process.h"
#include "executor/launcher/listen_socket.h"
#include "executor/launcher/tier_choice.h"
#include "executor/seccomp/refusals.h"

#define ACCEPT_PAUSE_MS 100
#define BIT(capability) (UINT64_C(1) << (capability))

struct keeper {
    const struct settings *settings;
    const struct service_notify *manager;
    uid_t client; /* that may connect, besides root and our own user */
    int listening;
    int signals; /* signalfd */
    int spare;   /* given up for a connection when there is no other descriptor, or -1 */
    viv_time complained; /* of an accept(2) that failed */
    struct tier_choice choice;
    struct launcher_process launcher;
};

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

    return refusals_check(settings->seccomp_refuse, err)
               ? -1
               : find_client(settings, &client, err);
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

/* Hands a new connection on, if it comes from one who may ask. */
static void hand_on(const struct keeper *keeper, int fd) {
    struct ucred peer;
    socklen_t size = sizeof peer;
    struct viv_error err;
    char byte = 0;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
        return;
    if (peer.uid != 0 && peer.uid != geteuid() && peer.uid != keeper->client) {
        viv_log(VIV_LOG_WARNING, "client_refused", "uid=%u", (unsigned)peer.uid);
        return;
    }
    /* It has too many to take, or has just ended. */
    if (io_send_message(keeper->launcher.socket, &byte, 1, &fd, 1, &err))
        viv_log_failure(VIV_LOG_WARNING, "client_dropped", err.message, NULL);
}

/* A connection that nobody accepts would wake poll(2) again and again. */
static void accept_client(struct keeper *keeper) {
    const struct timespec pause = {.tv_nsec = ACCEPT_PAUSE_MS * VIV_MS};
    int fd = accept4(keeper->listening, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
        close_and_clear(&keeper->spare);
        fd = accept4(keeper->listening, NULL, NULL, SOCK_CLOEXEC);
    }
    if (fd >= 0) {
        hand_on(keeper, fd);
        close(fd);
    } else if (errno != EINTR && errno != ECONNABORTED) {
        if (viv_now() - keeper->complained > VIV_SECOND) {
            keeper->complained = viv_now();
            viv_log_failure(VIV_LOG_ERROR, "accept_failed", strerrordesc_np(errno), NULL);
        }
        nanosleep(&pause, NULL);
    }
    if (keeper->spare < 0)
        keeper->spare = descriptors_spare();
}

/* Whether a child has ended that must not. */
static bool has_ended(pid_t child) {
    siginfo_t ended = {0};

    return child > 0 &&
           waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT | WNOHANG) == 0 &&
           ended.si_pid == child;
}

/* What the launcher says of itself goes on to the service manager: a beat is one of both
 * loops. Its end is not told here, but by SIGCHLD. */
static bool listen_to_launcher(const struct keeper *keeper) {
    char state[64], word = 0;
    size_t fd_count;
    struct viv_error err;
    ssize_t got = io_receive_message(keeper->launcher.socket, &word, sizeof word, NULL, 0,
                                     &fd_count, &err);

    if (got == sizeof word && word == LAUNCHER_WORKS)
        service_notify_tell(keeper->manager, "WATCHDOG=1");
    if (got == sizeof word && word == LAUNCHER_READY) {
        snprintf(state, sizeof state, "READY=1\nSTATUS=isolation: %s",
                 isolation_name(keeper->choice.tier));
        service_notify_tell(keeper->manager, state);
    }
    return got > 0 || (got < 0 && err.code == VIV_UNAVAILABLE);
}

/* Serves until a signal asks to stop (NULL) or a part has ended, which it returns. */
static const char *serve(struct keeper *keeper) {
    struct pollfd watched[] = {{keeper->signals, POLLIN, 0},
                               {keeper->listening, POLLIN, 0},
                               {keeper->launcher.socket, POLLIN, 0}};
    struct signalfd_siginfo info;

    for (;;) {
        if (poll(watched, 3, -1) < 0 && errno != EINTR)
            return "poll failed";
        if (watched[1].revents)
            accept_client(keeper);
        if (watched[2].revents && !listen_to_launcher(keeper))
            watched[2].fd = -1; /* passed over by poll(2) */
        if (!watched[0].revents ||
            read(keeper->signals, &info, sizeof info) != sizeof info)
            continue;
        if (info.ssi_signo != SIGCHLD)
            return NULL;
        /* SIGCHLD is also sent for one that was stopped. */
        if (has_ended(keeper->launcher.pid))
            return "the launcher ended";
        if (has_ended(keeper->choice.janitor))
            return "the janitor ended";
    }
}

/* Ends a child: by its socket, which is closed, then by force. */
static void wait_for_end(const struct keeper *keeper, pid_t child, viv_time deadline) {
    struct signalfd_siginfo info;

    while (child > 0 && waitpid(child, NULL, WNOHANG) == 0) {
        if (viv_now() > deadline)
            kill(child, SIGKILL);
        if (io_wait(keeper->signals, false, viv_after_ms(20), NULL) == 0 &&
            read(keeper->signals, &info, sizeof info) < 0)
            break;
    }
}

static void stop_parts(struct keeper *keeper) {
    viv_time deadline = viv_after_ms((int64_t)keeper->settings->stop_timeout);

    close_and_clear(&keeper->launcher.socket);
    wait_for_end(keeper, keeper->launcher.pid, deadline);
    /* It empties the slots before it ends. */
    close_and_clear(&keeper->choice.to_janitor);
    wait_for_end(keeper, keeper->choice.janitor,
                 viv_after_ms((int64_t)keeper->settings->stop_timeout));
}

static int start_launcher(struct keeper *keeper, int program, struct viv_error *err) {
    struct launcher_start start = tier_launcher_start(&keeper->choice, program);
    const int unwanted[] = {keeper->listening, keeper->signals, keeper->manager->fd};

    start.beat_ms = keeper->manager->beat_ms;
    if (launcher_process_start(&keeper->launcher, &start, unwanted, 3, err))
        return -1;
    /* The janitor's socket is the launcher's now: its end is the launcher's end. */
    close_and_clear(&keeper->choice.to_janitor);
    return 0;
}

static int set_up(struct keeper *keeper, int program, struct viv_error *err) {
    if (find_client(keeper->settings, &keeper->client, err))
        return -1;
    descriptors_raise_limit();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return viv_fail(err, VIV_SYSTEM, "set no_new_privs: %m");
    /* EPERM: a root without capabilities. The tiers in which sessions have users of their
     * own are not for it. */
    if (geteuid() == 0 && setgroups(0, NULL) && errno != EPERM)
        return viv_fail(err, VIV_SYSTEM, "setgroups: %m");
    keeper->signals = block_signals(err);
    if (keeper->signals < 0)
        return -1;
    keeper->listening =
        listen_socket_open(keeper->settings->executor_socket, keeper->client, err);
    if (keeper->listening < 0)
        return -1;
    const int unwanted[] = {keeper->listening, keeper->signals, keeper->manager->fd};
    if (tier_choose(&keeper->choice, keeper->settings, program, unwanted, 3, err) ||
        start_launcher(keeper, program, err))
        return -1;
    return confine_to_capabilities(
        geteuid() == 0 ? BIT(CAP_KILL) & confine_held_capabilities() : 0, err);
}

int keeper_run(const struct settings *settings, int program,
               const struct service_notify *manager) {
    struct keeper keeper = {.settings = settings,
                            .manager = manager,
                            .listening = -1,
                            .signals = -1,
                            .spare = -1,
                            .choice = {.to_janitor = -1, .cgroups = cgroups_none()},
                            .launcher = {.socket = -1}};
    struct viv_error err;
    int status = EXIT_FAILURE;

    if (set_up(&keeper, program, &err)) {
        viv_log_failure(VIV_LOG_ERROR, "executor_not_started", err.message, NULL);
    } else {
        tier_log(&keeper.choice);
        viv_log(VIV_LOG_INFO, "executor_started", "socket=%s", settings->executor_socket);
        keeper.spare = descriptors_spare();
        const char *ended = serve(&keeper);
        service_notify_tell(manager, "STOPPING=1");
        viv_log_failure(ended ? VIV_LOG_ERROR : VIV_LOG_INFO, "executor_stops",
                        ended ? ended : "asked to", NULL);
        status = ended ? EXIT_FAILURE : EXIT_SUCCESS;
    }
    stop_parts(&keeper);
    tier_close(&keeper.choice);
    if (keeper.listening >= 0)
        unlink(settings->executor_socket);
    return status;
}
