/* SPDX-License-Identifier: MIT */
#include "executor/launcher/janitor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/io.h"
#include "common/log.h"
#include "common/sanitizer.h"
#include "executor/confine.h"
#include "executor/launcher/slot_folders.h"

#define LOCK_LIMIT_MS 5000 /* for an earlier executor that is just ending */
#define SOCKET        (STDERR_FILENO + 1)
#define BIT(number)   (UINT64_C(1) << (number))

static const struct timespec short_pause = {.tv_nsec = 20 * VIV_MS};

/* ---- start ---- */

static int keep_descriptors(int socket, struct viv_error *err) {
    if (socket != SOCKET && dup3(socket, SOCKET, O_CLOEXEC) < 0)
        return viv_fail(err, VIV_SYSTEM, "dup: %m");
    return confine_descriptors(SOCKET + 1, err);
}

/* What it takes to make devices and files of others, to become a slot's user, and to end
 * a child that is one; as much of it as there is. */
static int drop_capabilities(enum isolation_tier tier, struct viv_error *err) {
    const uint64_t wanted = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FOWNER) |
                            BIT(CAP_MKNOD) | BIT(CAP_SETUID) | BIT(CAP_SETGID) |
                            BIT(CAP_KILL);

    return confine_to_capabilities(
        tier == ISOLATION_MINIMAL ? 0 : wanted & confine_held_capabilities(), err);
}

/* Makes the folder of the slots if it is not there, and opens it; it must be ours
 * alone. */
static int open_slots(const char *path, struct viv_error *err) {
    struct stat status;

    if (slot_folders_make(path))
        return viv_fail(err, VIV_CONFIG, "slot_directory: mkdir %s: %m", path);
    /* Somebody's link would make slots of a folder that is ours for another purpose. */
    CLEANUP(close_fd)
    int slots = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (slots < 0 || fstat(slots, &status))
        return viv_fail(err, VIV_CONFIG, "slot_directory: open %s: %m", path);
    /* Who can write there can put another tree in the place of a slot's. */
    if (status.st_uid != geteuid() || status.st_mode & (S_IWGRP | S_IWOTH))
        return viv_fail(err, VIV_CONFIG,
                        "slot_directory: %s must belong to the user %u alone, with a "
                        "mode like 0700",
                        path, (unsigned)geteuid());
    /* No user of the host reaches what a session leaves there, a program that takes the
     * session's user on, say. Sandboxes are entered by descriptor. */
    if (fchmod(slots, S_IRWXU))
        return viv_fail(err, VIV_SYSTEM, "slot_directory: chmod %s: %m", path);
    return steal_fd(&slots);
}

/* Two executors would empty each other's slots. */
static int lock_slots(int slots, struct viv_error *err) {
    viv_time deadline = viv_after_ms(LOCK_LIMIT_MS);

    while (flock(slots, LOCK_EX | LOCK_NB)) {
        if (errno != EWOULDBLOCK)
            return viv_fail(err, VIV_SYSTEM, "slot_directory: flock: %m");
        if (viv_now() >= deadline)
            return viv_fail(err, VIV_CONFIG,
                            "slot_directory: another executor uses it; give each its own "
                            "folder");
        nanosleep(&short_pause, NULL);
    }
    return 0;
}

static int start(struct slot_folders *folders, int socket, struct viv_error *err) {
    /* Every mode that is given is meant. */
    umask(0);
    /* Its own process group: a terminal's interrupt is for the keeper. */
    setsid();
    if (keep_descriptors(socket, err) || drop_capabilities(folders->tier, err) ||
        confine_privileges(err))
        return -1;
    folders->slots = open_slots(folders->settings->slot_directory, err);
    if (folders->slots < 0 || lock_slots(folders->slots, err))
        return -1;
    return slot_folders_start(folders, err);
}

int janitor_make_ahead(const struct settings *settings, struct viv_error *err) {
    struct slot_folders folders = {.settings = settings, .tier = ISOLATION_CONFINED};

    if (geteuid() != 0)
        return viv_fail(err, VIV_CONFIG, "only root can make the trees of slots");
    umask(0);
    CLEANUP(close_fd) int slots = open_slots(settings->slot_directory, err);
    folders.slots = slots;
    if (slots < 0 || lock_slots(slots, err) || slot_folders_start(&folders, err))
        return -1;
    return slot_folders_make_ahead(&folders, err);
}

/* ---- requests ---- */

/* The client may be slow to read. */
static int send_reply(const struct janitor_reply *reply, int folder,
                      struct viv_error *err) {
    while (io_send_message(SOCKET, reply, sizeof *reply, &folder, folder >= 0, err)) {
        if (err->code != VIV_UNAVAILABLE || io_wait(SOCKET, true, VIV_TIME_NEVER, err))
            return -1;
        nanosleep(&short_pause, NULL);
    }
    return 0;
}

static int answer(struct slot_folders *folders, uint32_t slot, struct viv_error *err) {
    struct janitor_reply reply = {.slot = slot};
    CLEANUP(close_fd) int folder = slot_folders_prepare(folders, slot, err);

    if (folder < 0) {
        reply.failed = 1;
        snprintf(reply.reason, sizeof reply.reason, "%.*s", JANITOR_REASON_MAX - 1,
                 err->message);
    }
    return send_reply(&reply, folder, err);
}

/* Until the end of the socket. */
static int serve(struct slot_folders *folders, struct viv_error *err) {
    struct janitor_request request;
    size_t fd_count;

    for (;;) {
        ssize_t size =
            io_receive_message(SOCKET, &request, sizeof request, NULL, 0, &fd_count, err);
        if (size == 0)
            return 0;
        if (size < 0)
            return -1;
        if (size != sizeof request)
            return viv_fail(err, VIV_BAD_GATEWAY, "a request of %zd bytes", size);
        if (answer(folders, request.slot, err))
            return err->code == VIV_BAD_GATEWAY ? 0 : -1;
    }
}

void janitor_main(const struct settings *settings, enum isolation_tier tier, int socket) {
    struct slot_folders folders = {.settings = settings, .tier = tier, .slots = -1};
    struct viv_error err;

    if (start(&folders, socket, &err)) {
        viv_log_failure(VIV_LOG_ERROR, "janitor_not_started", err.message, NULL);
        _exit(EXIT_FAILURE);
    }
    if (serve(&folders, &err) || slot_folders_end(&folders, &err)) {
        viv_log_failure(VIV_LOG_ERROR, "janitor_failed", err.message, NULL);
        _exit(EXIT_FAILURE);
    }
    sanitizer_look_for_leaks();
    _exit(EXIT_SUCCESS);
}
