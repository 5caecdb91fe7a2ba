/* SPDX-License-Identifier: MIT */
/*
 * The command line of a service: settings from all sources, and the requests to print
 * the help or the version or to check the configuration, which both services answer
 * alike.
 */
#ifndef VIV_COMMAND_LINE_H
#define VIV_COMMAND_LINE_H

#include "common/settings.h"

struct command_line {
    const char *program;
    const char *version;
    const char *purpose; /* one line of the help */
    const char *flags;   /* lines of the help on flags of the program's own, or "" */
    /* As settings_load() has it; may be NULL. */
    int (*own_flag)(const char *argument, void *context);
    void *context;
    /* What only this program can judge of the settings; `context` as above. Fails with
     * VIV_CONFIG. */
    int (*check)(const struct settings *settings, void *context, struct viv_error *err);
};

/* Reads it into *settings, which the caller clears, and sets the level of the log.
 * Returns -1 when the service is to run, or else the exit status: all has been
 * printed. */
int command_line_read(const struct command_line *line, int count, char *const *arguments,
                      struct settings *settings);

#endif
