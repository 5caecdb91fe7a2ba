/* SPDX-License-Identifier: MIT */
/* vivarium-executor: its command line. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "common/cleanup.h"
#include "common/command_line.h"
#include "common/log.h"
#include "common/service_notify.h"
#include "executor/launcher/check.h"
#include "executor/launcher/janitor.h"
#include "executor/launcher/keeper.h"
#include "executor/launcher/tier_choice.h"

/* The flags of this program alone. */
struct flags {
    const char *zygote;
    bool check;
    bool json;
    bool prepare_slots;
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
    else if (strcmp(argument, "--prepare-slots") == 0)
        flags->prepare_slots = true;
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
    if (flags->prepare_slots && flags->check)
        return viv_fail(err, VIV_CONFIG, "--prepare-slots goes without --check");
    return flags->check || flags->prepare_slots ? 0 : keeper_check(settings, err);
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

static int prepare_slots(const struct settings *settings) {
    struct viv_error err;

    if (janitor_make_ahead(settings, &err)) {
        fprintf(stderr, "vivarium-executor: %s\n", err.message);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
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
            "  --json         with --check, in JSON\n"
            "  --prepare-slots\n"
            "                 make the trees of all slots, as for an image, and end\n",
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
    if (flags.prepare_slots)
        return prepare_slots(&settings);
    CLEANUP(close_fd) int program = open(flags.zygote, O_PATH | O_CLOEXEC);
    if (program < 0) {
        fprintf(stderr, "vivarium-executor: cannot open %s: %m\n", flags.zygote);
        return EX_UNAVAILABLE;
    }
    return keeper_run(&settings, program, &manager);
}
