/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/notifications.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* A later kernel may fill in more than this header knows. */
union received {
    struct seccomp_notif known;
    char room[512];
};

int notification_receive(int listener, struct notification *notification) {
    union received received;

    do {
        memset(&received, 0, sizeof received); /* the kernel insists */
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &received) == 0) {
            *notification = (struct notification){
                .id = received.known.id,
                .pid = (pid_t)received.known.pid,
                .is_clone = received.known.data.nr == SYS_clone,
            };
            return 0;
        }
    } while (errno == EINTR);
    return -1;
}

static int answer(int listener, uint64_t id, int error, uint32_t flags) {
    struct seccomp_notif_resp response = {.id = id, .error = error, .flags = flags};

    return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &response);
}

void notification_allow(int listener, const struct notification *notification) {
    answer(listener, notification->id, 0, SECCOMP_USER_NOTIF_FLAG_CONTINUE);
}

void notification_refuse(int listener, const struct notification *notification) {
    answer(listener, notification->id, -EPERM, 0);
}

int notification_wake(int listener, uint64_t id, int fd, int as) {
    struct seccomp_notif_addfd added = {
        .id = id,
        .flags = SECCOMP_ADDFD_FLAG_SETFD,
        .srcfd = (uint32_t)fd,
        .newfd = (uint32_t)as,
        .newfd_flags = O_CLOEXEC,
    };

    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_ADDFD, &added) < 0)
        return -1;
    return answer(listener, id, 0, 0);
}
