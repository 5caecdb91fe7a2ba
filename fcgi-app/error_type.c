/* SPDX-License-Identifier: MIT */
#include "fcgi-app/error_type.h"

#include <string.h>

static const char *const types[VIV_CODE_COUNT] = {
    [VIV_OK] = "system",
    [VIV_SYSTEM] = "system",
    [VIV_BAD_GATEWAY] = "system",
    [VIV_UNAVAILABLE] = "system",
    [VIV_TIMED_OUT] = "system",
    [VIV_CONFIG] = "system",
    [VIV_NOT_JSON] = "validation",
    [VIV_CONTENT_TYPE] = "validation",
    [VIV_VALIDATION] = "validation",
    [VIV_PARSING] = "parsing",
    [VIV_RESOURCE_LIMIT] = "resource_limit",
    [VIV_RATE_LIMIT] = "rate_limit",
    [VIV_BUSY] = "busy",
    [VIV_CAPACITY] = "capacity",
    [VIV_NOT_FOUND] = "not_found",
    [VIV_METHOD] = "method",
    [VIV_INTERRUPTED] = "interrupted",
};

/* Types of failed executions, which have no code: they are answers of status 200. */
static const char *const execution_types[] = {"timeout", "crash"};

const char *error_type_of(enum viv_code code) {
    return types[code < VIV_CODE_COUNT ? code : VIV_SYSTEM];
}

static bool is(struct slice name, const char *type) {
    return name.size == strlen(type) && memcmp(name.data, type, name.size) == 0;
}

bool error_type_is_ours(struct slice name) {
    for (int i = 0; i < VIV_CODE_COUNT; i++)
        if (is(name, types[i]))
            return true;
    for (size_t i = 0; i < sizeof execution_types / sizeof *execution_types; i++)
        if (is(name, execution_types[i]))
            return true;
    return false;
}
