/* SPDX-License-Identifier: MIT */
#include "executor/launcher/wipe.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/io.h"
#include "executor/confine.h"
#include "executor/launcher/empty_folder.h"

#define END_LIMIT_MS 1000 /* for a child that was killed */
#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* The child's only descriptors besides the standard ones. */
enum { PARENT = STDERR_FILENO + 1, REPORT };

struct wipe {
    int parent;
    const char *const *paths;
    size_t count;
    const struct wipe_user *user;
};

/* ---- the child ---- */

static int keep_descriptors(int parent, int report) {
    /* Neither may be in the place of the other one. */
    int high_parent = fcntl(parent, F_DUPFD_CLOEXEC, REPORT + 1);
    int high_report = fcntl(report, F_DUPFD_CLOEXEC, REPORT + 1);

    if (high_parent < 0 || high_report < 0 || dup3(high_parent, PARENT, O_CLOEXEC) < 0 ||
        dup3(high_report, REPORT, O_CLOEXEC) < 0)
        return -1;
    return confine_descriptors(REPORT + 1, NULL);
}

static int become(const struct wipe_user *user, struct viv_error *err) {
    gid_t group = user->owner;
    uid_t real, effective, saved;

    if (setgroups(0, NULL) || setresgid(group, group, group))
        return viv_fail(err, VIV_SYSTEM, "change the group: %m");
    /* kill(2) asks for the real and the saved user of who is to get a signal, and for the
     * real and the effective one of who sends it. */
    if (setresuid(user->guard, user->owner, user->guard) ||
        getresuid(&real, &effective, &saved) || real != user->guard ||
        effective != user->owner || saved != user->guard)
        return viv_fail(err, VIV_SYSTEM, "change the user: %m");
    return confine_to_capabilities(0, err);
}

static int empty_one(int parent, const char *path, struct viv_error *err) {
    struct stat status;

    if (fstatat(parent, path, &status, AT_SYMLINK_NOFOLLOW)) {
        if (errno == ENOENT)
            return 0;
        return viv_fail(err, VIV_SYSTEM, "stat %s: %m", path);
    }
    if (status.st_uid != geteuid())
        return 0;
    /* Its owner may have taken all permissions away. */
    if (fchmodat(parent, path, S_IRWXU, 0))
        return viv_fail(err, VIV_SYSTEM, "change the mode of %s: %m", path);
    CLEANUP(close_fd) int folder = openat(parent, path, FOLDER_FLAGS);
    if (folder < 0)
        return viv_fail(err, VIV_SYSTEM, "open %s: %m", path);
    return empty_folder(folder, err);
}

static int empty_all(const struct wipe *wipe, pid_t janitor, struct viv_error *err) {
    if (wipe->user && become(wipe->user, err))
        return -1;
    /* After the change of user, which takes the signal back: prctl(2). */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != janitor)
        return viv_fail(err, VIV_SYSTEM, "the janitor is gone");
    if (confine_privileges(err))
        return -1;
    /* All but itself; that there is nobody is no failure. */
    if (wipe->user && wipe->user->kill)
        kill(-1, SIGKILL);
    for (size_t i = 0; i < wipe->count; i++)
        if (empty_one(PARENT, wipe->paths[i], err))
            return -1;
    return 0;
}

__attribute__((noreturn)) static void child_main(const struct wipe *wipe, int report,
                                                 pid_t janitor) {
    struct viv_error err;

    if (keep_descriptors(wipe->parent, report))
        _exit(EXIT_FAILURE);
    if (empty_all(wipe, janitor, &err) == 0)
        _exit(EXIT_SUCCESS);
    ssize_t written = write(REPORT, err.message, strlen(err.message));
    _exit(written < 0 ? EXIT_FAILURE + 1 : EXIT_FAILURE);
}

/* ---- the janitor ---- */

/* The end of the pipe is the end of the child. One that hangs in the kernel is left to a
 * later call. */
static void end_child(pid_t child, int report) {
    kill(child, SIGKILL);
    bool hangs = io_wait(report, false, viv_after_ms(END_LIMIT_MS), NULL);
    waitpid(child, NULL, hangs ? WNOHANG : 0);
}

static int await_child(pid_t child, int report, int64_t limit_ms, struct viv_error *err) {
    char reason[VIV_ERROR_MESSAGE_MAX];
    int status;

    if (io_wait(report, false, viv_after_ms(limit_ms), NULL)) {
        end_child(child, report);
        return viv_fail(err, VIV_TIMED_OUT, "emptying the folders took too long");
    }
    ssize_t size = read(report, reason, sizeof reason);
    if (waitpid(child, &status, 0) != child)
        return viv_fail(err, VIV_SYSTEM, "wait: %m");
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS)
        return 0;
    if (size <= 0)
        return viv_fail(err, VIV_SYSTEM, "emptying the folders ended with status %#x",
                        (unsigned)status);
    return viv_fail(err, VIV_SYSTEM, "%.*s", (int)size, reason);
}

int wipe_folders(int parent, const char *const *paths, size_t count,
                 const struct wipe_user *user, int64_t limit_ms, struct viv_error *err) {
    const struct wipe wipe = {parent, paths, count, user};
    pid_t janitor = getpid();
    int ends[2];

    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
    if (pipe2(ends, O_CLOEXEC))
        return viv_fail(err, VIV_SYSTEM, "pipe: %m");
    CLEANUP(close_fd) int report = ends[0];
    pid_t child = fork();
    if (child == 0)
        child_main(&wipe, ends[1], janitor);
    close(ends[1]);
    if (child < 0)
        return viv_fail(err, VIV_SYSTEM, "fork: %m");
    return await_child(child, report, limit_ms, err);
}
