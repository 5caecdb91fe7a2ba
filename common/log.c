/* SPDX-License-Identifier: MIT */
#include "common/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const level_names[] = {"error", "warning", "info", "debug"};

#define LEVEL_COUNT ((int)(sizeof level_names / sizeof *level_names))

static enum viv_log_level threshold = VIV_LOG_INFO;

void viv_log_set_level(enum viv_log_level level) { threshold = level; }

int viv_log_level_of(const char *name) {
    for (int i = 0; i < LEVEL_COUNT; i++)
        if (strcmp(name, level_names[i]) == 0)
            return i;
    return -1;
}

void viv_log(enum viv_log_level level, const char *event, const char *format, ...) {
    char line[1024];
    size_t room = sizeof line - 1;
    va_list arguments;

    if (level > threshold)
        return;
    int head = snprintf(line, room, "level=%s event=%s ", level_names[level], event);
    if (head < 0 || (size_t)head >= room)
        return;
    va_start(arguments, format);
    int tail = vsnprintf(line + head, room - (size_t)head, format, arguments);
    va_end(arguments);
    if (tail < 0)
        return;
    size_t length = strlen(line);
    while (length > 0 && line[length - 1] == ' ')
        length--;
    line[length++] = '\n';
    /* A log that cannot be written must not stop the service. */
    if (write(STDERR_FILENO, line, length) < 0)
        return;
}

const char *viv_log_quote(char *buffer, size_t size, const char *text) {
    static const char hex[] = "0123456789abcdef";
    size_t used = 0;

    if (size < 3)
        return "\"\"";
    buffer[used++] = '"';
    for (const unsigned char *p = (const unsigned char *)text; *p && used + 6 < size;
         p++) {
        if (*p >= 0x20 && *p < 0x7f && *p != '"' && *p != '\\') {
            buffer[used++] = (char)*p;
        } else {
            buffer[used++] = '\\';
            buffer[used++] = 'x';
            buffer[used++] = hex[*p >> 4];
            buffer[used++] = hex[*p & 15];
        }
    }
    buffer[used++] = '"';
    buffer[used] = '\0';
    return buffer;
}
