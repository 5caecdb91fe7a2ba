/* SPDX-License-Identifier: MIT */
#include "executor/launcher/zygote_process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/io.h"
#include "common/log.h"
#include "executor/confine.h"
#include "executor/launcher/user_namespace.h"

#define IN_FLIGHT_MAX  8 /* requests sent and not answered: the rest waits here */
#define RETRY_FIRST_MS 100
#define RETRY_LAST_MS  10000
#define RESERVED_THREADS                                                                 \
    2 /* RLIMIT_NPROC counts the supervisor and a parked process, too */

struct spawn {
    struct spawn *next;
    struct spawn_request request;
    int fds[SPAWN_FD_COUNT];
    bool sent;
};

/* The whole environment of the zygote and of every session. Thread counts are one before
 * any library is loaded: a zygote with a second thread could not be forked. */
static char *const environment[] = {
    "HOME=" SESSION_HOME,
    "PATH=/nonexistent",
    "LANG=C.UTF-8",
    "TZ=UTC",
    "MPLBACKEND=Agg",
    "MPLCONFIGDIR=/tmp/matplotlib",
    "OMP_NUM_THREADS=1",
    "OPENBLAS_NUM_THREADS=1",
    "NUMEXPR_MAX_THREADS=1",
    "NUMEXPR_NUM_THREADS=1",
    "MKL_NUM_THREADS=1",
    "MALLOC_ARENA_MAX=2",
    "PYTHONDONTWRITEBYTECODE=1",
    NULL,
};

static void free_spawn(struct spawn *spawn) {
    for (int i = 0; i < SPAWN_FD_COUNT; i++)
        close(spawn->fds[i]);
    free(spawn);
}

/* Keeps CAP_SYS_ADMIN over the exec, as an ambient capability: it is what setns(2) into a
 * session's namespaces takes. The zygote makes it effective only while it forks. */
static int keep_one_capability(struct viv_error *err) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {0};

    sets[0].effective = sets[0].permitted = sets[0].inheritable = 1U << CAP_SYS_ADMIN;
    if (syscall(SYS_capset, &header, sets))
        return viv_fail(err, VIV_SYSTEM, "capset: %m");
    if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0))
        return viv_fail(err, VIV_SYSTEM, "raise an ambient capability: %m");
    return 0;
}

/* The child: a mount namespace with a /tmp that libraries can write to while they are
 * imported, a user of its own, one capability, then the program. */
static int become_zygote(const struct zygote_process *zygote, int socket,
                         struct viv_error *err) {
    char preload[4096];
    char *const arguments[] = {"vivarium-zygote", preload, zygote->settings->log_level,
                               NULL};

    snprintf(preload, sizeof preload, "%s", zygote->settings->preload);
    if (unshare(CLONE_NEWNS))
        return viv_fail(err, VIV_SYSTEM, "unshare: %m");
    if (mount("scratch", "/tmp", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "size=64m,mode=1777"))
        return viv_fail(err, VIV_SYSTEM, "mount /tmp: %m");
    if (prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS | SECBIT_NOROOT | SECBIT_NOROOT_LOCKED))
        return viv_fail(err, VIV_SYSTEM, "set secure bits: %m");
    if (!zygote->ordinary && (setresgid(ZYGOTE_ID, ZYGOTE_ID, ZYGOTE_ID) ||
                              setresuid(ZYGOTE_ID, ZYGOTE_ID, ZYGOTE_ID)))
        return viv_fail(err, VIV_SYSTEM, "change to the zygote's user: %m");
    if (keep_one_capability(err))
        return -1;
    /* A change of user clears it; the launcher outlives its zygote. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL))
        return viv_fail(err, VIV_SYSTEM, "set the parent-death signal: %m");
    int program = fcntl(zygote->program, F_DUPFD, 5);
    if (program < 0 || dup2(socket, 3) < 0 || dup2(program, 4) < 0 ||
        confine_descriptors(5, err))
        return viv_fail(err, VIV_SYSTEM, "arrange descriptors: %m");
    if (fcntl(4, F_SETFD, FD_CLOEXEC))
        return viv_fail(err, VIV_SYSTEM, "fcntl: %m");
    syscall(SYS_execveat, 4, "", arguments, environment, AT_EMPTY_PATH);
    return viv_fail(err, VIV_SYSTEM, "execute vivarium-zygote: %m");
}

static void child_main(const struct zygote_process *zygote, int socket) {
    sigset_t none;
    struct viv_error err;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    become_zygote(zygote, socket, &err);
    viv_log(VIV_LOG_ERROR, "zygote_not_started", "reason=\"%s\"", err.message);
    _exit(1);
}

int zygote_process_start(struct zygote_process *zygote, struct viv_error *err) {
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return viv_fail(err, VIV_SYSTEM, "socketpair: %m");
    CLEANUP(close_fd) int ours = pair[0];
    CLEANUP(close_fd) int theirs = pair[1];
    if (io_set_nonblocking(ours, err))
        return -1;
    zygote->pid = fork();
    if (zygote->pid < 0) {
        zygote->pid = 0;
        return viv_fail(err, VIV_SYSTEM, "fork: %m");
    }
    if (zygote->pid == 0)
        child_main(zygote, theirs);
    zygote->socket = steal_fd(&ours);
    zygote->ready = false;
    zygote->start_at = VIV_TIME_NEVER;
    return 0;
}

/* Sends waiting requests as far as they may be under way. */
static void send_waiting(struct zygote_process *zygote) {
    int in_flight = 0;

    if (!zygote->ready)
        return;
    for (struct spawn *spawn = zygote->first; spawn; spawn = spawn->next) {
        if (!spawn->sent) {
            spawn->request.address_space =
                zygote->fresh_size + zygote->settings->session_memory;
            if (io_send_message(zygote->socket, &spawn->request, sizeof spawn->request,
                                spawn->fds, SPAWN_FD_COUNT, NULL))
                return;
            spawn->sent = true;
        }
        if (++in_flight == IN_FLIGHT_MAX)
            return;
    }
}

