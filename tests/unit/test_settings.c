/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/settings.h"

#define ARGUMENTS_MAX  8
#define IN_A_RUN(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

struct run {
    struct settings settings;
    enum settings_request request;
    struct viv_error err;
    char path[64]; /* of a configuration file, or empty */
};

static int set_up(void **state) {
    struct run *run = viv_xcalloc(1, sizeof *run);

    settings_init(&run->settings);
    *state = run;
    return 0;
}

static int tear_down(void **state) {
    struct run *run = *state;

    if (*run->path)
        unlink(run->path);
    settings_clear(&run->settings);
    free(run);
    return 0;
}

static void write_file(struct run *run, const char *text, size_t size) {
    snprintf(run->path, sizeof run->path, "/tmp/test_settings.XXXXXX");
    CLEANUP(close_fd) int fd = mkstemp(run->path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, size), size);
}

/* Loads with -f and the file, and the arguments, which are divided by blanks. */
static int load(struct run *run, const char *flags) {
    CLEANUP(free_ptr) char *text = viv_xstrdup(flags);
    char *arguments[ARGUMENTS_MAX] = {"vivarium", "-f", run->path}, *next = text;
    int count = 3;

    if (!*run->path)
        write_file(run, "", 0);
    while (next && *next && count < ARGUMENTS_MAX)
        arguments[count++] = strsep(&next, " ");
    return settings_load(&run->settings, count, arguments, NULL, NULL, &run->request,
                         &run->err);
}

static int load_text(struct run *run, const char *text) {
    write_file(run, text, strlen(text));
    return load(run, "");
}

