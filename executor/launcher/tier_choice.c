/* SPDX-License-Identifier: MIT */
#include "executor/launcher/tier_choice.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "executor/landlock.h"
#include "executor/launcher/janitor.h"
#include "executor/launcher/launcher_process.h"
#include "executor/launcher/slot_ids.h"
#include "executor/launcher/uid_range.h"

static const char *no_checkpoints(const struct tier_choice *choice) {
    const struct probe_control *control = &choice->report.controls[PROBE_CHECKPOINTS];

    if (strcmp(choice->settings->checkpoint, "on") != 0)
        return "the setting checkpoint is off";
    if (!isolation_has_namespaces(choice->tier))
        return "they need a PID namespace for each session";
    return control->state == PROBE_WORKS ? "" : control->reason;
}

struct launcher_start tier_launcher_start(struct tier_choice *choice, int program) {
    return (struct launcher_start){
        .settings = choice->settings,
        .program = program,
        .tier = choice->tier,
        .weaker = choice->report.weaker,
        .no_checkpoints = no_checkpoints(choice),
        .cgroups = &choice->cgroups,
        .ordinary = geteuid() != 0,
        .janitor = choice->to_janitor,
        .folder = -1,
    };
}

static int start_janitor(struct tier_choice *choice, struct viv_error *err) {
    const pid_t parent = getpid();
    int pair[2];

    if (choice->tier == ISOLATION_CONFINED &&
        uid_range_check(choice->settings->slot_uid_base, slot_ids_count(choice->settings),
                        err))
        return -1;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return viv_fail(err, VIV_SYSTEM, "socketpair: %m");
    choice->to_janitor = pair[0];
    choice->janitor = fork();
    if (choice->janitor == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(EXIT_FAILURE);
        janitor_main(choice->settings, choice->tier, pair[1]);
    }
    close(pair[1]);
    return choice->janitor < 0 ? viv_fail(err, VIV_SYSTEM, "fork: %m") : 0;
}

static void end_janitor(struct tier_choice *choice) {
    close_fd_cleanup(&choice->to_janitor);
    if (choice->janitor > 0) {
        kill(choice->janitor, SIGKILL);
        waitpid(choice->janitor, NULL, 0);
    }
    choice->to_janitor = -1;
    choice->janitor = 0;
}

/* The whole set-up of the tier that is chosen for now. */
static int try_tier(struct tier_choice *choice, int program, const int unwanted[],
                    size_t count, struct viv_error *err) {
    if (!isolation_has_namespaces(choice->tier) && start_janitor(choice, err))
        return -1;
    const struct launcher_start start = tier_launcher_start(choice, program);
    return launcher_process_try(&start, unwanted, count, err);
}

static void add_reason(struct tier_choice *choice, const char *reason) {
    char *weaker = choice->report.weaker;
    size_t used = strlen(weaker);

    snprintf(weaker + used, sizeof choice->report.weaker - used, "%s%s: %s",
             used ? "; " : "", isolation_name(choice->tier), reason);
}

void tier_close(struct tier_choice *choice) {
    struct viv_error err;

    if (cgroups_close(&choice->cgroups, &err))
        viv_log_failure(VIV_LOG_WARNING, "cgroup_left", err.message, NULL);
    choice->cgroups = cgroups_none();
}

void tier_controllers(char *to, const struct cgroups *cgroups) {
    size_t used = 0;

    *to = '\0';
    for (int i = 0; i < CGROUP_KINDS && cgroups_used(cgroups); i++)
        if (cgroups->controllers[i].enabled)
            used += (size_t)snprintf(
                to + used, TIER_CONTROLLERS_SIZE - used, "%s%s", used ? "," : "",
                cgroup_controller_name((enum cgroup_controller_kind)i));
}

/* Control by control. */
static void look_around(struct tier_choice *choice, const struct settings *settings) {
    struct viv_error failure;

    choice->settings = settings;
    /* Each controller has its reason when this fails. */
    cgroups_open(&choice->cgroups, (gid_t)settings->uid_base, &failure);
    probe_host(settings, &choice->report);
    probe_set_controllers(&choice->report, &choice->cgroups);
    choice->tier = choice->report.tier;
}

void tier_check(const struct settings *settings, struct probe_report *report) {
    struct tier_choice choice = {.to_janitor = -1, .cgroups = cgroups_none()};
    struct viv_error err;

    look_around(&choice, settings);
    if (!choice.report.usable || !isolation_has_namespaces(choice.tier))
        probe_set(&choice.report, PROBE_WHOLE_SANDBOX, PROBE_ABSENT,
                  "not tried, for it would take a slot");
    else if (try_tier(&choice, -1, NULL, 0, &err))
        probe_set(&choice.report, PROBE_WHOLE_SANDBOX, PROBE_REFUSED, err.message);
    else
        probe_set(&choice.report, PROBE_WHOLE_SANDBOX, PROBE_WORKS, "");
    probe_conclude(&choice.report);
    tier_close(&choice);
    *report = choice.report;
}

int tier_choose(struct tier_choice *choice, const struct settings *settings, int program,
                const int unwanted[], size_t count, struct viv_error *err) {
    struct viv_error failure;

    look_around(choice, settings);
    if (!choice->report.usable)
        return viv_fail(err, VIV_CONFIG,
                        "sessions cannot be kept apart here (%s); vivarium-executor "
                        "--check tells what to change",
                        choice->report.weaker);
    for (int tier = (int)choice->report.tier; tier >= 0; tier--) {
        choice->tier = (enum isolation_tier)tier;
        if (isolation_check(choice->tier, settings->min_isolation, err))
            return viv_fail(err, VIV_CONFIG,
                            "min_isolation is %s, and this host gives no more than %s: "
                            "vivarium-executor --check tells what to change, and "
                            "min_isolation = %s takes it as it is (%s)",
                            settings->min_isolation, isolation_name(choice->tier),
                            isolation_name(choice->tier), choice->report.weaker);
        if (!isolation_has_namespaces(choice->tier))
            tier_close(choice);
        if (try_tier(choice, program, unwanted, count, &failure) == 0)
            return 0;
        add_reason(choice, failure.message);
        end_janitor(choice);
    }
    return viv_fail(err, VIV_SYSTEM, "sessions cannot be kept apart here (%s)",
                    choice->report.weaker);
}

void tier_log(const struct tier_choice *choice) {
    const bool namespaces = isolation_has_namespaces(choice->tier);
    char controllers[TIER_CONTROLLERS_SIZE];

    tier_controllers(controllers, &choice->cgroups);
    viv_log_failure(VIV_LOG_INFO, "isolation",
                    choice->report.weaker[0] ? choice->report.weaker : "none better",
                    "tier=%s landlock=%d network=%s disk=%s controllers=%s",
                    isolation_name(choice->tier), landlock_abi(),
                    namespaces ? "namespace" : "seccomp", namespaces ? "quota" : "watch",
                    *controllers ? controllers : "none");
}
