/* SPDX-License-Identifier: MIT */
#include "executor/launcher/isolation.h"

#include <string.h>

static const char *const names[] = {
    [ISOLATION_MINIMAL] = "minimal",
    [ISOLATION_CONFINED] = "confined",
    [ISOLATION_ISOLATED] = "isolated",
    [ISOLATION_FULL] = "full",
};

#define TIER_COUNT (sizeof names / sizeof *names)

const char *isolation_name(enum isolation_tier tier) { return names[tier]; }

int isolation_check(enum isolation_tier tier, const char *minimum,
                    struct viv_error *err) {
    for (size_t i = 0; i < TIER_COUNT; i++)
        if (strcmp(names[i], minimum) == 0 && i <= (size_t)tier)
            return 0;
    return viv_fail(err, VIV_CONFIG,
                    "min_isolation: %s is asked for, and this host gives %s", minimum,
                    names[tier]);
}