static void defaults_are_those_of_the_contract(void **state) {
    struct run *run = *state;
    const struct settings *s = &run->settings;
    const uint64_t k = 1024, m = 1024 * k, g = 1024 * m, minute = 60000;

    assert_int_equal(load(run, ""), 0);
    assert_int_equal(run->request, SETTINGS_RUN);
    assert_string_equal(s->run_directory, "/run/vivarium");
    assert_string_equal(s->listen, "unix:/run/vivarium/web/fcgi.sock");
    assert_string_equal(s->executor_socket, "/run/vivarium/executor.sock");
    assert_string_equal(s->executor_client, "vivarium");
    assert_true(viv_log_level_of(s->log_level) == VIV_LOG_INFO);
    assert_string_equal(s->trusted_proxies, "");
    assert_string_equal(s->preload, "numpy,pandas,matplotlib.pyplot");
    assert_string_equal(s->min_isolation, "confined");
    assert_string_equal(s->slot_directory, "/var/lib/vivarium/slots");
    assert_string_equal(s->seccomp_refuse, "");
    const uint64_t numbers[][2] = {
        {s->threads, 128},
        {s->reserved_threads, 16},
        {s->max_sessions, 256},
        {s->max_sessions_per_client, 0},
        {s->max_queued, 8},
        {s->max_queue_wait, minute / 2},
        {s->session_idle_timeout, 10 * minute},
        {s->exec_timeout, minute / 2},
        {s->max_exec_timeout, 5 * minute},
        {s->interrupt_grace, 2000},
        {s->stop_timeout, 5000},
        {s->rate_limit, 10},
        {s->pool_size, 4},
        {s->max_code, m},
        {s->max_stdin, m},
        {s->max_files, 10},
        {s->max_file_size, 10 * m},
        {s->max_output, m},
        {s->max_result, 64 * k},
        {s->max_output_files, 100},
        {s->max_in_flight, g},
        {s->session_memory, g},
        {s->session_disk, 256 * m},
        {s->session_inodes, 8192},
        {s->session_threads, 64},
        {s->session_cpus, 0},
        {s->min_free_memory, 512 * m},
        {s->min_free_disk, 256 * m},
        {s->uid_base, 200000},
        {s->slots, 32},
        {s->slot_uid_base, 50000},
        {s->zygote_sessions, 1000},
        {s->zygote_age, 60 * minute},
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        if (numbers[i][0] != numbers[i][1])
            fail_msg("number %zu: %llu", i, (unsigned long long)numbers[i][0]);
}

static void files_have_comments_and_white_space(void **state) {
    struct run *run = *state;

    assert_int_equal(load_text(run, "# all of it\n"
                                    "\n"
                                    "  \t \r\n"
                                    "threads=64\nmax_files = 3\n"
                                    "  max_code =\t2M  # not much\r\n"
                                    "run_directory = /tmp/a b#c\n"
                                    "   # threads = 3\n"
                                    "preload = numpy , scipy.stats\n"
                                    "max_files = 7\n"
                                    "exec_timeout = 500ms"),
                     0);
    assert_int_equal(run->settings.threads, 64);
    assert_int_equal(run->settings.max_files, 7); /* the later line wins */
    assert_int_equal(run->settings.max_code, 2 << 20);
    assert_string_equal(run->settings.run_directory, "/tmp/a b#c");
    assert_string_equal(run->settings.listen, "unix:/tmp/a b#c/web/fcgi.sock");
    assert_string_equal(run->settings.preload, "numpy,scipy.stats");
    assert_int_equal(run->settings.exec_timeout, 500);
}

static void none_is_the_empty_list(void **state) {
    struct run *run = *state;

    assert_int_equal(
        load_text(run, "preload = none\ntrusted_proxies = 10.0.0.0/8, ::1\n"), 0);
    assert_string_equal(run->settings.preload, "");
    assert_string_equal(run->settings.trusted_proxies, "10.0.0.0/8,::1");
}

static void faults_name_file_line_and_key(void **state) {
    static const struct {
        const char *text;
        const char *message;
    } faults[] = {
        {"\nmax_codes = 1M\n", ":2: max_codes: there is no such setting"},
        {"Max_code = 1M\n", ":1: Max_code: there is no such setting"},
        {"# a\n\nthreads\n", ":3: key = value is expected"},
        {"= 5\n", ":1: : there is no such setting"},
        {"threads =\n", ":1: threads: a number is expected"},
        {"threads = many\n", ":1: threads: a number is expected"},
        {"threads = 1\n", ":1: threads: 2 to 4096 is expected"},
        {"max_code = 10MB\n", ":1: max_code: a size such as"},
        {"max_code = 17M\n", ":1: max_code: 1 to 16M is expected"},
        {"max_result = 17M\n", ":1: max_result: 16 to 16M is expected"},
        {"exec_timeout = 30\n", ":1: exec_timeout: a duration such as 500ms, 30s"},
        {"exec_timeout = 0\n", ":1: exec_timeout: 1ms to 24h is expected"},
        {"min_isolation = best\n",
         ":1: min_isolation: one of full,isolated,confined,minimal"},
        {"min_isolation = full,isolated\n", ":1: min_isolation: one of"},
        {"log_level =\n", ":1: log_level: one of error,warning,info,debug"},
        {"run_directory =\n", ":1: run_directory: a text of 1 to 80 bytes"},
        {"slot_directory =\n", ":1: slot_directory: a text of 1 to 200 bytes"},
        {"slots = 0\n", ":1: slots: 1 to 4096 is expected"},
        {"slot_uid_base = 999\n", ":1: slot_uid_base: 1000 to 4000000000 is expected"},
        {"session_cpus = 1.5\n", ":1: session_cpus: a number is expected"},
    };

    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        struct run *run = *state;
        char expected[200];
        write_file(run, faults[i].text, strlen(faults[i].text));
        snprintf(expected, sizeof expected, "%s%s", run->path, faults[i].message);
        assert_fails(load(run, ""), &run->err, VIV_CONFIG, expected);
        unlink(run->path);
    }
}

static void files_hold_no_nul(void **state) {
    struct run *run = *state;

    write_file(run, "threads = 5\0000\n", 14);
    assert_fails(load(run, ""), &run->err, VIV_CONFIG, ":1: a NUL byte");
}

