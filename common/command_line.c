/* SPDX-License-Identifier: MIT */
#include "common/command_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "common/log.h"

static void print_help(const struct command_line *line) {
    printf("Usage: %s [-f FILE] [-t] [-V] [-h] [--KEY=VALUE ...]\n"
           "%s\n\n"
           "  -f FILE        settings, in place of " VIVARIUM_CONF "\n"
           "  -t             check the settings and end\n"
           "  -V, --version  print the version\n"
           "  -h, --help     print this\n"
           "%s\n",
           line->program, line->purpose, line->flags);
    settings_print_help(stdout);
}

static int refuse(const struct command_line *line, const struct viv_error *err) {
    fprintf(stderr, "%s: %s\n", line->program, err->message);
    return EX_CONFIG;
}

int command_line_read(const struct command_line *line, int count, char *const *arguments,
                      struct settings *settings) {
    enum settings_request request;
    struct viv_error err;

    settings_init(settings);
    if (settings_load(settings, count, arguments, line->own_flag, line->context, &request,
                      &err))
        return refuse(line, &err);
    if (request == SETTINGS_HELP) {
        print_help(line);
        return EXIT_SUCCESS;
    }
    if (request == SETTINGS_VERSION) {
        printf("%s %s\n", line->program, line->version);
        return EXIT_SUCCESS;
    }
    if (line->check(settings, line->context, &err))
        return refuse(line, &err);
    if (request == SETTINGS_TEST) {
        printf("%s: the configuration is right\n", line->program);
        return EXIT_SUCCESS;
    }
    viv_log_set_level((enum viv_log_level)viv_log_level_of(settings->log_level));
    return -1;
}
