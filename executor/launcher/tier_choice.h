/* SPDX-License-Identifier: MIT */
/*
 * Which tier of isolation this host gets: the best one whose controls work one by one
 * (probe.h) and whose whole set-up then works, too, and not one below min_isolation. Of
 * the keeper's one thread, before it gives up its rights.
 */
#ifndef VIV_TIER_CHOICE_H
#define VIV_TIER_CHOICE_H

#include <stddef.h>
#include <sys/types.h>

#include "executor/launcher/launcher.h"
#include "executor/launcher/probe.h"

struct tier_choice {
    const struct settings *settings;
    enum isolation_tier tier;
    struct probe_report report;
    struct cgroups cgroups;
    pid_t janitor;  /* the tiers without namespaces have one; otherwise 0 */
    int to_janitor; /* -1: there is none */
};

/* Before the first child: the groups that it makes, tier_close() removes. Fails with what
 * to change. `unwanted` are `count` descriptors that no child must have. The janitor, if
 * there is one, is running then, also when this fails. */
int tier_choose(struct tier_choice *choice, const struct settings *settings, int program,
                const int unwanted[], size_t count, struct viv_error *err);

/* What tier_choose() would find; leaves nothing behind. A whole sandbox is made only
 * where that concerns nobody else: with namespaces. */
void tier_check(const struct settings *settings, struct probe_report *report);

/* What the launcher is to be started with. Borrows from *choice. */
struct launcher_start tier_launcher_start(struct tier_choice *choice, int program);

/* When all children have ended. */
void tier_close(struct tier_choice *choice);

/* Writes a line to the log: the tier, and why it is not a better one. */
void tier_log(const struct tier_choice *choice);

/* Writes the names of the controllers that bound a sandbox, with commas between, to `to`
 * (TIER_CONTROLLERS_SIZE bytes). */
#define TIER_CONTROLLERS_SIZE 32
void tier_controllers(char *to, const struct cgroups *cgroups);

#endif
