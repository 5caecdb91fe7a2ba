/* SPDX-License-Identifier: MIT */
/* One table of units, read in both directions. */
#include "common/quantity.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct unit {
    const char *name;
    uint64_t factor;
};

struct kind {
    const char *form;
    struct unit units[4]; /* from the largest down; the rest is empty */
};

static const struct kind kinds[] = {
    [QUANTITY_COUNT] = {"a number", {{"", 1}}},
    [QUANTITY_SIZE] = {"a size such as 4096, 64K, 10M or 1G",
                       {{"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}, {"", 1}}},
    [QUANTITY_DURATION] = {"a duration such as 500ms, 30s, 10m or 1h",
                           {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}}},
};

#define UNITS_MAX (sizeof kinds->units / sizeof *kinds->units)

static const struct unit *find_unit(const struct kind *kind, const char *name) {
    for (size_t i = 0; i < UNITS_MAX && kind->units[i].name; i++)
        if (strcmp(kind->units[i].name, name) == 0)
            return &kind->units[i];
    return NULL;
}

int quantity_parse(enum quantity kind, const char *text, uint64_t *value) {
    const char *end = text;
    uint64_t number = 0;

    for (; *end >= '0' && *end <= '9'; end++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*end - '0'), &number))
            return -1;
    const struct unit *unit = find_unit(&kinds[kind], end);
    if (!unit && *end == '\0' && number == 0)
        unit = &kinds[kind].units[0];
    if (end == text || !unit || __builtin_mul_overflow(number, unit->factor, &number))
        return -1;
    *value = number;
    return 0;
}

const char *quantity_form(enum quantity kind) { return kinds[kind].form; }

void quantity_format(enum quantity kind, uint64_t value, char text[QUANTITY_TEXT_SIZE]) {
    const struct unit *unit = kinds[kind].units;

    while (unit->factor > 1 && value % unit->factor != 0)
        unit++;
    snprintf(text, QUANTITY_TEXT_SIZE, "%" PRIu64 "%s", value / unit->factor,
             value == 0 ? "" : unit->name);
}
