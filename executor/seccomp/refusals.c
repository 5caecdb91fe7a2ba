/* SPDX-License-Identifier: MIT */
#include "executor/seccomp/refusals.h"

#include <seccomp.h>
#include <stdio.h>
#include <string.h>

#include "common/bytes.h"

#define DIVIDERS ", \t"

/* The next name, which moves *rest behind it; empty at the end. */
static struct slice next_name(const char **rest) {
    const char *start = *rest + strspn(*rest, DIVIDERS);
    size_t size = strcspn(start, DIVIDERS);

    *rest = start + size;
    return (struct slice){start, size};
}

int refusals_check(const char *list, struct viv_error *err) {
    struct slice found;
    char name[64];

    while (list && (found = next_name(&list)).size > 0) {
        snprintf(name, sizeof name, "%.*s", (int)found.size, found.data);
        if (found.size >= sizeof name ||
            seccomp_syscall_resolve_name(name) == __NR_SCMP_ERROR)
            return viv_fail(err, VIV_CONFIG, "seccomp_refuse: no system call is named %s",
                            name);
    }
    return 0;
}

bool refusals_have(const char *list, const char *name) {
    const size_t size = strlen(name);
    struct slice found;

    while (list && (found = next_name(&list)).size > 0)
        if (found.size == size && memcmp(found.data, name, size) == 0)
            return true;
    return false;
}
