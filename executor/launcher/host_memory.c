/* SPDX-License-Identifier: MIT */
#include "executor/launcher/host_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"

/* Reads a small file of /proc; an empty text when it cannot be read. */
static void read_text(int proc, const char *path, char *text, size_t size) {
    CLEANUP(close_fd) int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, size - 1);

    text[got > 0 ? got : 0] = '\0';
}

uint64_t host_memory_available(int proc) {
    char text[4096];

    read_text(proc, "meminfo", text, sizeof text);
    const char *line = strstr(text, "MemAvailable:");
    return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) * 1024 : UINT64_MAX;
}

uint64_t host_memory_of_children(int proc, pid_t pid) {
    char path[64], children[256], text[256];
    unsigned long long resident;
    uint64_t sum = 0;

    snprintf(path, sizeof path, "%d/task/%d/children", (int)pid, (int)pid);
    read_text(proc, path, children, sizeof children);
    for (char *next = children, *end; *next; next = end) {
        long child = strtol(next, &end, 10);
        if (end == next)
            break;
        snprintf(path, sizeof path, "%ld/statm", child);
        read_text(proc, path, text, sizeof text);
        if (sscanf(text, "%*u %llu", &resident) == 1)
            sum += resident * (uint64_t)sysconf(_SC_PAGESIZE);
    }
    return sum;
}
