/* SPDX-License-Identifier: MIT */
/*
 * The launcher's watch over what sessions share without a limit of their own: the host's
 * memory, and the disk where they have no quota. When it gets short, the session that
 * takes most is stopped, so that the host does not die for one.
 */
#include <sys/statvfs.h>

#include "common/io.h"
#include "common/log.h"
#include "executor/launcher/host_memory.h"
#include "executor/launcher/launcher_state.h"

#define LOOK_MS 125

static bool has_quotas(const struct launcher *launcher) {
    return isolation_has_namespaces(launcher->setup.tier);
}

/* Free bytes where the slots are. */
static uint64_t disk_available(const struct launcher *launcher) {
    struct statvfs status;

    if (has_quotas(launcher) || fstatvfs(launcher->zygote_setup.folder, &status))
        return UINT64_MAX;
    return (uint64_t)status.f_bavail * status.f_frsize;
}

int launcher_host_has_room(const struct launcher *launcher, struct viv_error *err) {
    if (host_memory_available(launcher->setup.proc) < launcher->settings->min_free_memory)
        return viv_fail(err, VIV_CAPACITY, "the host is short of memory");
    if (disk_available(launcher) < launcher->settings->min_free_disk)
        return viv_fail(err, VIV_CAPACITY, "the host is short of disk");
    return 0;
}

static void send_to_all_taken(struct launcher *launcher, enum control_what what) {
    const struct control_message message = {.what = what};

    for (struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        if (one->sandbox.state == SANDBOX_TAKEN)
            io_send_message(one->sandbox.control, &message, sizeof message, NULL, 0,
                            NULL);
}

static void stop(struct managed_sandbox *managed, enum control_what how,
                 const char *event, uint64_t size) {
    const struct control_message message = {.what = how};

    viv_log(VIV_LOG_WARNING, event, "sandbox=%llu size_mb=%llu files_mb=%llu",
            (unsigned long long)managed->sandbox.number, (unsigned long long)(size >> 20),
            (unsigned long long)(managed->sandbox.files >> 20));
    io_send_message(managed->sandbox.control, &message, sizeof message, NULL, 0, NULL);
}

/* Its worker is stopped; where its files are the larger part of what it takes, which
 * outlive a worker, the sandbox is ended. */
static void stop_for_memory(struct launcher *launcher) {
    struct managed_sandbox *largest = NULL;
    uint64_t most = 0;

    for (struct managed_sandbox *one = launcher->sandboxes; one; one = one->next) {
        if (one->sandbox.state != SANDBOX_TAKEN)
            continue;
        uint64_t size = launcher_memory_of(launcher, &one->sandbox);
        /* Files with a quota are in memory. */
        if (has_quotas(launcher))
            size += one->sandbox.files;
        if (size > most) {
            most = size;
            largest = one;
        }
    }
    if (!largest)
        return;
    stop(largest, CONTROL_STOP_FOR_MEMORY, "stopped_for_memory", most);
    if (has_quotas(launcher) && largest->sandbox.files > most / 2)
        launcher_end_sandbox(largest);
}

/* Files that have no name are seen in no session: those that show most are stopped one
 * after the other, and when all are, ended. */
static void stop_for_disk(struct launcher *launcher) {
    struct managed_sandbox *first = NULL;

    for (struct managed_sandbox *one = launcher->sandboxes; one; one = one->next) {
        if (one->sandbox.state != SANDBOX_TAKEN)
            continue;
        if (!first || one->stopped_for_disk < first->stopped_for_disk ||
            (one->stopped_for_disk == first->stopped_for_disk &&
             one->sandbox.files > first->sandbox.files))
            first = one;
    }
    if (!first)
        return;
    stop(first, CONTROL_STOP_FOR_DISK, "stopped_for_disk", first->sandbox.files);
    if (first->stopped_for_disk)
        launcher_end_sandbox(first);
    first->stopped_for_disk = true;
}

static void forget_stops(struct launcher *launcher) {
    for (struct managed_sandbox *one = launcher->sandboxes; one; one = one->next)
        one->stopped_for_disk = false;
}

/* Stops one at the second look that finds too little, when all have told of their
 * files. */
void launcher_watch_host(struct launcher *launcher) {
    const struct settings *settings = launcher->settings;

    if (viv_now() < launcher->host_at)
        return;
    bool memory_short =
        host_memory_available(launcher->setup.proc) < settings->min_free_memory / 2;
    bool disk_short = disk_available(launcher) < settings->min_free_disk / 2;
    if (memory_short && launcher->memory_short)
        stop_for_memory(launcher);
    if (disk_short && launcher->disk_short)
        stop_for_disk(launcher);
    if (memory_short || disk_short)
        send_to_all_taken(launcher, CONTROL_TELL_FILES);
    if (!disk_short)
        forget_stops(launcher);
    launcher->memory_short = memory_short;
    launcher->disk_short = disk_short;
    launcher->host_at = viv_after_ms(LOOK_MS);
}
