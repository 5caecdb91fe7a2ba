/* SPDX-License-Identifier: MIT */
/* A bounded list of what is wrong with a request. */
#include "fcgi-app/validation.h"

#include <stdarg.h>
#include <stdio.h>

void validation_add(struct validation_details *details, const char *on, const char *path,
                    const char *expected, const char *format, ...) {
    va_list arguments;

    if (details->count == VALIDATION_DETAILS_MAX) {
        details->untold++;
        return;
    }
    struct validation_detail *detail = &details->items[details->count++];
    detail->on = on;
    detail->expected = expected;
    snprintf(detail->path, sizeof detail->path, "%s", path);
    va_start(arguments, format);
    vsnprintf(detail->message, sizeof detail->message, format, arguments);
    va_end(arguments);
}
