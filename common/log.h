/* SPDX-License-Identifier: MIT */
/*
 * The log: logfmt lines on standard error, one write(2) a line, so that lines of several
 * threads and processes do not mix. Any thread. Never code, output, file names or whole
 * session ids.
 *
 *     viv_log(VIV_LOG_INFO, "sandbox_ready", "sandbox=%llu took_us=%lld", id, us);
 *
 * writes  level=info event=sandbox_ready sandbox=3 took_us=812
 *
 * Text that is not ours, and every message of a failure, is put into a value through
 * viv_log_quote() or viv_log_failure() only.
 */
#ifndef VIV_LOG_H
#define VIV_LOG_H

#include <stddef.h>

enum viv_log_level { VIV_LOG_ERROR, VIV_LOG_WARNING, VIV_LOG_INFO, VIV_LOG_DEBUG };

/* Lines above this level are not written. Set once, before the first thread. */
void viv_log_set_level(enum viv_log_level level);

/* The level of that name ("error", "warning", "info", "debug"), or -1. */
int viv_log_level_of(const char *name);

void viv_log(enum viv_log_level level, const char *event, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same line with reason="..." behind its fields: why something failed, quoted as
 * viv_log_quote() does it. `format` may be NULL, for a line without other fields. */
void viv_log_failure(enum viv_log_level level, const char *event, const char *reason,
                     const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Writes `text` as a quoted logfmt value into buffer: printable ASCII as it is, the rest
 * as \xNN, cut to the buffer's size. Returns buffer. */
const char *viv_log_quote(char *buffer, size_t size, const char *text);

#endif
