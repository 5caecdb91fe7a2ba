/* SPDX-License-Identifier: MIT */
#include "executor/seccomp/filter.h"

#include <linux/seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

void seccomp_filter_set_pid(struct seccomp_filter *filter, pid_t own) {
    if (filter->own_pid > 0)
        filter->instructions[filter->own_pid].k = (uint32_t)own;
}

int seccomp_filter_load(const struct seccomp_filter *filter, struct viv_error *err) {
    const struct sock_fprog program = {.len = filter->count,
                                       .filter = filter->instructions};

    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                &program))
        return viv_fail(err, VIV_SYSTEM, "load the seccomp filter: %m");
    return 0;
}

void seccomp_filter_clear(struct seccomp_filter *filter) {
    free(filter->instructions);
    *filter = (struct seccomp_filter){0};
}
