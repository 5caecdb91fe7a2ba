/* SPDX-License-Identifier: MIT */
#include "executor/launcher/zygote_process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/io.h"
#include "common/log.h"
#include "executor/confine.h"
#include "executor/launcher/slot_ids.h"
#include "executor/launcher/user_namespace.h"
#include "executor/oom_score.h"

#define THREADS_OF_SERVICES 1024
#define RESERVED_THREADS                                                                 \
    2 /* RLIMIT_NPROC counts the supervisor and a parked process, too */

/* The whole environment of the zygote and of every session, with some paths before it.
 * Thread counts are one before any library is loaded: a zygote with a second thread could
 * not be forked. */
#define PATH_COUNT 3

static char *const environment[] = {
    "PATH=/nonexistent",
    "LANG=C.UTF-8",
    "TZ=UTC",
    "MPLBACKEND=Agg",
    "OMP_NUM_THREADS=1",
    "OPENBLAS_NUM_THREADS=1",
    "NUMEXPR_MAX_THREADS=1",
    "NUMEXPR_NUM_THREADS=1",
    "MKL_NUM_THREADS=1",
    "MALLOC_ARENA_MAX=2",
    "PYTHONDONTWRITEBYTECODE=1",
    NULL,
};

/* Keeps over the exec, as ambient capabilities, what it takes to make workers. The zygote
 * makes it effective only while it forks. */
static int keep_capabilities(uint64_t kept, struct viv_error *err) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {0};

    sets[0].effective = sets[0].permitted = sets[0].inheritable = (uint32_t)kept;
    if (syscall(SYS_capset, &header, sets))
        return viv_fail(err, VIV_SYSTEM, "capset: %m");
    for (unsigned long one = 0; kept >> one; one++)
        if (kept >> one & 1 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, one, 0, 0))
            return viv_fail(err, VIV_SYSTEM, "raise an ambient capability: %m");
    return 0;
}

/* A /tmp that libraries can write to while they are imported. */
static int mount_scratch(struct viv_error *err) {
    if (unshare(CLONE_NEWNS))
        return viv_fail(err, VIV_SYSTEM, "unshare: %m");
    if (mount("scratch", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "size=64m,mode=1777"))
        return viv_fail(err, VIV_SYSTEM, "mount /tmp: %m");
    return 0;
}

/* A user of its own, where there is one, and the capabilities. */
static int change_user(const struct zygote_setup *setup, struct viv_error *err) {
    const bool inside = isolation_has_namespaces(setup->tier);
    const uid_t user = inside ? ZYGOTE_ID : slot_zygote_uid(setup->settings);

    if (setup->tier == ISOLATION_MINIMAL)
        return 0;
    if (prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS | SECBIT_NOROOT | SECBIT_NOROOT_LOCKED))
        return viv_fail(err, VIV_SYSTEM, "set secure bits: %m");
    if (!(inside && setup->ordinary) && confine_become_user(user, user, err))
        return -1;
    return keep_capabilities(zygote_capabilities(setup->tier), err);
}

/* Writes HOME and the folders for temporary files in front of the environment; /tmp is
 * where libraries look without being told. */
static int make_environment(const struct zygote_setup *setup, char *made[],
                            char paths[PATH_COUNT][PATH_MAX + 32],
                            struct viv_error *err) {
    char top[PATH_MAX] = "";
    const char *home = SESSION_HOME;

    if (setup->tier == ISOLATION_MINIMAL) {
        if (fchdir(setup->folder) || !getcwd(top, sizeof top))
            return viv_fail(err, VIV_SYSTEM, "enter the zygote's folder: %m");
        home = "/home";
    }
    snprintf(paths[0], sizeof paths[0], "HOME=%s%s", top, home);
    snprintf(paths[1], sizeof paths[1], "MPLCONFIGDIR=%s/tmp/matplotlib", top);
    snprintf(paths[2], sizeof paths[2], "TMPDIR=%s/tmp", top);
    int count = 0;
    while (count < (*top ? PATH_COUNT : PATH_COUNT - 1)) {
        made[count] = paths[count];
        count++;
    }
    memcpy(made + count, environment, sizeof environment);
    return 0;
}

