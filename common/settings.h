/* SPDX-License-Identifier: MIT */
/*
 * The settings of both services: one table, which drives the file, the environment, the
 * flags, the help and the manual. A later source wins: defaults, the file, VIVARIUM_KEY,
 * --key=value.
 *
 * Numbers are counts, bytes or milliseconds as their field says. In the sources a size is
 * a number of bytes or has one of the units K, M, G (powers of 1024); a duration has one
 * of ms, s, m, h, only 0 needs none. Strings are owned by the structure; a list is one
 * without white space, divided by commas, empty where its source says `none`. Read before
 * the first thread, read-only afterwards.
 */
#ifndef VIV_SETTINGS_H
#define VIV_SETTINGS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/error.h"

struct settings {
    char *run_directory;   /* for sockets */
    char *listen;          /* of vivarium-fcgi: unix:PATH or tcp:ADDRESS:PORT */
    char *web_servers;     /* addresses or networks that may connect by TCP; a list */
    char *executor_socket; /* path */
    char *executor_client; /* user that the executor serves besides its own and root */
    char *log_level;       /* a name that viv_log_level_of() knows */
    uint64_t threads;
    uint64_t reserved_threads; /* of threads, never held by calls */
    uint64_t max_sessions;
    uint64_t max_sessions_per_client; /* 0: off */
    uint64_t max_queued;              /* calls waiting in a session */
    uint64_t max_queue_wait;          /* ms */
    uint64_t session_idle_timeout;    /* ms */
    uint64_t exec_timeout;            /* ms */
    uint64_t max_exec_timeout;        /* ms */
    uint64_t interrupt_grace;         /* ms */
    uint64_t stop_timeout;            /* ms */
    char *checkpoint;                 /* on or off */
    uint64_t checkpoint_delay;        /* ms */
    uint64_t checkpoint_memory;       /* bytes beyond the fresh interpreter */
    uint64_t rate_limit;              /* calls in 60 seconds, 0: off */
    char *trusted_proxies;            /* addresses or networks; a list */
    uint64_t pool_size;
    char *preload;      /* module names; a list */
    uint64_t max_code;  /* bytes */
    uint64_t max_stdin; /* bytes */
    uint64_t max_files;
    uint64_t max_file_size; /* bytes */
    uint64_t max_output;    /* bytes, each stream */
    uint64_t max_result;    /* bytes */
    uint64_t max_output_files;
    uint64_t max_in_flight;  /* bytes of bodies and answers */
    uint64_t session_memory; /* bytes beyond the fresh interpreter */
    uint64_t session_disk;   /* bytes */
    uint64_t session_inodes;
    uint64_t session_threads;
    uint64_t session_cpus;    /* processors' worth of time, 0: no limit */
    uint64_t min_free_memory; /* bytes, of the host */
    uint64_t min_free_disk;   /* bytes, where slot_directory is */
    char *min_isolation;      /* full, isolated, confined or minimal */
    uint64_t uid_base;
    char *slot_directory; /* of the tiers without namespaces */
    uint64_t slots;
    uint64_t slot_uid_base;
    char *seccomp_refuse; /* names of system calls; a list */
    uint64_t zygote_sessions;
    uint64_t zygote_age; /* ms */
};

/* What a command line asked for besides settings. */
enum settings_request {
    SETTINGS_RUN,
    SETTINGS_TEST,    /* -t: the configuration is right, end */
    SETTINGS_VERSION, /* -V, --version */
    SETTINGS_HELP,    /* -h, --help */
};

/* Fills every field with its default; `listen` and `executor_socket` are empty until
 * settings_check(). */
void settings_init(struct settings *settings);

/*
 * Reads all sources into settings that were initialised: the file named by -f, or
 * vivarium.conf of the system's configuration if that exists; the environment (a variable
 * that is empty or has no key's name is passed over); the arguments. `own_flag` (may be
 * NULL) is called with each argument that begins with "--" and returns non-zero for one
 * that belongs to the program alone. Ends with settings_check(). Fails with VIV_CONFIG;
 * the message begins with `file:line: key: `, `VIVARIUM_KEY: key: ` or `command line:
 * key: `. When help or the version is asked for, nothing is read.
 */
int settings_load(struct settings *settings, int argument_count, char *const *arguments,
                  int (*own_flag)(const char *argument, void *context), void *context,
                  enum settings_request *request, struct viv_error *err);

/* Sets one key to a value that came from `source`, for the message. Fails with
 * VIV_CONFIG; the setting is then as it was. */
int settings_set(struct settings *settings, const char *key, const char *value,
                 const char *source, struct viv_error *err);

/* Derives `listen` and `executor_socket` from run_directory where they were not given,
 * and checks the settings against each other. Fails with VIV_CONFIG. */
int settings_check(struct settings *settings, struct viv_error *err);

/* The size of the largest request body that is read: room for every file in base64 at its
 * largest, with line breaks and escapes, and for code and standard input. */
uint64_t settings_max_body(const struct settings *settings);

/* The whole table with defaults and meanings, for --help. */
void settings_print_help(FILE *to);

/* Calls `each` for every key in the table's order, with its default as text. */
void settings_each(void (*each)(const char *key, const char *standard, const char *help,
                                void *context),
                   void *context);

void settings_clear(struct settings *settings);

static inline void settings_clear_cleanup(struct settings *settings) {
    settings_clear(settings);
}

#endif
