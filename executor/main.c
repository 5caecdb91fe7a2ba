/* SPDX-License-Identifier: MIT */
/* vivarium-executor: its command line. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "common/cleanup.h"
#include "common/command_line.h"
#include "common/log.h"
#include "common/service_notify.h"
#include "executor/launcher/check.h"
#include "executor/launcher/keeper.h"
#include "executor/launcher/tier_choice.h"

/* The flags of this program alone. */
struct flags {
    const char *zygote;
    bool check;
    bool json;
};

static int own_flag(const char *argument, void *context) {
    static const char zygote[] = "--zygote=";
    struct flags *flags = context;

    if (strncmp(argument, zygote, strlen(zygote)) == 0)
        flags->zygote = argument + strlen(zygote);
    else if (strcmp(argument, "--check") == 0)
        flags->check = true;
    else if (strcmp(argument, "--json") == 0)
        flags->json = true;
    else
        return 0;
    return 1;
}

/* A host that cannot serve is no failure for who asks what it can. */
static int check_settings(const struct settings *settings, void *context,
                          struct viv_error *err) {
    const struct flags *flags = context;

    if (flags->json && !flags->check)
        return viv_fail(err, VIV_CONFIG, "--json goes with --check");
    return flags->check ? 0 : keeper_check(settings, err);
}

static int check_host(const struct settings *settings, bool json) {
    struct probe_report report;

    tier_check(settings, &report);
    (json ? check_print_json : check_print)(&report, settings->min_isolation, stdout);
    if (fflush(stdout)) {
        fprintf(stderr, "vivarium-executor: cannot write: %m\n");
        return EX_IOERR;
    }
    return check_status(&report, settings->min_isolation);
}

/* Launcher and supervisors are forks of this process, and in its memory lies the
 * environment, where an operator may keep secrets. It has been read; nobody needs it
 * any more. */
static void wipe_environment(void) {
    for (char **entry = environ; entry && *entry; entry++)
        explicit_bzero(*entry, strlen(*entry));
    clearenv();
}

int main(int argument_count, char **arguments) {
    CLEANUP(settings_clear) struct settings settings;
    struct flags flags = {.zygote = VIVARIUM_ZYGOTE};
    struct service_notify manager;
    struct viv_error err;
    const struct command_line line = {
        .program = "vivarium-executor",
        .version = PACKAGE_VERSION,
        .purpose = "Makes and keeps the sandboxes of Vivarium.",
        .flags =
            "  --zygote=PATH  the program that workers are forked from\n"
            "  --check        tell what this host lets us do to keep sessions apart\n"
            "  --json         with --check, in JSON\n",
        .own_flag = own_flag,
        .context = &flags,
        .check = check_settings,
    };
    int status = command_line_read(&line, argument_count, arguments, &settings);

    if (status >= 0)
        return status;
    if (service_notify_open(&manager, &err))
        viv_log_failure(VIV_LOG_WARNING, "service_manager_not_told", err.message, NULL);
    wipe_environment();
    if (flags.check)
        return check_host(&settings, flags.json);
    CLEANUP(close_fd) int program = open(flags.zygote, O_PATH | O_CLOEXEC);
    if (program < 0) {
        fprintf(stderr, "vivarium-executor: cannot open %s: %m\n", flags.zygote);
        return EX_UNAVAILABLE;
    }
    return keeper_run(&settings, program, &manager);
}
