/* SPDX-License-Identifier: MIT */
/*
 * The names of all error types of the service: of answers that are errors, one for each
 * code, and of executions that failed. Knows no HTTP. Any thread.
 */
#ifndef VIV_ERROR_TYPE_H
#define VIV_ERROR_TYPE_H

#include <stdbool.h>

#include "common/bytes.h"
#include "common/error.h"

/* The type of an answer with that code, a constant; "system" for a code that is none. */
const char *error_type_of(enum viv_code code);

/* Whether `name` is an error type of the service, which no exception of user code may
 * bear. */
bool error_type_is_ours(struct slice name);

#endif
