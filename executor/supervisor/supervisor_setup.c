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

#define SET_UP_LIMIT_MS 10000

/* Blocks until the launcher has written the maps: before it, no id of this process means
 * anything. */
static int wait_for_maps(int control, struct viv_error *err) {
    struct control_message message;
    size_t fd_count;

    if (io_wait(control, false, viv_after_ms(SET_UP_LIMIT_MS), err))
        return -1;
    ssize_t got =
        io_receive_message(control, &message, sizeof message, NULL, 0, &fd_count, err);
    if (got < 0)
        return -1;
    if (got != sizeof message || message.what != CONTROL_MAPPED)
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

static int open_mounts(struct supervisor_descriptors *descriptors,
                       struct viv_error *err) {
    for (int i = 0; i < SESSION_MOUNT_COUNT; i++) {
        descriptors->mounts[i] =
            open(session_mount_points[i], O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (descriptors->mounts[i] < 0)
            return viv_fail(err, VIV_SYSTEM, "open %s: %m", session_mount_points[i]);
    }
    descriptors->home = open(SESSION_HOME, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptors->home < 0)
        return viv_fail(err, VIV_SYSTEM, "open " SESSION_HOME ": %m");
    return 0;
}

/* Moves the kept descriptors to the lowest numbers behind the standard ones and closes
 * all others: whatever the launcher had open belongs to other sessions. */
static int keep_descriptors(struct supervisor_descriptors *kept, struct viv_error *err) {
    int *all[2 + SESSION_MOUNT_COUNT + NAMESPACE_COUNT] = {&kept->control, &kept->home};
    const int first = STDERR_FILENO + 1;
    int count = 2;

    for (int i = 0; i < SESSION_MOUNT_COUNT; i++)
        all[count++] = &kept->mounts[i];
    for (int i = 0; i < NAMESPACE_COUNT; i++)
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

static int reset_signals(struct viv_error *err) {
    sigset_t none;

    for (int number = 1; number < _NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    if (sigprocmask(SIG_SETMASK, &none, NULL))
        return viv_fail(err, VIV_SYSTEM, "sigprocmask: %m");
    return 0;
}

int supervisor_set_up(struct supervisor_descriptors *descriptors,
                      const struct settings *settings, int proc, int control,
                      struct viv_error *err) {
    const struct session_mounts sizes = {settings->session_disk,
                                         settings->session_inodes};

    descriptors->control = control;
    if (reset_signals(err) || wait_for_maps(control, err) ||
        confine_become_session_user(err))
        return -1;
    /* A change of user clears the parent-death signal: prctl(2). */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL))
        return viv_fail(err, VIV_SYSTEM, "set the parent-death signal: %m");
    setsid();
    umask(022);
    if (sethostname("earth", strlen("earth")))
        return viv_fail(err, VIV_SYSTEM, "sethostname: %m");
    if (session_mounts_make(&sizes, err) || open_mounts(descriptors, err) ||
        open_namespaces(proc, descriptors->namespaces, err) ||
        keep_descriptors(descriptors, err))
        return -1;
    /* The worker may take all rights of its user away from a file; the supervisor reads
     * it. */
    if (confine_capabilities(UINT64_C(1) << CAP_DAC_OVERRIDE, err))
        return -1;
    if (confine_privileges(err))
        return -1;
    return landlock_restrict_supervisor(err);
}