static void a_named_file_must_be_there(void **state) {
    struct run *run = *state;
    char *arguments[] = {"vivarium", "-f", "/nonexistent/vivarium.conf"};

    assert_fails(
        settings_load(&run->settings, 3, arguments, NULL, NULL, &run->request, &run->err),
        &run->err, VIV_CONFIG, "/nonexistent/vivarium.conf: No such file");
    assert_fails(
        settings_load(&run->settings, 2, arguments, NULL, NULL, &run->request, &run->err),
        &run->err, VIV_CONFIG, "-f: a file is expected");
}

static void the_environment_wins_over_the_file(void **state) {
    struct run *run = *state;

    setenv("VIVARIUM_MAX_FILES", "3", 1);
    setenv("VIVARIUM_MAX_STDIN", "", 1);
    setenv("VIVARIUM_NO_SUCH_KEY", "1", 1);
    assert_int_equal(load_text(run, "max_files = 5\nmax_stdin = 2K\n"), 0);
    assert_int_equal(run->settings.max_files, 3);
    assert_int_equal(run->settings.max_stdin, 2048);
    setenv("VIVARIUM_MAX_FILES", "three", 1);
    assert_fails(load(run, ""), &run->err, VIV_CONFIG,
                 "VIVARIUM_MAX_FILES: max_files: a number");
    unsetenv("VIVARIUM_MAX_FILES");
    unsetenv("VIVARIUM_MAX_STDIN");
    unsetenv("VIVARIUM_NO_SUCH_KEY");
}

static void flags_win_over_all(void **state) {
    struct run *run = *state;

    setenv("VIVARIUM_MAX_FILES", "3", 1);
    write_file(run, "max_files = 5\n", 14);
    assert_int_equal(load(run, "--max_files=9 --preload= -t"), 0);
    assert_int_equal(run->settings.max_files, 9);
    assert_string_equal(run->settings.preload, "");
    assert_int_equal(run->request, SETTINGS_TEST);
    unsetenv("VIVARIUM_MAX_FILES");
}

static void wrong_flags_are_refused(void **state) {
    struct run *run = *state;

    assert_fails(load(run, "--max_files=x"), &run->err, VIV_CONFIG,
                 "command line: max_files: a number");
    assert_fails(load(run, "--max_files"), &run->err, VIV_CONFIG,
                 "--max_files: --key=value");
    assert_fails(load(run, "--files=1"), &run->err, VIV_CONFIG,
                 "command line: files: there is no such setting");
    assert_fails(load(run, "-x"), &run->err, VIV_CONFIG, "-x: there is no such flag");
    assert_fails(load(run, "stop"), &run->err, VIV_CONFIG, "stop: there is no such flag");
}

static void help_and_version_read_nothing(void **state) {
    struct run *run = *state;
    static const struct {
        char *flag;
        enum settings_request request;
    } flags[] = {
        {"-h", SETTINGS_HELP},
        {"--help", SETTINGS_HELP},
        {"-V", SETTINGS_VERSION},
        {"--version", SETTINGS_VERSION},
    };

    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        char *arguments[] = {"vivarium", "-f", "/nonexistent", flags[i].flag, "--bad"};
        assert_int_equal(settings_load(&run->settings, 5, arguments, NULL, NULL,
                                       &run->request, &run->err),
                         0);
        assert_int_equal(run->request, flags[i].request);
    }
}

static int is_zygote(const char *argument, void *context) {
    const char **found = context;

    if (strncmp(argument, "--zygote=", 9) != 0)
        return 0;
    *found = argument + 9;
    return 1;
}

static void programs_have_flags_of_their_own(void **state) {
    struct run *run = *state;
    const char *found = NULL;

    write_file(run, "", 0);
    char *arguments[] = {"vivarium", "--zygote=/x=y", "-f", run->path, "--max_files=4"};
    assert_int_equal(settings_load(&run->settings, 5, arguments, is_zygote, &found,
                                   &run->request, &run->err),
                     0);
    assert_string_equal(found, "/x=y");
    assert_int_equal(run->settings.max_files, 4);
}

