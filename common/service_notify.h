/* SPDX-License-Identifier: MIT */
/*
 * What a service tells the service manager that started it: that it is ready, that it
 * stops, that it still works; and the descriptor that the manager keeps for it meanwhile.
 * The datagrams and variables of sd_notify(3), sd_watchdog_enabled(3) and
 * sd_listen_fds(3), whose protocol is documented as stable and free to be spoken without
 * the library; that one would be mapped, with all it brings along, into every process
 * that vivarium-executor forks. Knows nothing of what the service does. One thread.
 */
#ifndef VIV_SERVICE_NOTIFY_H
#define VIV_SERVICE_NOTIFY_H

#include <stdbool.h>
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

/* The descriptor that the manager has kept for us, or has made; -1: none. The caller's.
 * By LISTEN_FDS and LISTEN_PID of sd_listen_fds(3), which are gone from the environment
 * then; of several the first one, and the others are closed. Before the first thread. */
int service_notify_take_kept(void);

/* Has the manager keep a copy of `fd` for the next one of us, until the service is
 * stopped: FileDescriptorStoreMax= in systemd.service(5). What it has kept before it
 * forgets. Returns whether there is somebody to ask. */
bool service_notify_keep(const struct service_notify *notify, int fd);

/* Has the manager close what it keeps. */
void service_notify_forget(const struct service_notify *notify);

/* Sends `state`, lines of KEY=VALUE. Waits a second at most for a manager that is busy.
 * A failure goes to the log: the service itself can go on. */
void service_notify_tell(const struct service_notify *notify, const char *state);

/* Tells that we work, when it is time to. For a loop that gets here in every turn, and
 * gets here only as long as it works. */
void service_notify_beat(struct service_notify *notify, viv_time now);

void service_notify_close(struct service_notify *notify);

#endif