/* The child: scratch space, a user of its own, few capabilities, then the program. */
static int become_zygote(const struct zygote_setup *setup, int socket,
                         struct viv_error *err) {
    static char paths[PATH_COUNT][PATH_MAX + 32];
    char preload[4096], tier[16], refuse[4096];
    char *made[PATH_COUNT + sizeof environment / sizeof *environment];
    char *const arguments[] = {"vivarium-zygote",
                               preload,
                               setup->settings->log_level,
                               tier,
                               refuse,
                               setup->checkpoints ? "on" : "off",
                               NULL};

    snprintf(preload, sizeof preload, "%s", setup->settings->preload);
    snprintf(refuse, sizeof refuse, "%s", setup->settings->seccomp_refuse);
    snprintf(tier, sizeof tier, "%s", isolation_name(setup->tier));
    /* While its files in /proc are its own; a host that does not allow it keeps sessions
     * apart all the same. */
    if (oom_score_raise(setup->proc, err))
        viv_log_failure(VIV_LOG_WARNING, "oom_score_not_raised", err->message, NULL);
    if (isolation_has_namespaces(setup->tier) && mount_scratch(err))
        return -1;
    if (make_environment(setup, made, paths, err) || change_user(setup, err))
        return -1;
    /* A change of user clears it; the launcher outlives its zygote. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL))
        return viv_fail(err, VIV_SYSTEM, "set the parent-death signal: %m");
    int program = fcntl(setup->program, F_DUPFD, 5);
    if (program < 0 || dup2(socket, 3) < 0 || dup2(program, 4) < 0 ||
        confine_descriptors(5, err))
        return viv_fail(err, VIV_SYSTEM, "arrange descriptors: %m");
    if (fcntl(4, F_SETFD, FD_CLOEXEC))
        return viv_fail(err, VIV_SYSTEM, "fcntl: %m");
    syscall(SYS_execveat, 4, "", arguments, made, AT_EMPTY_PATH);
    return viv_fail(err, VIV_SYSTEM, "execute vivarium-zygote: %m");
}

static void child_main(const struct zygote_setup *setup, int socket) {
    sigset_t none;
    struct viv_error err;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    become_zygote(setup, socket, &err);
    viv_log_failure(VIV_LOG_ERROR, "zygote_not_started", err.message, NULL);
    _exit(1);
}

int zygote_process_start(struct zygote_process *zygote, const struct zygote_setup *setup,
                         struct viv_error *err) {
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return viv_fail(err, VIV_SYSTEM, "socketpair: %m");
    CLEANUP(close_fd) int ours = pair[0];
    CLEANUP(close_fd) int theirs = pair[1];
    if (io_set_nonblocking(ours, err))
        return -1;
    pid_t pid = fork();
    if (pid < 0)
        return viv_fail(err, VIV_SYSTEM, "fork: %m");
    if (pid == 0)
        child_main(setup, theirs);
    *zygote =
        (struct zygote_process){.setup = setup, .pid = pid, .socket = steal_fd(&ours)};
    return 0;
}

int zygote_process_ask(struct zygote_process *zygote, struct spawn_request *request,
                       const int fds[], size_t count, struct viv_error *err) {
    const struct settings *settings = zygote->setup->settings;
    const enum isolation_tier tier = zygote->setup->tier;

    request->address_space = zygote->fresh_size + settings->session_memory;
    request->file_size = settings->session_disk;
    /* The supervisor is of the worker's user only where all are. */
    request->threads =
        settings->session_threads + RESERVED_THREADS - (tier == ISOLATION_CONFINED);
    /* The next copy is made before the one that is parked ends. */
    if (zygote->setup->checkpoints)
        request->threads++;
    /* The one user of ISOLATION_MINIMAL has all sessions and the services: there
     * RLIMIT_NPROC bounds them together. */
    if (tier == ISOLATION_MINIMAL)
        request->threads = settings->slots * request->threads + THREADS_OF_SERVICES;
    request->parent = getpid();
    return io_send_message(zygote->socket, request, sizeof *request, fds, count, err);
}

/* Reads the numbers of a line or file of /proc that tell threads and address space. */
static int measure(struct zygote_process *zygote, struct viv_error *err) {
    char path[64], text[4096];
    unsigned long long pages;

    snprintf(path, sizeof path, "%d/task", (int)zygote->pid);
    CLEANUP(close_fd)
    int task = openat(zygote->setup->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "%d/statm", (int)zygote->pid);
    CLEANUP(close_fd) int statm = openat(zygote->setup->proc, path, O_RDONLY | O_CLOEXEC);
    struct stat threads;
    /* Each thread is a folder, so it is a link to the one above it: proc(5). */
    if (task < 0 || fstat(task, &threads))
        return viv_fail(err, VIV_SYSTEM, "look at the zygote's threads: %m");
    if (threads.st_nlink != 3)
        return viv_fail(
            err, VIV_SYSTEM,
            "a library in `preload` started threads: the zygote cannot be forked");
    ssize_t got = statm < 0 ? -1 : read(statm, text, sizeof text - 1);
    if (got <= 0)
        return viv_fail(err, VIV_SYSTEM, "read the zygote's size: %m");
    text[got] = '\0';
    if (sscanf(text, "%llu", &pages) != 1)
        return viv_fail(err, VIV_SYSTEM, "read the zygote's size");
    zygote->fresh_size = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return 0;
}

enum zygote_message zygote_process_receive(struct zygote_process *zygote,
                                           struct spawn_reply *reply,
                                           struct viv_error *err) {
    size_t fd_count;
    ssize_t got =
        io_receive_message(zygote->socket, reply, sizeof *reply, NULL, 0, &fd_count, err);

    if (got < 0)
        return err->code == VIV_UNAVAILABLE ? ZYGOTE_SAYS_NOTHING : ZYGOTE_FAILS;
    if (got != sizeof *reply) {
        viv_fail(err, VIV_SYSTEM, "the zygote died");
        return ZYGOTE_FAILS;
    }
    if (reply->sandbox != 0)
        return ZYGOTE_ANSWERS;
    if (measure(zygote, err))
        return ZYGOTE_FAILS;
    zygote->ready = true;
    return ZYGOTE_IS_READY;
}

void zygote_process_close(struct zygote_process *zygote) {
    close_and_clear(&zygote->socket);
    zygote->ready = false;
}
