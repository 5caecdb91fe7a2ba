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

uint64_t host_memory_of(int proc, pid_t pid) {
    char path[64], text[256];
    unsigned long long resident;

    snprintf(path, sizeof path, "%d/statm", (int)pid);
    read_text(proc, path, text, sizeof text);
    if (sscanf(text, "%*u %llu", &resident) != 1)
        return 0;
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

size_t host_children(int proc, pid_t pid, pid_t children[], size_t most) {
    char path[64], text[8192];
    size_t count = 0;

    snprintf(path, sizeof path, "%d/task/%d/children", (int)pid, (int)pid);
    read_text(proc, path, text, sizeof text);
    for (char *next = text, *end; *next && count < most; next = end) {
        long child = strtol(next, &end, 10);
        if (end == next)
            break;
        children[count++] = (pid_t)child;
    }
    return count;
}

uint64_t host_memory_of_children(int proc, pid_t pid) {
    pid_t children[64];
    size_t count = host_children(proc, pid, children, sizeof children / sizeof *children);
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += host_memory_of(proc, children[i]);
    return sum;
}