static void settings_are_checked_against_each_other(void **state) {
    struct run *run = *state;
    static const struct {
        const char *text;
        const char *message;
    } faults[] = {
        {"exec_timeout = 6m", "exec_timeout is larger than max_exec_timeout"},
        {"threads = 16", "reserved_threads leaves none"},
        {"listen = 127.0.0.1:9000", "listen: unix:PATH or tcp:ADDRESS:PORT is expected"},
        {"listen = unix:", "listen: the path of a socket has 1 to 107 bytes"},
        {"listen = unix:/run/vivarium/executor.sock", "the same"},
        {"max_in_flight = 100M", "max_in_flight has no room"},
        {"slot_directory = slots", "slot_directory: an absolute path is expected"},
        {"executor_socket = /123456789/123456789/123456789/123456789/123456789/123456789"
         "/123456789/123456789/123456789/123456789/1234567",
         "executor_socket: the path of a socket"},
    };

    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        assert_fails(load_text(run, faults[i].text), &run->err, VIV_CONFIG,
                     faults[i].message);
        unlink(run->path);
        settings_clear(&run->settings);
        settings_init(&run->settings);
    }
    assert_int_equal(load_text(run, "exec_timeout = 300s\nthreads = 17\n"), 0);
}

static void a_refused_value_changes_nothing(void **state) {
    struct run *run = *state;

    assert_fails(settings_set(&run->settings, "max_files", "x", "test", &run->err),
                 &run->err, VIV_CONFIG, "test: max_files: ");
    assert_int_equal(run->settings.max_files, 10);
    assert_fails(settings_set(&run->settings, "min_isolation", "x", "test", &run->err),
                 &run->err, VIV_CONFIG, "test: min_isolation: ");
    assert_string_equal(run->settings.min_isolation, "confined");
}

static void the_largest_body_has_room_for_wrapped_files(void **state) {
    struct run *run = *state;
    const struct settings *s = &run->settings;

    /* Ten files of ten megabytes, wrapped at 64 characters with \r\n, escaped or not. */
    uint64_t text = (s->max_file_size + 2) / 3 * 4;
    uint64_t least = s->max_files * (text + text / 64 * 4) + s->max_code + s->max_stdin;
    assert_true(settings_max_body(s) >= least);
    assert_true(settings_max_body(s) < least + least / 8);
    /* The web server's limit, which is to be above it, is 160000 KiB by default. */
    assert_true(settings_max_body(s) < UINT64_C(160000) * 1024);
}

struct seen {
    const char *help_text;
    int count;
};

static void in_help(const char *key, const char *standard, const char *help,
                    void *context) {
    struct seen *seen = context;
    char flag[100];

    snprintf(flag, sizeof flag, "--%s=", key);
    const char *found = strstr(seen->help_text, flag);
    assert_non_null(found);
    assert_non_null(strstr(found, help));
    assert_non_null(strstr(found, standard));
    seen->count++;
}

static void help_names_every_setting(void **state) {
    CLEANUP(free_ptr) char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    (void)state;
    settings_print_help(to);
    fclose(to);
    struct seen seen = {.help_text = text};
    settings_each(in_help, &seen);
    /* Every field has eight bytes: one without a row would show. */
    assert_int_equal(seen.count * sizeof(uint64_t), sizeof(struct settings));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_A_RUN(defaults_are_those_of_the_contract),
        IN_A_RUN(files_have_comments_and_white_space),
        IN_A_RUN(none_is_the_empty_list),
        IN_A_RUN(faults_name_file_line_and_key),
        IN_A_RUN(files_hold_no_nul),
        IN_A_RUN(a_named_file_must_be_there),
        IN_A_RUN(the_environment_wins_over_the_file),
        IN_A_RUN(flags_win_over_all),
        IN_A_RUN(wrong_flags_are_refused),
        IN_A_RUN(help_and_version_read_nothing),
        IN_A_RUN(programs_have_flags_of_their_own),
        IN_A_RUN(settings_are_checked_against_each_other),
        IN_A_RUN(a_refused_value_changes_nothing),
        IN_A_RUN(the_largest_body_has_room_for_wrapped_files),
        IN_A_RUN(help_names_every_setting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
