/* SPDX-License-Identifier: MIT */
/* The table of settings. */
#include "common/settings.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/quantity.h"
#include "common/session_wire.h"

#define KIB             (UINT64_C(1) << 10)
#define MIB             (UINT64_C(1) << 20)
#define GIB             (UINT64_C(1) << 30)
#define TIB             (UINT64_C(1) << 40)
#define HOUR            (UINT64_C(3600) * 1000)
#define DAY             (24 * HOUR)
#define TEXT_MAX        1000 /* bytes of a string or list */
#define SOCKET_START    "unix:"
#define TCP_START       "tcp:"
#define SOCKET_PATH_MAX 107 /* bytes, unix(7) */

enum option_type { STRING, CHOICE, LIST, COUNT, SIZE, DURATION };

struct option {
    const char *key;
    enum option_type type;
    size_t offset;
    const char *standard;
    uint64_t min; /* of a string or list: of its length */
    uint64_t max;
    const char *help;
    const char *choices; /* of CHOICE, divided by commas */
};

#define ROW(kind, name, ...)                                                             \
    { .type = kind, .key = #name, .offset = offsetof(struct settings, name), __VA_ARGS__ }
#define VALUE(kind, name, initial, least, most, text)                                    \
    ROW(kind, name, .standard = (initial), .min = (least), .max = (most), .help = (text))
#define ONE_OF(name, initial, list, text)                                                \
    ROW(CHOICE, name, .standard = (initial), .choices = (list), .help = (text))

static const struct option options[] = {
    VALUE(STRING, run_directory, "/run/vivarium", 1, 80, "folder of the sockets"),
    VALUE(STRING, listen, "", 0, TEXT_MAX,
          "where the web server finds vivarium-fcgi, unix:PATH or tcp:ADDRESS:PORT; "
          "empty is "
          "web/fcgi.sock in run_directory"),
    VALUE(LIST, web_servers, "127.0.0.0/8,::1", 0, TEXT_MAX,
          "addresses and networks that may connect where listen is tcp:ADDRESS:PORT"),
    VALUE(
        STRING, executor_socket, "", 0, TEXT_MAX,
        "where vivarium-fcgi finds vivarium-executor, a path; empty is executor.sock in "
        "run_directory"),
    VALUE(STRING, executor_client, "vivarium", 1, 32,
          "user that vivarium-executor serves besides its own and root"),
    ONE_OF(log_level, "info", "error,warning,info,debug", "what is logged"),
    VALUE(COUNT, threads, "128", 2, 4096, "requests that are worked on at a time"),
    VALUE(COUNT, reserved_threads, "16", 1, 4095,
          "of threads, those that calls never hold"),
    VALUE(COUNT, max_sessions, "256", 1, 65536, "sessions at a time"),
    VALUE(COUNT, max_sessions_per_client, "0", 0, 65536,
          "sessions at a time of one client address, 0 for no limit"),
    VALUE(COUNT, max_queued, "8", 0, 10000, "calls that wait in one session"),
    VALUE(DURATION, max_queue_wait, "30s", 0, HOUR,
          "how long a call waits in its session"),
    VALUE(DURATION, session_idle_timeout, "10m", 1, 30 * DAY,
          "a session without a call for so long is ended"),
    VALUE(DURATION, exec_timeout, "30s", 1, DAY, "deadline of a call that names none"),
    VALUE(DURATION, max_exec_timeout, "300s", 1, DAY,
          "largest deadline that a call may name"),
    VALUE(DURATION, interrupt_grace, "2s", 0, HOUR,
          "from the interrupt at the deadline to the kill"),
    VALUE(DURATION, stop_timeout, "5s", 0, HOUR,
          "how long a stop waits for running calls"),
    ONE_OF(
        checkpoint, "on", "on,off",
        "whether the memory of an idle session is copied, to go on from after a crash"),
    VALUE(DURATION, checkpoint_delay, "50ms", 0, HOUR,
          "how long a session is idle before it is copied"),
    VALUE(SIZE, checkpoint_memory, "256M", 0, TIB,
          "one that has allocated more beyond the fresh interpreter is not copied"),
    VALUE(COUNT, rate_limit, "10", 0, 10000,
          "calls in 60 seconds of one client address and session, 0 for no limit"),
    VALUE(LIST, trusted_proxies, "none", 0, TEXT_MAX,
          "addresses and networks whose X-Forwarded-For is believed"),
    VALUE(COUNT, pool_size, "4", 0, 1024, "sandboxes that are kept ready"),
    VALUE(LIST, preload, "numpy,pandas,matplotlib.pyplot", 0, TEXT_MAX,
          "modules that every session finds imported"),
    VALUE(SIZE, max_code, "1M", 1, SESSION_CODE_MAX, "code of a call"),
    VALUE(SIZE, max_stdin, "1M", 0, SESSION_STDIN_MAX, "standard input of a call"),
    VALUE(COUNT, max_files, "10", 0, 1000, "files of a request"),
    VALUE(SIZE, max_file_size, "10M", 1, GIB, "one file, in a request or an answer"),
    VALUE(SIZE, max_output, "1M", 1, 256 * MIB,
          "standard output of a call, and its errors"),
    VALUE(SIZE, max_result, "64K", 16, 16 * MIB, "final expression of a call, as JSON"),
    VALUE(COUNT, max_output_files, "100", 0, 10000, "files of an answer"),
    VALUE(SIZE, max_in_flight, "1G", MIB, TIB, "bodies and answers in memory at a time"),
    VALUE(SIZE, session_memory, "1G", 16 * MIB, TIB,
          "what the code of a session may allocate beyond the fresh interpreter"),
    VALUE(SIZE, session_disk, "256M", MIB, TIB, "files of a session"),
    VALUE(COUNT, session_inodes, "8192", 64, 10000000, "files and folders of a session"),
    VALUE(COUNT, session_threads, "64", 1, 4096, "threads of a session"),
    VALUE(COUNT, session_cpus, "0", 0, 4096,
          "processors' worth of time of a session, 0 for no limit; with cgroup v2 only"),
    VALUE(SIZE, min_free_memory, "512M", 0, TIB,
          "of the host; below it no session is begun, below half of it the largest is "
          "stopped"),
    VALUE(SIZE, min_free_disk, "256M", 0, TIB,
          "where slot_directory is; below it no session is begun, below half of it "
          "sessions are stopped"),
    ONE_OF(min_isolation, "confined", "full,isolated,confined,minimal",
           "weakest isolation to start with"),
    VALUE(COUNT, uid_base, "200000", 1000, UINT64_C(4000000000),
          "first of the user ids that sandboxes have, where vivarium-executor runs as "
          "root"),
    VALUE(STRING, slot_directory, "/var/lib/vivarium/slots", 1, 200,
          "folder of the sandboxes in the tiers confined and minimal"),
    VALUE(COUNT, slots, "32", 1, 4096,
          "sandboxes at a time in the tiers confined and minimal"),
    VALUE(
        COUNT, slot_uid_base, "50000", 1000, UINT64_C(4000000000),
        "first of the user ids of the tier confined, two for each of slots and two more"),
    VALUE(LIST, seccomp_refuse, "none", 0, TEXT_MAX,
          "system calls that are refused besides those that always are"),
    VALUE(COUNT, zygote_sessions, "1000", 1, 1000000,
          "the warm interpreter is replaced after so many workers"),
    VALUE(DURATION, zygote_age, "1h", 1000, 30 * DAY, "and when it is so old"),
};

#define OPTION_COUNT (sizeof options / sizeof *options)

static bool is_text(const struct option *option) { return option->type <= LIST; }

static char **text_field(struct settings *settings, const struct option *option) {
    return (char **)((char *)settings + option->offset);
}

static uint64_t *number_field(struct settings *settings, const struct option *option) {
    return (uint64_t *)((char *)settings + option->offset);
}

static enum quantity quantity_of(const struct option *option) {
    return (enum quantity)(option->type - COUNT);
}

static int refuse(const char *source, const char *key, struct viv_error *err,
                  const char *expected) {
    return viv_fail(err, VIV_CONFIG, "%s: %s: %s is expected", source, key, expected);
}

static bool is_choice(const char *choices, const char *value) {
    size_t size = strlen(value);

    for (const char *next = choices;; next++) {
        size_t length = strcspn(next, ",");
        if (length == size && memcmp(next, value, size) == 0)
            return true;
        next += length;
        if (!*next)
            return false;
    }
}

/* Makes `none` the empty list and takes the white space out of any other. */
static void squeeze_list(char *list) {
    char *to = list;

    for (const char *from = list; *from; from++)
        if (!isspace((unsigned char)*from))
            *to++ = *from;
    *to = '\0';
    if (strcmp(list, "none") == 0)
        *list = '\0';
}

static int set_text(struct settings *settings, const struct option *option,
                    const char *value, const char *source, struct viv_error *err) {
    CLEANUP(free_ptr) char *text = viv_xstrdup(value);
    char expected[64];

    if (option->type == CHOICE && !is_choice(option->choices, text)) {
        snprintf(expected, sizeof expected, "one of %s", option->choices);
        return refuse(source, option->key, err, expected);
    }
    if (option->type == LIST)
        squeeze_list(text);
    size_t size = strlen(text);
    if (option->type != CHOICE && (size < option->min || size > option->max)) {
        snprintf(expected, sizeof expected, "a text of %" PRIu64 " to %" PRIu64 " bytes",
                 option->min, option->max);
        return refuse(source, option->key, err, expected);
    }
    free(*text_field(settings, option));
    *text_field(settings, option) = steal_ptr(&text);
    return 0;
}

static int set_number(struct settings *settings, const struct option *option,
                      const char *value, const char *source, struct viv_error *err) {
    enum quantity kind = quantity_of(option);
    char least[QUANTITY_TEXT_SIZE], most[QUANTITY_TEXT_SIZE], expected[128];
    uint64_t number;

    if (quantity_parse(kind, value, &number))
        return refuse(source, option->key, err, quantity_form(kind));
    if (number < option->min || number > option->max) {
        quantity_format(kind, option->min, least);
        quantity_format(kind, option->max, most);
        snprintf(expected, sizeof expected, "%s to %s", least, most);
        return refuse(source, option->key, err, expected);
    }
    *number_field(settings, option) = number;
    return 0;
}

int settings_set(struct settings *settings, const char *key, const char *value,
                 const char *source, struct viv_error *err) {
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (strcmp(options[i].key, key) == 0)
            return (is_text(&options[i]) ? set_text : set_number)(settings, &options[i],
                                                                  value, source, err);
    return viv_fail(err, VIV_CONFIG, "%s: %s: there is no such setting", source, key);
}

void settings_init(struct settings *settings) {
    struct viv_error err;

    *settings = (struct settings){0};
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (settings_set(settings, options[i].key, options[i].standard, "default", &err))
            abort();
}

void settings_clear(struct settings *settings) {
    for (size_t i = 0; i < OPTION_COUNT; i++)
        if (is_text(&options[i]))
            free(*text_field(settings, &options[i]));
    *settings = (struct settings){0};
}

/* Fills an empty field with `prefix`, the run directory and `name`. */
static void derive(char **field, const char *prefix, const struct settings *settings,
                   const char *name) {
    char path[TEXT_MAX];

    if (**field)
        return;
    snprintf(path, sizeof path, "%s%s/%s", prefix, settings->run_directory, name);
    free(*field);
    *field = viv_xstrdup(path);
}

static int check_path(const char *key, const char *path, struct viv_error *err) {
    size_t size = strlen(path);

    if (size >= 1 && size <= SOCKET_PATH_MAX)
        return 0;
    return viv_fail(err, VIV_CONFIG, "%s: the path of a socket has 1 to %d bytes", key,
                    SOCKET_PATH_MAX);
}

/* An address of TCP is for vivarium-fcgi to judge. */
static int check_listen(const struct settings *settings, struct viv_error *err) {
    const size_t start = sizeof SOCKET_START - 1;

    if (strncmp(settings->listen, TCP_START, sizeof TCP_START - 1) == 0)
        return 0;
    if (strncmp(settings->listen, SOCKET_START, start) != 0)
        return viv_fail(err, VIV_CONFIG,
                        "listen: " SOCKET_START "PATH or " TCP_START
                        "ADDRESS:PORT is expected");
    if (strcmp(settings->listen + start, settings->executor_socket) == 0)
        return viv_fail(err, VIV_CONFIG, "listen and executor_socket are the same");
    return check_path("listen", settings->listen + start, err);
}

int settings_check(struct settings *settings, struct viv_error *err) {
    char most[QUANTITY_TEXT_SIZE];

    derive(&settings->listen, SOCKET_START, settings, "web/fcgi.sock");
    derive(&settings->executor_socket, "", settings, "executor.sock");
    if (check_listen(settings, err) ||
        check_path("executor_socket", settings->executor_socket, err))
        return -1;
    if (*settings->slot_directory != '/')
        return viv_fail(err, VIV_CONFIG, "slot_directory: an absolute path is expected");
    if (settings->exec_timeout > settings->max_exec_timeout)
        return viv_fail(err, VIV_CONFIG, "exec_timeout is larger than max_exec_timeout");
    if (settings->reserved_threads >= settings->threads)
        return viv_fail(err, VIV_CONFIG,
                        "reserved_threads leaves none of threads for calls");
    if (settings->max_in_flight < settings_max_body(settings)) {
        quantity_format(QUANTITY_SIZE, settings_max_body(settings), most);
        return viv_fail(
            err, VIV_CONFIG,
            "max_in_flight has no room for the largest request that max_files, "
            "max_file_size, max_code and max_stdin allow, %s",
            most);
    }
    return 0;
}

uint64_t settings_max_body(const struct settings *settings) {
    /* Base64 makes 4 bytes of 3; a line break every 64 characters or escaped slashes add
     * a sixteenth. Text of an encoder that escapes all but ASCII has three times its
     * bytes. */
    uint64_t base64 = settings->max_file_size / 3 * 4 + 4;
    uint64_t file = base64 + base64 / 16 + 8 * KIB;
    uint64_t text = 3 * (settings->max_code + settings->max_stdin);

    return (settings->max_files * file + text + MIB) / MIB * MIB;
}

void settings_print_help(FILE *to) {
    static const char *const kinds[] = {"TEXT", "", "LIST", "NUMBER", "SIZE", "DURATION"};

    for (const struct option *option = options; option < options + OPTION_COUNT;
         option++) {
        fprintf(to, "  --%s=%s\n      %s", option->key,
                option->type == CHOICE ? option->choices : kinds[option->type],
                option->help);
        fprintf(to, *option->standard ? " (%s)\n" : "\n", option->standard);
    }
    fputs("A SIZE is a number of bytes or has a unit: K, M, G. A DURATION has a unit: "
          "ms, s, m, "
          "h.\nA LIST is divided by commas; none is the empty one.\n",
          to);
}

void settings_each(void (*each)(const char *key, const char *standard, const char *help,
                                void *context),
                   void *context) {
    for (size_t i = 0; i < OPTION_COUNT; i++)
        each(options[i].key, options[i].standard, options[i].help, context);
}
