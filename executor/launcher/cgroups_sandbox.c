/* SPDX-License-Identifier: MIT */
/* The launcher's part of cgroups.h: the groups of one sandbox. */
#include "executor/launcher/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "executor/launcher/cgroup_files.h"

#define SUPERVISOR_GROUP "supervisor"
#define WORKER_GROUP     "worker"
#define REMOVE_LIMIT_MS  50

/* Of a session's memory, beyond its worker's: page tables, sockets and pipes, the
 * supervisor, and the kernel's own structures for files, which take a share of them. */
#define MEMORY_EXTRA      (UINT64_C(64) << 20)
#define FILES_EXTRA_SHARE 4
#define HIGH_SHARE        64 /* of its limit is memory.high below it */
#define PROCESSES_EXTRA   8
#define CPU_PERIOD_US     UINT64_C(100000)

struct name {
    char text[64];
};

/* The path of a group of a slot below the subtree; `leaf` may be "". */
static struct name group_name(uint32_t slot, const char *leaf) {
    struct name name;

    snprintf(name.text, sizeof name.text, "s-%" PRIu32 "%s%s", slot, leaf[0] ? "/" : "",
             leaf);
    return name;
}

struct cgroup_limits cgroups_limits(const struct settings *settings, bool checkpoints) {
    uint64_t files = settings->session_disk + settings->session_disk / FILES_EXTRA_SHARE;

    return (struct cgroup_limits){
        /* The worker may rewrite all that its copy has. */
        .memory = settings->session_memory + files + MEMORY_EXTRA +
                  (checkpoints ? settings->checkpoint_memory : 0),
        .pids = settings->session_threads + PROCESSES_EXTRA,
        .cpus = settings->session_cpus,
    };
}

static int write_limit(int group, const char *file, const char *value,
                       struct viv_error *err) {
    if (cgroup_write(group, file, value))
        return viv_fail(err, VIV_SYSTEM, "write %s of a cgroup: %m", file);
    return 0;
}

static int write_number(int group, const char *file, uint64_t value,
                        struct viv_error *err) {
    char text[24];

    snprintf(text, sizeof text, "%" PRIu64, value);
    return write_limit(group, file, text, err);
}

/* A kernel may be built without swap, or without it compressed. */
static int write_if_there(int group, const char *file, const char *value,
                          struct viv_error *err) {
    if (faccessat(group, file, F_OK, 0))
        return 0;
    return write_limit(group, file, value, err);
}

static int limit_memory(int group, uint64_t memory, struct viv_error *err) {
    /* Above memory.high the kernel only slows a process down, the more the further it is:
     * so close to the limit that one which goes on allocating gets there in a moment. */
    if (write_number(group, "memory.max", memory, err) ||
        write_number(group, "memory.high", memory - memory / HIGH_SHARE, err) ||
        write_if_there(group, "memory.swap.max", "0", err) ||
        write_if_there(group, "memory.zswap.max", "0", err))
        return -1;
    /* For the worker's own memory.events. */
    return write_limit(group, "cgroup.subtree_control", "+memory", err);
}

static int limit_cpu(int group, uint64_t cpus, struct viv_error *err) {
    char text[64];

    if (write_limit(group, "cpu.weight", "50", err))
        return -1;
    if (cpus == 0)
        return 0;
    snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64, cpus * CPU_PERIOD_US,
             CPU_PERIOD_US);
    return write_limit(group, "cpu.max", text, err);
}

/* Limits before leaves: none of them is ever without. */
static int fill(const struct cgroups *cgroups, int group,
                const struct cgroup_limits *limits, struct viv_error *err) {
    const struct cgroup_controller *controllers = cgroups->controllers;

    if (controllers[CGROUP_MEMORY].enabled && limit_memory(group, limits->memory, err))
        return -1;
    if (controllers[CGROUP_PIDS].enabled &&
        write_number(group, "pids.max", limits->pids, err))
        return -1;
    if (controllers[CGROUP_CPU].enabled && limit_cpu(group, limits->cpus, err))
        return -1;
    CLEANUP(close_fd) int supervisor = cgroup_make(group, SUPERVISOR_GROUP, 0755);
    CLEANUP(close_fd) int worker = cgroup_make(group, WORKER_GROUP, 0755);
    /* Without memory.oom.group: the worker is one process, its copy is to outlive it. */
    if (supervisor < 0 || worker < 0)
        return viv_fail(err, VIV_SYSTEM, "make a cgroup: %m");
    return 0;
}

