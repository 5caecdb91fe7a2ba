/* SPDX-License-Identifier: MIT */
#include "executor/seccomp/builder.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "executor/seccomp/refusals.h"

/* The architecture has to be chosen before the first rule. */
static int choose_architecture(scmp_filter_ctx context, uint32_t token) {
    if (token == seccomp_arch_native())
        return 0;
    int result = seccomp_arch_add(context, token);
    return result ? result : seccomp_arch_remove(context, SCMP_ARCH_NATIVE);
}

int filter_builder_open(struct filter_builder *builder, struct viv_error *err) {
    builder->context = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    if (!builder->context)
        return viv_fail(err, VIV_SYSTEM, "seccomp_init failed");
    if (seccomp_attr_set(builder->context, SCMP_FLTATR_ACT_BADARCH,
                         SCMP_ACT_KILL_PROCESS) ||
        seccomp_attr_set(builder->context, SCMP_FLTATR_CTL_OPTIMIZE, 2) ||
        choose_architecture(builder->context, builder->architecture->token))
        return viv_fail(err, VIV_SYSTEM, "seccomp attributes are refused");
    return 0;
}

static int add_rule(struct filter_builder *builder, const char *name, uint32_t action,
                    unsigned count, const struct scmp_arg_cmp *tests,
                    struct viv_error *err) {
    if (refusals_have(builder->left_out, name) ||
        seccomp_syscall_resolve_name_arch(builder->architecture->token, name) < 0)
        return 0;
    /* Rules are given with the numbers of this machine, and translated. */
    int number = seccomp_syscall_resolve_name(name);
    int result = seccomp_rule_add_array(builder->context, action, number, count, tests);
    if (result)
        return viv_fail(err, VIV_SYSTEM, "seccomp rule for %s: %s", name,
                        strerror(-result));
    return 0;
}

int filter_builder_allow(struct filter_builder *builder, const char *const *names,
                         struct viv_error *err) {
    for (; *names; names++)
        if (add_rule(builder, *names, SCMP_ACT_ALLOW, 0, NULL, err))
            return -1;
    return 0;
}

int filter_builder_allow_if(struct filter_builder *builder, const char *name,
                            unsigned count, const struct scmp_arg_cmp *tests,
                            struct viv_error *err) {
    return add_rule(builder, name, SCMP_ACT_ALLOW, count, tests, err);
}

int filter_builder_answer_if(struct filter_builder *builder, const char *name,
                             uint32_t error, unsigned count,
                             const struct scmp_arg_cmp *tests, struct viv_error *err) {
    return add_rule(builder, name, SCMP_ACT_ERRNO(error), count, tests, err);
}

/* libseccomp 2.5 exports to a descriptor only. */
int filter_builder_finish(struct filter_builder *builder, enum signal_reach reach,
                          struct seccomp_filter *filter, struct viv_error *err) {
    CLEANUP(close_fd) int fd = memfd_create("seccomp", MFD_CLOEXEC);
    struct sock_filter preface[PREFACE_MAX];
    struct stat status;

    if (fd < 0)
        return viv_fail(err, VIV_SYSTEM, "memfd_create: %m");
    int result = seccomp_export_bpf(builder->context, fd);
    if (result)
        return viv_fail(err, VIV_SYSTEM, "seccomp_export_bpf: %s", strerror(-result));
    if (fstat(fd, &status))
        return viv_fail(err, VIV_SYSTEM, "fstat: %m");
    size_t first = preface_put(preface, builder->architecture, reach);
    size_t size = (size_t)status.st_size;
    size_t count = first + size / sizeof *preface;
    if (size == 0 || count > BPF_MAXINSNS)
        return viv_fail(err, VIV_SYSTEM, "a filter of %zu instructions", count);
    CLEANUP(free_ptr) struct sock_filter *made = viv_xmalloc(count * sizeof *made);
    memcpy(made, preface, first * sizeof *preface);
    if (pread(fd, made + first, size, 0) != (ssize_t)size)
        return viv_fail(err, VIV_SYSTEM, "read the filter: %m");
    *filter = (struct seccomp_filter){
        .instructions = steal_ptr(&made),
        .count = (unsigned short)count,
        .own_pid = reach == SIGNALS_TO_SELF ? PREFACE_OWN_PID : 0,
    };
    return 0;
}

void filter_builder_cleanup(struct filter_builder *builder) {
    if (builder->context)
        seccomp_release(builder->context);
    builder->context = NULL;
}
