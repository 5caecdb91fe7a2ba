/* SPDX-License-Identifier: MIT */
/*
 * vivarium-fcgi: start, the work of the main thread, stop. The main thread handles all
 * signals and is the janitor; requests are answered by the threads of server.h. Sandboxes
 * are not ended when it stops: they live in vivarium-executor and are taken over at the
 * next start.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/command_line.h"
#include "common/descriptors.h"
#include "common/log.h"
#include "common/service_notify.h"
#include "common/settings.h"
#include "fcgi-app/adoption.h"
#include "fcgi-app/app.h"
#include "fcgi-app/exec_run.h"
#include "fcgi-app/fastcgi.h"
#include "fcgi-app/listener.h"
#include "fcgi-app/server.h"

#define TICK_MS          1000
#define ADOPTING_TICK_MS 100   /* while calls are refused for it, */
#define ADOPTING_SOON_MS 10000 /* unless it will not come by itself */
#define RECORD_MS        10000 /* between records of a call that runs, at most */
#define EXPIRE_BATCH     16

/* For answers that are being written when calls are cut off. */
#define LAST_ANSWERS_MS 100

/* Bodies and files are mapped one by one and so go back to the system when they are
 * freed; a fixed threshold keeps glibc from raising it. Few arenas, so that what many
 * threads free is found again by others. */
static void tune_malloc(void) {
    mallopt(M_MMAP_THRESHOLD, 256 * 1024);
    mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
    mallopt(M_ARENA_MAX, 4);
}

static sigset_t block_signals(void) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&set, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    return set;
}

/* Ends sandboxes of sessions that nobody uses. Where the executor does not answer, the
 * rest of them is left to the adoption's later walks, and it returns false. */
static bool expire_sessions(struct app *app) {
    uint64_t sandboxes[EXPIRE_BATCH];
    struct viv_error err;
    bool reached = true;
    size_t count;

    do {
        count = sessions_expire(app->sessions, viv_now(), sandboxes, EXPIRE_BATCH);
        for (size_t i = 0; i < count && reached; i++)
            reached =
                sandboxes[i] == 0 || !executor_end(&app->executor, sandboxes[i], &err);
        if (count > 0)
            viv_log(VIV_LOG_INFO, "sessions_expired", "count=%zu", count);
    } while (count == EXPIRE_BATCH && reached);
    return reached;
}

/* A running call keeps its session from expiring, also for who takes it over. */
static void record_running_calls(struct app *app, viv_time now, viv_time *next) {
    int64_t quarter_ms = (int64_t)app->settings->session_idle_timeout / 4;
    struct session_line *lines;

    if (now < *next)
        return;
    *next = now + VIV_MS * (quarter_ms < RECORD_MS ? quarter_ms : RECORD_MS);
    size_t count = sessions_list(app->sessions, &lines);
    for (size_t i = 0; i < count; i++)
        if (lines[i].busy)
            exec_run_record(app, lines[i].id, lines[i].sandbox);
    free(lines);
}

/* Returns the signal that asks for the end. */
static int work_until_signal(struct app *app, struct adoption *adoption,
                             struct service_notify *manager, const sigset_t *signals) {
    viv_time soon = viv_after_ms(ADOPTING_SOON_MS), next_record = 0;

    for (;;) {
        bool hurry = app->adopting && viv_now() < soon;
        int64_t tick_ms = hurry ? ADOPTING_TICK_MS : TICK_MS;
        const struct timespec tick = {.tv_sec = tick_ms / 1000,
                                      .tv_nsec = tick_ms % 1000 * VIV_MS};
        int number = sigtimedwait(signals, NULL, &tick);
        if (number > 0)
            return number;
        if (errno != EAGAIN)
            continue;
        /* One that does not answer is asked once a turn: signals wait meanwhile. */
        if (expire_sessions(app))
            adoption_tick(adoption, app, viv_now());
        record_running_calls(app, viv_now(), &next_record);
        /* Behind the work: it needs the lock over all sessions, and the executor's
         * answers in time. */
        service_notify_beat(manager, viv_now());
    }
}

