/* SPDX-License-Identifier: MIT */
/* vivarium-executor: its command line. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "common/cleanup.h"
#include "common/command_line.h"
#include "executor/launcher/keeper.h"

static int own_flag(const char *argument, void *context) {
    static const char flag[] = "--zygote=";

    if (strncmp(argument, flag, strlen(flag)) != 0)
        return 0;
    *(const char **)context = argument + strlen(flag);
    return 1;
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
    const char *zygote = VIVARIUM_ZYGOTE;
    const struct command_line line = {
        .program = "vivarium-executor",
        .version = PACKAGE_VERSION,
        .purpose = "Makes and keeps the sandboxes of Vivarium.",
        .flags = "  --zygote=PATH  the program that workers are forked from\n",
        .own_flag = own_flag,
        .context = &zygote,
        .check = keeper_check,
    };
    int status = command_line_read(&line, argument_count, arguments, &settings);

    if (status >= 0)
        return status;
    wipe_environment();
    CLEANUP(close_fd) int program = open(zygote, O_PATH | O_CLOEXEC);
    if (program < 0) {
        fprintf(stderr, "vivarium-executor: cannot open %s: %m\n", zygote);
        return EX_UNAVAILABLE;
    }
    return keeper_run(&settings, program);
}
