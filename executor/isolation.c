/* SPDX-License-Identifier: MIT */
#include "executor/isolation.h"

#include <string.h>

static const char *const names[] = {
    [ISOLATION_MINIMAL] = "minimal",
    [ISOLATION_CONFINED] = "confined",
    [ISOLATION_ISOLATED] = "isolated",
    [ISOLATION_FULL] = "full",
};

#define TIER_COUNT ((int)(sizeof names / sizeof *names))

bool isolation_has_namespaces(enum isolation_tier tier) {
    return tier >= ISOLATION_ISOLATED;
}

const char *isolation_name(enum isolation_tier tier) { return names[tier]; }

int isolation_of_name(const char *name) {
    for (int i = 0; i < TIER_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

int isolation_check(enum isolation_tier tier, const char *minimum,
                    struct viv_error *err) {
    int wanted = isolation_of_name(minimum);

    if (wanted >= 0 && wanted <= (int)tier)
        return 0;
    return viv_fail(err, VIV_CONFIG,
                    "min_isolation: %s is asked for, and this host gives %s", minimum,
                    names[tier]);
}