static int fail(const struct viv_error *err) {
    viv_log_failure(VIV_LOG_ERROR, "start_failed", err->message, NULL);
    return err->code == VIV_CONFIG ? EX_CONFIG : EXIT_FAILURE;
}

/* Calls that run may end within stop_timeout; all other requests are answered meanwhile,
 * further calls with a refusal. A second signal cuts this short. Returns whether all
 * threads have ended. */
static bool stop(struct app *app, struct server *server, const sigset_t *signals) {
    viv_time deadline = viv_after_ms((int64_t)app->settings->stop_timeout);
    viv_time last = viv_after_ms(LAST_ANSWERS_MS);

    sessions_stop(app->sessions);
    if (!server_finish_calls(server, deadline, signals))
        return server_stop(server, viv_after_ms(LAST_ANSWERS_MS));
    return server_stop(server, deadline > last ? deadline : last);
}

/* From the threads' start to their end. */
static int serve(struct app *app, struct listener *listener,
                 struct service_notify *manager, const sigset_t *signals) {
    struct adoption adoption = {.done = false};
    struct server server;
    struct viv_error err;

    app->adopting = true;
    adoption_tick(&adoption, app, viv_now());
    if (server_start(&server, app, listener, &err))
        return fail(&err);
    viv_log(VIV_LOG_INFO, "listening", "socket=\"%s\" kept=%d threads=%" PRIu64,
            app->settings->listen, listener->kept, app->settings->threads);
    if (listener->exposed)
        viv_log_failure(
            VIV_LOG_WARNING, "open_to_other_hosts",
            "FastCGI is neither encrypted nor authenticated: whoever can send "
            "from an address of web_servers runs code, and whoever is on the "
            "way reads it",
            "web_servers=%s", app->settings->web_servers);
    service_notify_tell(manager, "READY=1");
    int number = work_until_signal(app, &adoption, manager, signals);
    service_notify_tell(manager, "STOPPING=1");
    viv_log(VIV_LOG_INFO, "stopping", "signal=%d", number);
    if (!stop(app, &server, signals)) {
        viv_log(VIV_LOG_WARNING, "stopped", "calls_cut=1");
        listener_unlink(listener);
        _exit(EXIT_SUCCESS);
    }
    viv_log(VIV_LOG_INFO, "stopped", "calls_cut=0");
    return EXIT_SUCCESS;
}

static int run(const struct settings *settings) {
    struct service_notify manager;
    struct listener listener;
    struct app app;
    struct viv_error err;

    umask(0077);
    tune_malloc();
    descriptors_raise_limit();
    json_object_seed(0);
    sigset_t signals = block_signals();
    int given = service_notify_take_kept();
    if (service_notify_open(&manager, &err))
        viv_log_failure(VIV_LOG_WARNING, "service_manager_not_told", err.message, NULL);
    if (app_init(&app, settings, &err))
        return fail(&err);
    int status;
    if (fastcgi_set_up(&err) ||
        listener_open(&listener, settings->listen, settings->web_servers, given, &err)) {
        status = fail(&err);
    } else {
        if (listener.path && !listener.kept)
            listener.kept = service_notify_keep(&manager, listener.fd);
        status = serve(&app, &listener, &manager, &signals);
        listener_close(&listener);
    }
    /* Who waits for one that cannot start is to have the web server's answer. */
    if (status != EXIT_SUCCESS)
        service_notify_forget(&manager);
    app_clear(&app);
    service_notify_close(&manager);
    return status;
}

static int check(const struct settings *settings, void *context, struct viv_error *err) {
    struct networks networks;

    (void)context;
    if (networks_parse("trusted_proxies", settings->trusted_proxies, &networks, err))
        return -1;
    networks_clear(&networks);
    return listener_check(settings->listen, settings->web_servers, err);
}

int main(int argc, char **argv) {
    CLEANUP(settings_clear) struct settings settings;
    const struct command_line line = {
        .program = "vivarium-fcgi",
        .version = PACKAGE_VERSION,
        .purpose = "Answers the HTTP requests of Vivarium behind a web server.",
        .flags = "",
        .check = check,
    };
    int status = command_line_read(&line, argc, argv, &settings);

    return status < 0 ? run(&settings) : status;
}
