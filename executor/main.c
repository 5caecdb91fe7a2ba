/* SPDX-License-Identifier: MIT */
/* vivarium-executor: its command line. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/settings.h"
#include "executor/launcher/keeper.h"

static int own_flag(const char *argument, void *context) {
    static const char flag[] = "--zygote=";

    if (strncmp(argument, flag, strlen(flag)) != 0)
        return 0;
    *(const char **)context = argument + strlen(flag);
    return 1;
}

static void print_help(void) {
    printf("Usage: vivarium-executor [-f FILE] [-t] [--key=value ...]\n"
           "Makes and keeps the sandboxes of Vivarium.\n\n"
           "  -f FILE        settings, in place of " VIVARIUM_CONF "\n"
           "  -t             check the settings and end\n"
           "  -V, --version  print the version\n"
           "  -h, --help     print this\n"
           "  --zygote=PATH  the program that workers are forked from\n\n");
    settings_print_help(stdout);
}

int main(int argument_count, char **arguments) {
    CLEANUP(settings_clear) struct settings settings;
    const char *zygote = VIVARIUM_ZYGOTE;
    enum settings_request request;
    struct viv_error err;

    settings_init(&settings);
    if (settings_load(&settings, argument_count, arguments, own_flag, &zygote, &request,
                      &err)) {
        fprintf(stderr, "vivarium-executor: %s\n", err.message);
        return EX_CONFIG;
    }
    switch (request) {
    case SETTINGS_HELP:
        print_help();
        return EXIT_SUCCESS;
    case SETTINGS_VERSION:
        puts("vivarium-executor " PACKAGE_VERSION);
        return EXIT_SUCCESS;
    case SETTINGS_TEST:
        return EXIT_SUCCESS;
    case SETTINGS_RUN:
        break;
    }
    viv_log_set_level((enum viv_log_level)viv_log_level_of(settings.log_level));
    CLEANUP(close_fd) int program = open(zygote, O_PATH | O_CLOEXEC);
    if (program < 0) {
        fprintf(stderr, "vivarium-executor: cannot open %s: %m\n", zygote);
        return EX_UNAVAILABLE;
    }
    return keeper_run(&settings, program);
}
