/* SPDX-License-Identifier: MIT */
#include "executor/launcher/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "executor/launcher/cgroup_files.h"
#include "executor/launcher/cgroup_find.h"

#define SUBTREE_PREFIX "viv."
#define MAIN_GROUP     "viv.main"
#define CLOSE_LIMIT_MS 5000

static const char *const names[CGROUP_KINDS] = {"memory", "pids", "cpu"};

const char *cgroup_controller_name(enum cgroup_controller_kind kind) {
    return names[kind];
}

/* ---- controllers ---- */

static void set_reason(struct cgroup_controller *controller, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void set_reason(struct cgroup_controller *controller, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(controller->reason, sizeof controller->reason, format, arguments);
    va_end(arguments);
}

static void set_all_reasons(struct cgroups *cgroups, const char *reason) {
    for (int kind = 0; kind < CGROUP_KINDS; kind++)
        set_reason(&cgroups->controllers[kind], "%s", reason);
}

/* What to do about an error of one of the files. */
static const char *hint(int error) {
    switch (error) {
    case EBUSY:
        return "other processes are in the cgroup that the executor was started in";
    case EROFS:
        return "the cgroups are mounted read-only, as containers have it";
    case EACCES:
    case EPERM:
        return "the cgroup is not delegated to this user";
    default:
        return strerror(error);
    }
}

/* Switches a controller for the children of a group. */
static int switch_controller(int group, char sign, enum cgroup_controller_kind kind) {
    char text[16];

    snprintf(text, sizeof text, "%c%s", sign, names[kind]);
    return cgroup_write(group, "cgroup.subtree_control", text);
}

/* Fills the reasons of those that the cgroup was not given; returns how many it has. */
static int look_for_controllers(struct cgroups *cgroups, int own) {
    char given[256];
    int count = 0;

    if (cgroup_read(own, "cgroup.controllers", given, sizeof given))
        given[0] = '\0';
    for (int kind = 0; kind < CGROUP_KINDS; kind++) {
        bool there = cgroup_list_has(given, names[kind]);
        set_reason(&cgroups->controllers[kind], "%s",
                   there ? "" : "the cgroup was not given this controller");
        count += there;
    }
    return count;
}

static void enable_one(struct cgroups *cgroups, enum cgroup_controller_kind kind) {
    struct cgroup_controller *controller = &cgroups->controllers[kind];
    char before[256];

    if (cgroup_read(cgroups->own, "cgroup.subtree_control", before, sizeof before))
        before[0] = '\0';
    bool was_there = cgroup_list_has(before, names[kind]);
    if (!was_there && switch_controller(cgroups->own, '+', kind)) {
        set_reason(controller, "%s", hint(errno));
        return;
    }
    controller->added = !was_there;
    if (switch_controller(cgroups->subtree, '+', kind))
        set_reason(controller, "%s", hint(errno));
    else
        controller->enabled = true;
}

bool cgroups_enable(struct cgroups *cgroups) {
    bool any = false;

    /* The kernel would refuse some controllers and grant others, and then refuse the
     * processes: "domain invalid" in cgroups(7). */
    if (!cgroup_is_root(cgroups->own) && cgroup_has_processes(cgroups->own)) {
        set_all_reasons(cgroups, hint(EBUSY));
        return false;
    }
    look_for_controllers(cgroups, cgroups->own);
    for (int kind = 0; kind < CGROUP_KINDS; kind++) {
        if (!cgroups->controllers[kind].reason[0])
            enable_one(cgroups, kind);
        any |= cgroups->controllers[kind].enabled;
    }
    return any;
}

/* The children first: a group keeps what a child of it gives on. */
static void disable_added(struct cgroups *cgroups) {
    for (int kind = 0; kind < CGROUP_KINDS; kind++) {
        struct cgroup_controller *controller = &cgroups->controllers[kind];
        if (controller->enabled)
            switch_controller(cgroups->subtree, '-', kind);
        if (controller->added)
            switch_controller(cgroups->own, '-', kind);
        controller->enabled = controller->added = false;
    }
}

/* ---- the subtree ---- */

/* Removes the subtree of a keeper that was killed. */
static int remove_if_stale(int own, const char *name, void *context) {
    char events[64];
    int pid, length = 0;

    (void)context;
    if (sscanf(name, SUBTREE_PREFIX "%d%n", &pid, &length) != 1 || name[length] ||
        pid <= 0 || kill(pid, 0) == 0 || errno != ESRCH)
        return 0;
    CLEANUP(close_fd)
    int group = openat(own, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    /* The number may be one of another PID namespace. */
    if (group >= 0 && cgroup_read(group, "cgroup.events", events, sizeof events) == 0 &&
        strstr(events, "populated 0"))
        cgroup_remove(own, name, viv_now());
    return 0;
}

int cgroups_enter(struct cgroups *cgroups, int own, struct viv_error *err) {
    *cgroups = cgroups_none();
    cgroups->own = own;
    snprintf(cgroups->name, sizeof cgroups->name, SUBTREE_PREFIX "%d", (int)getpid());
    cgroup_each_child(own, remove_if_stale, NULL);
    cgroups->subtree = cgroup_make(own, cgroups->name, 0700);
    if (cgroups->subtree < 0)
        return viv_fail(err, VIV_UNAVAILABLE, "make a cgroup: %s", hint(errno));
    CLEANUP(close_fd) int leaf = cgroup_make(cgroups->subtree, MAIN_GROUP, 0700);
    if (leaf < 0)
        return viv_fail(err, VIV_UNAVAILABLE, "make a cgroup: %s", hint(errno));
    if (cgroup_write(leaf, "cgroup.procs", "0"))
        return viv_fail(err, VIV_UNAVAILABLE, "move into a cgroup: %s", hint(errno));
    return 0;
}

int cgroups_delegate(struct cgroups *cgroups, gid_t launcher, struct viv_error *err) {
    if (geteuid() != 0)
        return 0;
    /* Moving a process takes the right to write this file of the nearest group that has
     * both ends below it: cgroups(7). The directory is the keeper's still, so that it can
     * remove it when it has no capabilities any more; what gives controllers to children
     * and the limits of the whole stay the keeper's alone. */
    if (fchown(cgroups->subtree, (uid_t)-1, launcher) || fchmod(cgroups->subtree, 0770) ||
        fchownat(cgroups->subtree, "cgroup.procs", (uid_t)-1, launcher, 0) ||
        fchmodat(cgroups->subtree, "cgroup.procs", 0660, 0))
        return viv_fail(err, VIV_UNAVAILABLE, "give a cgroup to the launcher: %m");
    return 0;
}

int cgroups_open(struct cgroups *cgroups, gid_t launcher, struct viv_error *err) {
    CLEANUP(free_ptr) char *path = NULL;
    struct viv_error failure = {0};

    *cgroups = cgroups_none();
    CLEANUP(close_fd) int own = cgroup_open_own(&path, &failure);
    if (own < 0) {
        set_all_reasons(cgroups, failure.message);
        return viv_fail(err, VIV_UNAVAILABLE, "%s", failure.message);
    }
    if (look_for_controllers(cgroups, own) == 0)
        return viv_fail(err, VIV_UNAVAILABLE,
                        "%s was given no controller for memory, pids or cpu", path);
    int entered = cgroups_enter(cgroups, steal_fd(&own), &failure);
    if (entered == 0 && cgroups_enable(cgroups) &&
        cgroups_delegate(cgroups, launcher, &failure) == 0)
        return 0;
    if (failure.code != VIV_OK)
        set_all_reasons(cgroups, failure.message);
    cgroups_close(cgroups, NULL);
    return viv_fail(err, VIV_UNAVAILABLE, "no controller of %s can be used: %s: %s", path,
                    names[0], cgroups->controllers[0].reason);
}

/* Removes a group of the subtree, unless the caller is in it. */
static int remove_sandbox(int subtree, const char *name, void *context) {
    if (strcmp(name, MAIN_GROUP) != 0)
        cgroup_remove(subtree, name, *(const viv_time *)context);
    return 0;
}

/* The directory of the hierarchy's root is read-only for its owner, too, who then needs a
 * capability that the keeper has given up. */
static int remove_subtree(const struct cgroups *cgroups, viv_time deadline) {
    struct stat status;

    if (cgroup_remove(cgroups->own, cgroups->name, deadline) == 0)
        return 0;
    if (errno != EACCES || fstat(cgroups->own, &status) ||
        fchmod(cgroups->own, status.st_mode | S_IWUSR))
        return -1;
    int result = cgroup_remove(cgroups->own, cgroups->name, deadline);
    int error = errno;
    fchmod(cgroups->own, status.st_mode);
    errno = error;
    return result;
}

int cgroups_close(struct cgroups *cgroups, struct viv_error *err) {
    viv_time deadline = viv_after_ms(CLOSE_LIMIT_MS);
    int result = 0;

    /* In this order: a group whose child gives a controller on keeps it, and one that
     * gives a controller to its children takes no process in. */
    if (cgroups_used(cgroups)) {
        cgroup_each_child(cgroups->subtree, remove_sandbox, &deadline);
        disable_added(cgroups);
        bool left = cgroup_write(cgroups->own, "cgroup.procs", "0") == 0;
        if (remove_subtree(cgroups, left ? deadline : viv_now()))
            result = viv_fail(err, VIV_SYSTEM, "remove the cgroup %s: %m", cgroups->name);
    }
    close_and_clear(&cgroups->subtree);
    close_and_clear(&cgroups->own);
    return result;
}
