/* SPDX-License-Identifier: MIT */
#include "common/error.h"

#include <stdarg.h>
#include <stdio.h>

__attribute__((format(printf, 3, 0))) static void
fill(struct viv_error *err, enum viv_code code, const char *format, va_list arguments) {
    if (!err)
        return;
    err->code = code;
    err->limit = NULL;
    vsnprintf(err->message, sizeof err->message, format, arguments);
}

int viv_fail(struct viv_error *err, enum viv_code code, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    fill(err, code, format, arguments);
    va_end(arguments);
    return -1;
}

int viv_refuse(struct viv_error *err, enum viv_code code, const char *limit,
               const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    fill(err, code, format, arguments);
    va_end(arguments);
    if (err)
        err->limit = limit;
    return -1;
}

void *viv_fail_null(struct viv_error *err, enum viv_code code, const char *format, ...) {
    va_list arguments;

    va_start(arguments, format);
    fill(err, code, format, arguments);
    va_end(arguments);
    return NULL;
}