void zygote_process_spawn(struct zygote_process *zygote, uint64_t sandbox,
                          const int fds[SPAWN_FD_COUNT]) {
    struct spawn *spawn = viv_xcalloc(1, sizeof *spawn);
    struct spawn **end = &zygote->first;

    spawn->request = (struct spawn_request){
        .sandbox = sandbox,
        .file_size = zygote->settings->session_disk,
        .threads = zygote->settings->session_threads + RESERVED_THREADS,
    };
    memcpy(spawn->fds, fds, sizeof spawn->fds);
    while (*end)
        end = &(*end)->next;
    *end = spawn;
    send_waiting(zygote);
}

/* Reads the numbers of a line or file of /proc that tell threads and address space. */
static int measure(struct zygote_process *zygote, struct viv_error *err) {
    char path[64], text[4096];
    unsigned long long pages;

    snprintf(path, sizeof path, "%d/task", (int)zygote->pid);
    CLEANUP(close_fd)
    int task = openat(zygote->proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    snprintf(path, sizeof path, "%d/statm", (int)zygote->pid);
    CLEANUP(close_fd) int statm = openat(zygote->proc, path, O_RDONLY | O_CLOEXEC);
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

static int become_ready(struct zygote_process *zygote, struct viv_error *err) {
    if (measure(zygote, err))
        return -1;
    zygote->ready = true;
    zygote->failures = 0;
    zygote->reason[0] = '\0';
    viv_log(VIV_LOG_INFO, "zygote_ready", "pid=%d size_mb=%llu", (int)zygote->pid,
            (unsigned long long)(zygote->fresh_size >> 20));
    send_waiting(zygote);
    return 0;
}

int zygote_process_receive(struct zygote_process *zygote, struct spawn_reply *reply,
                           struct viv_error *err) {
    size_t fd_count;
    ssize_t got =
        io_receive_message(zygote->socket, reply, sizeof *reply, NULL, 0, &fd_count, err);

    if (got < 0 && err->code == VIV_UNAVAILABLE)
        return 0;
    if (got < 0)
        return -1;
    if (got != sizeof *reply)
        return viv_fail(err, VIV_SYSTEM, "the zygote died");
    if (reply->sandbox == 0)
        return become_ready(zygote, err);
    struct spawn *spawn = zygote->first;
    if (!spawn || !spawn->sent || spawn->request.sandbox != reply->sandbox)
        return viv_fail(err, VIV_SYSTEM, "the zygote answered what was not asked");
    zygote->first = spawn->next;
    free_spawn(spawn);
    send_waiting(zygote);
    return 1;
}

void zygote_process_lost(struct zygote_process *zygote, const char *reason) {
    int64_t wait_ms = RETRY_FIRST_MS;

    for (struct spawn *spawn = zygote->first; spawn; spawn = spawn->next)
        spawn->sent = false;
    if (zygote->pid > 0)
        kill(zygote->pid, SIGKILL);
    close_and_clear(&zygote->socket);
    zygote->ready = false;
    snprintf(zygote->reason, sizeof zygote->reason, "%s", reason);
    for (int i = 0; i < zygote->failures && wait_ms < RETRY_LAST_MS; i++)
        wait_ms *= 2;
    zygote->failures++;
    zygote->start_at = viv_after_ms(wait_ms);
    viv_log(VIV_LOG_ERROR, "zygote_lost", "reason=\"%s\" retry_ms=%lld", reason,
            (long long)wait_ms);
}
