/* SPDX-License-Identifier: MIT */
/* The sources of settings: the file, the environment, the arguments. */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/settings.h"

#ifndef VIVARIUM_CONF
#define VIVARIUM_CONF "/etc/vivarium/vivarium.conf"
#endif

#define PREFIX "VIVARIUM_"

/* Cuts white space off both ends of a line that may be written to. */
static char *trim(char *text) {
    while (isspace((unsigned char)*text))
        text++;
    size_t size = strlen(text);
    while (size > 0 && isspace((unsigned char)text[size - 1]))
        size--;
    text[size] = '\0';
    return text;
}

/* A comment begins at a # that stands first or behind white space. */
static void cut_comment(char *line) {
    for (char *p = line; (p = strchr(p, '#')); p++)
        if (p == line || isspace((unsigned char)p[-1])) {
            *p = '\0';
            return;
        }
}

static int read_line(struct settings *settings, char *line, const char *source,
                     struct viv_error *err) {
    cut_comment(line);
    char *key = trim(line);
    if (!*key)
        return 0;
    char *value = strchr(key, '=');
    if (!value)
        return viv_fail(err, VIV_CONFIG, "%s: key = value is expected", source);
    *value++ = '\0';
    return settings_set(settings, trim(key), trim(value), source, err);
}

static int read_file(struct settings *settings, const char *path, bool must_exist,
                     struct viv_error *err) {
    CLEANUP(close_file) FILE *file = fopen(path, "re");
    CLEANUP(free_ptr) char *line = NULL;
    char source[300];
    size_t room = 0;
    ssize_t size;

    if (!file && errno == ENOENT && !must_exist)
        return 0;
    if (!file)
        return viv_fail(err, VIV_CONFIG, "%s: %m", path);
    for (unsigned number = 1; (size = getline(&line, &room, file)) >= 0; number++) {
        snprintf(source, sizeof source, "%.256s:%u", path, number);
        if (strlen(line) != (size_t)size)
            return viv_fail(err, VIV_CONFIG, "%s: a NUL byte", source);
        if (read_line(settings, line, source, err))
            return -1;
    }
    if (ferror(file))
        return viv_fail(err, VIV_CONFIG, "%s: %m", path);
    return 0;
}

struct environment {
    struct settings *settings;
    struct viv_error *err;
    bool failed;
};

/* Sets one key from its variable; an empty variable is none, as in shells' ${NAME:-}. */
static void read_variable(const char *key, const char *standard, const char *help,
                          void *context) {
    struct environment *environment = context;
    char name[64] = PREFIX;
    size_t used = sizeof PREFIX - 1;

    (void)standard;
    (void)help;
    for (const char *p = key; *p && used < sizeof name - 1; p++)
        name[used++] = (char)toupper((unsigned char)*p);
    const char *value = getenv(name);
    if (value && *value && !environment->failed)
        environment->failed =
            settings_set(environment->settings, key, value, name, environment->err);
}

static int read_environment(struct settings *settings, struct viv_error *err) {
    struct environment environment = {.settings = settings, .err = err};

    settings_each(read_variable, &environment);
    return environment.failed ? -1 : 0;
}

static int read_flag(struct settings *settings, const char *argument,
                     struct viv_error *err) {
    CLEANUP(free_ptr) char *key = viv_xstrdup(argument + 2);
    char *value = strchr(key, '=');

    if (!value)
        return viv_fail(err, VIV_CONFIG, "%.64s: --key=value is expected", argument);
    *value++ = '\0';
    return settings_set(settings, key, value, "command line", err);
}

/* What the arguments say besides settings. */
struct command_line {
    const char *path;
    bool path_given;
    enum settings_request request;
};

static bool is_one_of(const char *argument, const char *letter, const char *word) {
    return strcmp(argument, letter) == 0 || strcmp(argument, word) == 0;
}

static int read_command_line(struct command_line *line, int count, char *const *arguments,
                             struct viv_error *err) {
    for (int i = 1; i < count; i++) {
        const char *argument = arguments[i];
        if (is_one_of(argument, "-h", "--help"))
            line->request = SETTINGS_HELP;
        else if (is_one_of(argument, "-V", "--version"))
            line->request = SETTINGS_VERSION;
        else if (strcmp(argument, "-t") == 0)
            line->request = SETTINGS_TEST;
        else if (strcmp(argument, "-f") == 0) {
            if (++i == count)
                return viv_fail(err, VIV_CONFIG, "-f: a file is expected");
            line->path = arguments[i];
            line->path_given = true;
        } else if (strncmp(argument, "--", 2) != 0)
            return viv_fail(err, VIV_CONFIG, "%.64s: there is no such flag", argument);
        if (line->request == SETTINGS_HELP || line->request == SETTINGS_VERSION)
            return 0;
    }
    return 0;
}

int settings_load(struct settings *settings, int argument_count, char *const *arguments,
                  int (*own_flag)(const char *argument, void *context), void *context,
                  enum settings_request *request, struct viv_error *err) {
    struct command_line line = {.request = SETTINGS_RUN, .path = VIVARIUM_CONF};

    if (read_command_line(&line, argument_count, arguments, err))
        return -1;
    *request = line.request;
    if (line.request == SETTINGS_HELP || line.request == SETTINGS_VERSION)
        return 0;
    if (read_file(settings, line.path, line.path_given, err) ||
        read_environment(settings, err))
        return -1;
    for (int i = 1; i < argument_count; i++) {
        if (strcmp(arguments[i], "-f") == 0)
            i++;
        else if (strncmp(arguments[i], "--", 2) == 0 &&
                 !(own_flag && own_flag(arguments[i], context)) &&
                 read_flag(settings, arguments[i], err))
            return -1;
    }
    return settings_check(settings, err);
}
