/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/supervisor_setup.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/io.h"
#include "executor/confine.h"
#include "executor/landlock.h"
#include "executor/seccomp/supervisor_filter.h"

#define SET_UP_LIMIT_MS 10000
#define ADDRESS_SPACE   (UINT64_C(2) << 30) /* it holds a call and some output */

/* Blocks until the launcher says so: until the user namespace has its map, no id of this
 * process means anything. */
static int wait_for_launcher(int control, struct viv_error *err) {
    struct control_message message;
    size_t fd_count;

    if (io_wait(control, false, viv_after_ms(SET_UP_LIMIT_MS), err))
        return -1;
    ssize_t got =
        io_receive_message(control, &message, sizeof message, NULL, 0, &fd_count, err);
    if (got < 0)
        return -1;
    if (got != sizeof message || message.what != CONTROL_GO)
        return viv_fail(err, VIV_SYSTEM, "the launcher is gone");
    return 0;
}

static int open_namespaces(int proc, int namespaces[NAMESPACE_COUNT],
                           struct viv_error *err) {
    for (int i = 0; i < NAMESPACE_COUNT; i++) {
        namespaces[i] = openat(proc, namespace_kinds[i].path, O_RDONLY | O_CLOEXEC);
        if (namespaces[i] < 0)
            return viv_fail(err, VIV_SYSTEM, "open /proc/%s: %m",
                            namespace_kinds[i].path);
    }
    return 0;
}

/* Moves the kept descriptors to the lowest numbers behind the standard ones and closes
 * all others: whatever the launcher had open belongs to other sessions. */
static int keep_descriptors(struct supervisor_descriptors *kept, struct viv_error *err) {
    int *all[2 + SESSION_FOLDER_COUNT + NAMESPACE_COUNT] = {&kept->control};
    const int first = STDERR_FILENO + 1;
    int count = 1;

    for (int i = 0; i < SESSION_FOLDER_COUNT; i++)
        all[count++] = &kept->folders[i];
    if (kept->events >= 0)
        all[count++] = &kept->events;
    for (int i = 0; i < NAMESPACE_COUNT && isolation_has_namespaces(kept->tier); i++)
        all[count++] = &kept->namespaces[i];
    /* Above the target range first, so that no move overwrites one that is still
     * to come. */
    for (int i = 0; i < count; i++) {
        int moved = fcntl(*all[i], F_DUPFD_CLOEXEC, first + count);
        if (moved < 0)
            return viv_fail(err, VIV_SYSTEM, "duplicate a descriptor: %m");
        *all[i] = moved;
    }
    for (int i = 0; i < count; i++) {
        if (dup3(*all[i], first + i, O_CLOEXEC) < 0)
            return viv_fail(err, VIV_SYSTEM, "duplicate a descriptor: %m");
        *all[i] = first + i;
    }
    return confine_descriptors((unsigned)(first + count), err);
}

static void wake(int number) { (void)number; }

/* SIGCHLD is for supervisor.c's ppoll(2) alone. */
static int reset_signals(struct viv_error *err) {
    sigset_t blocked;

    for (int number = 1; number < _NSIG; number++)
        signal(number, SIG_DFL);
    /* A file of a client that is too large is refused; it is not the end. */
    signal(SIGXFSZ, SIG_IGN);
    signal(SIGCHLD, wake);
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGCHLD);
    if (sigprocmask(SIG_SETMASK, &blocked, NULL))
        return viv_fail(err, VIV_SYSTEM, "sigprocmask: %m");
    return 0;
}

static int make_namespaces_ours(struct supervisor_descriptors *descriptors,
                                const struct supervisor_start *start,
                                struct viv_error *err) {
    if (confine_become_user(SESSION_UID, SESSION_UID, err))
        return -1;
    if (sethostname("earth", strlen("earth")))
        return viv_fail(err, VIV_SYSTEM, "sethostname: %m");
    if (session_folders_mount(start->settings->session_disk,
                              start->settings->session_inodes, err))
        return -1;
    return open_namespaces(start->proc, descriptors->namespaces, err);
}

/* Folders of the slot are its user's alone: they are entered as that user. */
static int enter_slot(const struct supervisor_start *start, struct viv_error *err) {
    if (start->tier == ISOLATION_MINIMAL)
        return fchdir(start->folder) ? viv_fail(err, VIV_SYSTEM, "enter the slot: %m")
                                     : 0;
    if (confine_root(start->folder, err))
        return -1;
    return confine_become_user(start->user, start->worker_user, err);
}

static int drop_capabilities(enum isolation_tier tier, struct viv_error *err) {
    if (tier == ISOLATION_MINIMAL)
        return confine_to_capabilities(0, err);
    /* The worker may take all rights of its user away from a file; the supervisor reads
     * it, where that right can be given for the session's files alone. */
    return confine_capabilities(
        isolation_has_namespaces(tier) ? UINT64_C(1) << CAP_DAC_OVERRIDE : 0, err);
}

static int confine(const struct supervisor_start *start, struct viv_error *err) {
    if (drop_capabilities(start->tier, err) ||
        /* No process of its own: RLIMIT_NPROC counts for fork(2) only. */
        confine_resources(ADDRESS_SPACE, start->settings->session_disk, 0, err) ||
        confine_privileges(err) || landlock_restrict_supervisor(start->tier, err))
        return -1;
    struct seccomp_filter filter = *start->filter; /* to put its own id into */
    return supervisor_filter_load(&filter, err);
}

int supervisor_set_up(struct supervisor_descriptors *descriptors,
                      const struct supervisor_start *start, struct viv_error *err) {
    descriptors->tier = start->tier;
    descriptors->checkpoints = start->checkpoints;
    descriptors->control = start->control;
    descriptors->events = start->events;
    if (reset_signals(err) || wait_for_launcher(start->control, err))
        return -1;
    if (isolation_has_namespaces(start->tier)
            ? make_namespaces_ours(descriptors, start, err)
            : enter_slot(start, err))
        return -1;
    /* A change of user clears the parent-death signal: prctl(2). */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL))
        return viv_fail(err, VIV_SYSTEM, "set the parent-death signal: %m");
    setsid();
    umask(022);
    if (session_folders_open(descriptors->folders, start->tier, err) ||
        keep_descriptors(descriptors, err))
        return -1;
    return confine(start, err);
}
