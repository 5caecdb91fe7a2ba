/* SPDX-License-Identifier: MIT */
/*
 * Makes a filter of rules, by libseccomp. What no rule names fails with EPERM; a foreign
 * ABI kills the process. A rule for a call that the architecture does not have is passed
 * over, and one for a call of `left_out` as well: an added refusal is a rule that is not
 * made, for libseccomp takes no second, contrary rule for a call.
 *
 *     CLEANUP(filter_builder) struct filter_builder builder = {.architecture = ...};
 *     if (filter_builder_open(&builder, err) || filter_builder_allow(...) || ...)
 *         return -1;
 *     return filter_builder_finish(&builder, SIGNALS_UNCHECKED, filter, err);
 */
#ifndef VIV_SECCOMP_BUILDER_H
#define VIV_SECCOMP_BUILDER_H

#include <seccomp.h>

#include "executor/seccomp/filter.h"
#include "executor/seccomp/preface.h"

struct filter_builder {
    const struct seccomp_architecture *architecture;
    const char *left_out; /* names as in refusals.h; borrowed */
    scmp_filter_ctx context;
};

int filter_builder_open(struct filter_builder *builder, struct viv_error *err);

/* Allows the calls of a list that ends with NULL, whatever their arguments. */
int filter_builder_allow(struct filter_builder *builder, const char *const *names,
                         struct viv_error *err);

/* Allows one call whose arguments pass all `count` tests. Several rules for one call:
 * when one of them holds. */
int filter_builder_allow_if(struct filter_builder *builder, const char *name,
                            unsigned count, const struct scmp_arg_cmp *tests,
                            struct viv_error *err);

/* The same, but the call is not made and gives `error`; with 0 it seems to succeed. */
int filter_builder_answer_if(struct filter_builder *builder, const char *name,
                             uint32_t error, unsigned count,
                             const struct scmp_arg_cmp *tests, struct viv_error *err);

/* Fills *filter, which the caller clears. */
int filter_builder_finish(struct filter_builder *builder, enum signal_reach reach,
                          struct seccomp_filter *filter, struct viv_error *err);

void filter_builder_cleanup(struct filter_builder *builder);

#endif
