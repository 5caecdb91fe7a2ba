/* SPDX-License-Identifier: MIT */
#include "executor/launcher/worker_look.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "executor/launcher/host_memory.h"

#define CHILDREN_MAX 64
#define MAPPINGS_MAX 8192 /* in some milliseconds, which all sessions wait for */

/* Lines of /proc/PID/status, proc(5). */
struct status {
    pid_t inner; /* the process id in its own PID namespace */
    unsigned long threads;
    uint64_t pending;   /* signals that are blocked, and wait; a bit for each */
    uint64_t anonymous; /* bytes, swapped ones too */
};

static const char *value_of(const char *text, const char *name) {
    const char *line = strstr(text, name);

    return line ? line + strlen(name) : "";
}

/* The last number of the line: one for each PID namespace, from the outermost. */
static pid_t last_number(const char *line) {
    long number = 0;
    char *end;

    for (const char *next = line; *next && *next != '\n'; next = end) {
        long found = strtol(next, &end, 10);
        if (end == next || (found == 0 && number != 0))
            break;
        number = found;
        if (*end == '\n')
            break;
    }
    return (pid_t)number;
}

static int read_status(int proc, pid_t pid, struct status *status) {
    char path[32], text[4096];

    snprintf(path, sizeof path, "%d/status", (int)pid);
    CLEANUP(close_fd) int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (got <= 0)
        return -1;
    text[got] = '\0';
    *status = (struct status){
        .inner = last_number(value_of(text, "\nNSpid:")),
        .threads = strtoul(value_of(text, "\nThreads:"), NULL, 10),
        .pending = strtoull(value_of(text, "\nSigPnd:"), NULL, 16) |
                   strtoull(value_of(text, "\nShdPnd:"), NULL, 16),
        .anonymous = 1024 * (strtoull(value_of(text, "\nRssAnon:"), NULL, 10) +
                             strtoull(value_of(text, "\nVmSwap:"), NULL, 10)),
    };
    return 0;
}

/* Which descriptors are open; fails when one has too high a number to be told. By fdinfo,
 * which CAP_SYS_PTRACE opens: fd belongs to the host's root where an ordinary user's
 * namespace maps no root, proc(5). */
static int read_descriptors(int proc, pid_t pid, uint64_t fds[LOOK_FDS_MAX / 64]) {
    const struct dirent *entry;
    char path[32];
    int result = 0;

    memset(fds, 0, LOOK_FDS_MAX / 8);
    snprintf(path, sizeof path, "%d/fdinfo", (int)pid);
    int folder = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = folder < 0 ? NULL : fdopendir(folder);
    if (!names) {
        close_fd_cleanup(&folder);
        return -1;
    }
    while ((entry = readdir(names))) {
        unsigned long number = strtoul(entry->d_name, NULL, 10);
        if (entry->d_name[0] == '.')
            continue;
        if (number >= LOOK_FDS_MAX)
            result = -1;
        else
            fds[number / 64] |= UINT64_C(1) << (number % 64);
    }
    closedir(names);
    return result;
}

/* The worker among the children; with `end_others` those that are neither it nor its copy
 * are killed. */
static pid_t find_worker(int proc, pid_t supervisor, const struct control_look *look,
                         bool end_others, struct status *found) {
    pid_t children[CHILDREN_MAX], worker = 0;
    size_t count = host_children(proc, supervisor, children, CHILDREN_MAX);

    for (size_t i = 0; i < count; i++) {
        struct status status;
        if (read_status(proc, children[i], &status))
            continue;
        if (status.inner == look->worker) {
            worker = children[i];
            *found = status;
        } else if (end_others && status.inner != look->copy) {
            kill(children[i], SIGKILL);
        }
    }
    return worker;
}

void worker_look_fresh(int proc, pid_t supervisor, const struct control_look *look,
                       struct fresh_worker *fresh) {
    struct status status = {0};
    pid_t worker = find_worker(proc, supervisor, look, false, &status);

    /* Of one that could not be seen nothing will be as it was: no copy is made of it. */
    memset(fresh, 0, sizeof *fresh);
    if (worker == 0 || read_descriptors(proc, worker, fresh->fds))
        return;
    fresh->anonymous = status.anonymous;
}

/* Whether the line of /proc/PID/maps, proc(5), is of memory that a copy would share: but
 * for what is only read, of a file that is still there. */
static bool is_shared_memory(const char *line) {
    static const char deleted[] = " (deleted)\n";
    const char *rights = strchr(line, ' ');
    const size_t size = strlen(line), tail = sizeof deleted - 1;

    if (!rights || strlen(rights) < 5 || rights[4] != 's')
        return false;
    return rights[1] != 'r' || rights[2] == 'w' ||
           (size > tail && strcmp(line + size - tail, deleted) == 0);
}

static enum look_verdict look_at_mappings(int proc, pid_t pid) {
    CLEANUP(free_ptr) char *line = NULL;
    size_t room = 0, count = 0;
    char path[32];

    snprintf(path, sizeof path, "%d/maps", (int)pid);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    CLEANUP(close_file) FILE *maps = fd < 0 ? NULL : fdopen(fd, "r");
    if (!maps) {
        close_fd_cleanup(&fd);
        return LOOK_FAILED;
    }
    while (getline(&line, &room, maps) > 0) {
        if (++count > MAPPINGS_MAX)
            return LOOK_FAILED;
        if (is_shared_memory(line))
            return LOOK_SHARED_MEMORY;
    }
    return count > 0 && !ferror(maps) ? LOOK_CLEAN : LOOK_FAILED;
}

static enum look_verdict judge(int proc, pid_t worker, const struct status *status,
                               const struct fresh_worker *fresh) {
    uint64_t fds[LOOK_FDS_MAX / 64];

    if (worker == 0)
        return LOOK_FAILED;
    if (status->threads != 1)
        return LOOK_THREADS;
    if (status->pending != 0)
        return LOOK_FAILED; /* a new process has none: fork(2) */
    if (read_descriptors(proc, worker, fds) || memcmp(fds, fresh->fds, sizeof fds) != 0)
        return LOOK_OPEN_FILES;
    return look_at_mappings(proc, worker);
}

void worker_look(int proc, pid_t supervisor, const struct fresh_worker *fresh,
                 struct control_look *look) {
    struct status status = {0};
    pid_t worker = find_worker(proc, supervisor, look, true, &status);

    look->verdict = judge(proc, worker, &status, fresh);
    look->own =
        status.anonymous > fresh->anonymous ? status.anonymous - fresh->anonymous : 0;
}