int cgroups_make(const struct cgroups *cgroups, uint32_t slot,
                 const struct cgroup_limits *limits, struct viv_error *err) {
    struct name name = group_name(slot, "");
    /* For everybody who gets here, and that is the launcher's user and the keeper, which
     * has to remove what the launcher has left: nobody else may enter the subtree. */
    CLEANUP(close_fd) int group = cgroup_make(cgroups->subtree, name.text, 0777);

    if (group < 0)
        return viv_fail(err, errno == EAGAIN ? VIV_CAPACITY : VIV_SYSTEM,
                        "make a cgroup: %m");
    if (fill(cgroups, group, limits, err)) {
        cgroup_remove(cgroups->subtree, name.text, viv_now());
        return -1;
    }
    return 0;
}

static int open_in(const struct cgroups *cgroups, struct name name, const char *file,
                   int flags, struct viv_error *err) {
    CLEANUP(close_fd)
    int group = openat(cgroups->subtree, name.text,
                       O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int fd = group < 0 ? -1 : openat(group, file, flags | O_CLOEXEC);

    if (fd < 0)
        return viv_fail(err, VIV_SYSTEM, "open %s of a cgroup: %m", file);
    return fd;
}

int cgroups_open_supervisor(const struct cgroups *cgroups, uint32_t slot,
                            struct viv_error *err) {
    return open_in(cgroups, group_name(slot, SUPERVISOR_GROUP), ".",
                   O_RDONLY | O_DIRECTORY, err);
}

int cgroups_enter_supervisor(const struct cgroups *cgroups, uint32_t slot, pid_t pid,
                             struct viv_error *err) {
    char text[16];
    int length = snprintf(text, sizeof text, "%d", (int)pid);
    CLEANUP(close_fd)
    int procs = open_in(cgroups, group_name(slot, SUPERVISOR_GROUP), "cgroup.procs",
                        O_WRONLY, err);

    if (procs < 0)
        return -1;
    if (write(procs, text, (size_t)length) != length)
        return viv_fail(err, VIV_SYSTEM, "move the supervisor into its cgroup: %m");
    return 0;
}

int cgroups_open_worker_procs(const struct cgroups *cgroups, uint32_t slot,
                              struct viv_error *err) {
    return open_in(cgroups, group_name(slot, WORKER_GROUP), "cgroup.procs", O_WRONLY,
                   err);
}

int cgroups_open_worker_events(const struct cgroups *cgroups, uint32_t slot,
                               struct viv_error *err) {
    if (!cgroups->controllers[CGROUP_MEMORY].enabled)
        return viv_fail(err, VIV_UNAVAILABLE, "the memory controller is not enabled");
    return open_in(cgroups, group_name(slot, WORKER_GROUP), "memory.events", O_RDONLY,
                   err);
}

bool cgroups_kill(const struct cgroups *cgroups, uint32_t slot) {
    CLEANUP(close_fd)
    int kill_file = open_in(cgroups, group_name(slot, ""), "cgroup.kill", O_WRONLY, NULL);

    return kill_file >= 0 && write(kill_file, "1", 1) == 1;
}

int cgroups_remove(const struct cgroups *cgroups, uint32_t slot, struct viv_error *err) {
    if (cgroup_remove(cgroups->subtree, group_name(slot, "").text,
                      viv_after_ms(REMOVE_LIMIT_MS)))
        return viv_fail(err, VIV_SYSTEM, "remove a cgroup: %m");
    return 0;
}

void cgroups_become_launcher(struct cgroups *cgroups) { close_and_clear(&cgroups->own); }
