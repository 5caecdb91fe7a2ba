/* SPDX-License-Identifier: MIT */
#include "common/service_notify.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/log.h"

#define FIRST_KEPT    3 /* SD_LISTEN_FDS_START */
#define KEPT_NAME     "listener"
#define BEATS_IN_TIME 3 /* so that one that is late, or is lost, does no harm */

/* The variable, which the caller frees, or NULL. It is gone from the environment. */
static char *take_variable(const char *name) {
    const char *value = getenv(name);
    char *copy = value && *value ? viv_xstrdup(value) : NULL;

    unsetenv(name);
    return copy;
}

static int parse_address(struct service_notify *notify, const char *text,
                         struct viv_error *err) {
    size_t size = strlen(text);

    if (*text != '/' && *text != '@')
        return viv_fail(err, VIV_CONFIG, "NOTIFY_SOCKET: no path and no abstract name");
    if (size < 2 || size >= sizeof notify->address.sun_path)
        return viv_fail(err, VIV_CONFIG, "NOTIFY_SOCKET: a name of 2 to %zu bytes",
                        sizeof notify->address.sun_path - 1);
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, text, size);
    /* An abstract name is all bytes behind a NUL, to the end of the address: unix(7). */
    if (*text == '@')
        notify->address.sun_path[0] = '\0';
    notify->address_size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (*text == '/'));
    return 0;
}

static bool parse_number(const char *text, uint64_t *number) {
    char *end;

    errno = 0;
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && *end == '\0' && errno == 0;
}

/* Whom WATCHDOG_PID names is meant: it is that of the process that was started. */
static int parse_watchdog(struct service_notify *notify, const char *interval,
                          const char *process, struct viv_error *err) {
    uint64_t us, pid;

    if (!interval)
        return 0;
    if (process && !parse_number(process, &pid))
        return viv_fail(err, VIV_CONFIG, "WATCHDOG_PID: no number");
    if (process && pid != (uint64_t)getpid())
        return 0;
    if (!parse_number(interval, &us) || us == 0 || us > INT64_MAX)
        return viv_fail(err, VIV_CONFIG, "WATCHDOG_USEC: no time");
    notify->beat_ms = (int64_t)(us / 1000 / BEATS_IN_TIME);
    if (notify->beat_ms == 0)
        notify->beat_ms = 1;
    return 0;
}

/* A manager that does not read must not stop the service. */
static int make_socket(struct viv_error *err) {
    const struct timeval limit = {.tv_sec = 1};
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit))
        return viv_fail(err, VIV_SYSTEM, "socket: %m");
    return steal_fd(&fd);
}

int service_notify_open(struct service_notify *notify, struct viv_error *err) {
    CLEANUP(free_ptr) char *address = take_variable("NOTIFY_SOCKET");
    CLEANUP(free_ptr) char *interval = take_variable("WATCHDOG_USEC");
    CLEANUP(free_ptr) char *process = take_variable("WATCHDOG_PID");
    struct service_notify made = {.fd = -1};

    *notify = made;
    if (!address)
        return 0;
    if (parse_address(&made, address, err) ||
        parse_watchdog(&made, interval, process, err))
        return -1;
    made.fd = make_socket(err);
    if (made.fd < 0)
        return -1;
    *notify = made;
    return 0;
}

int service_notify_take_kept(void) {
    CLEANUP(free_ptr) char *count = take_variable("LISTEN_FDS");
    CLEANUP(free_ptr) char *process = take_variable("LISTEN_PID");
    uint64_t given, pid;

    unsetenv("LISTEN_FDNAMES");
    if (!count || !process || !parse_number(count, &given) ||
        !parse_number(process, &pid) || pid != (uint64_t)getpid() || given == 0)
        return -1;
    if (given > 1)
        close_range(FIRST_KEPT + 1,
                    FIRST_KEPT - 1 + (given < INT_MAX ? (unsigned)given : INT_MAX), 0);
    return fcntl(FIRST_KEPT, F_SETFD, FD_CLOEXEC) ? -1 : FIRST_KEPT;
}

/* With `fd`, or without one: -1. */
static void tell(const struct service_notify *notify, const char *state, int fd) {
    char control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec text = {(void *)state, strlen(state)};
    /* Not connected: a manager that was started anew is found again. */
    struct msghdr message = {.msg_name = (void *)&notify->address,
                             .msg_namelen = notify->address_size,
                             .msg_iov = &text,
                             .msg_iovlen = 1};
    struct viv_error err;

    if (fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    if (sendmsg(notify->fd, &message, MSG_NOSIGNAL) >= 0)
        return;
    viv_fail(&err, VIV_UNAVAILABLE, "send: %m");
    viv_log_failure(VIV_LOG_WARNING, "service_manager_not_told", err.message, NULL);
}

void service_notify_tell(const struct service_notify *notify, const char *state) {
    if (notify->fd >= 0)
        tell(notify, state, -1);
}

void service_notify_forget(const struct service_notify *notify) {
    service_notify_tell(notify, "FDSTOREREMOVE=1\nFDNAME=" KEPT_NAME);
}

bool service_notify_keep(const struct service_notify *notify, int fd) {
    if (notify->fd < 0)
        return false;
    service_notify_forget(notify);
    tell(notify, "FDSTORE=1\nFDNAME=" KEPT_NAME, fd);
    return true;
}

void service_notify_beat(struct service_notify *notify, viv_time now) {
    if (notify->beat_ms == 0 || now < notify->beat_at)
        return;
    notify->beat_at = now + notify->beat_ms * VIV_MS;
    service_notify_tell(notify, "WATCHDOG=1");
}

void service_notify_close(struct service_notify *notify) {
    close_and_clear(&notify->fd);
    notify->beat_ms = 0;
}
