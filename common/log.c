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

#define LINE_SIZE_MAX   1024
#define HEAD_SIZE_MAX   64  /* the level and the event */
#define REASON_SIZE_MAX 600 /* the fields in front of it are cut, it has this much */

static void write_line(enum viv_log_level level, const char *event, const char *fields) {
    char line[LINE_SIZE_MAX];
    int size = snprintf(line, sizeof line - 1, "level=%s event=%s%s%s",
                        level_names[level], event, *fields ? " " : "", fields);

    if (size < 0)
        return;
    size_t length = strlen(line);
    line[length++] = '\n';
    /* A log that cannot be written must not stop the service. */
    if (write(STDERR_FILENO, line, length) < 0)
        return;
}

void viv_log(enum viv_log_level level, const char *event, const char *format, ...) {
    char fields[LINE_SIZE_MAX - HEAD_SIZE_MAX];
    va_list arguments;

    if (level > threshold)
        return;
    va_start(arguments, format);
    int size = vsnprintf(fields, sizeof fields, format, arguments);
    va_end(arguments);
    if (size >= 0)
        write_line(level, event, fields);
}

void viv_log_failure(enum viv_log_level level, const char *event, const char *reason,
                     const char *format, ...) {
    char fields[LINE_SIZE_MAX - HEAD_SIZE_MAX];
    size_t used = 0;
    va_list arguments;

    if (level > threshold)
        return;
    if (format) {
        va_start(arguments, format);
        int size = vsnprintf(fields, sizeof fields - REASON_SIZE_MAX, format, arguments);
        va_end(arguments);
        if (size < 0)
            return;
        used = strlen(fields);
        fields[used++] = ' ';
    }
    memcpy(fields + used, "reason=", sizeof "reason=");
    used += sizeof "reason=" - 1;
    viv_log_quote(fields + used, sizeof fields - used, reason);
    write_line(level, event, fields);
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
