/* SPDX-License-Identifier: MIT */
/*
 * What a service tells the service manager that started it: that it is ready, that it
 * stops, that it still works. The datagrams and variables of sd_notify(3) and
 * sd_watchdog_enabled(3), whose protocol is documented as stable and free to be spoken
 * without the library; that one would be mapped, with all it brings along, into every
 * process that vivarium-executor forks. Knows nothing of what the service does.
 * One thread.
 */
#ifndef VIV_SERVICE_NOTIFY_H
#define VIV_SERVICE_NOTIFY_H

#include <sys/socket.h>
#include <sys/un.h>

#include "common/clock.h"
#include "common/error.h"

struct service_notify {
    int fd; /* -1: nobody wants to hear of it */
    struct sockaddr_un address;
    socklen_t address_size;
    int64_t beat_ms; /* how often it wants to hear that we work; 0: never */
    viv_time beat_at;
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment and removes
 * them from it, so that no child speaks in our name. Nobody to tell is no failure; fails
 * with VIV_CONFIG when the variables make no sense, and *notify tells nobody then. Before
 * the first thread. */
int service_notify_open(struct service_notify *notify, struct viv_error *err);

/* Sends `state`, lines of KEY=VALUE. Waits a second at most for a manager that is busy.
 * A failure goes to the log: the service itself can go on. */
void service_notify_tell(const struct service_notify *notify, const char *state);

/* Tells that we work, when it is time to. For a loop that gets here in every turn, and
 * gets here only as long as it works. */
void service_notify_beat(struct service_notify *notify, viv_time now);

void service_notify_close(struct service_notify *notify);

#endif
