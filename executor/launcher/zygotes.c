/* SPDX-License-Identifier: MIT */
#include "executor/launcher/zygotes.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/log.h"

#define IN_FLIGHT_MAX  8 /* requests sent and not answered: the rest waits here */
#define SANDBOX_MAX    4 /* requests of one sandbox: it needs one, for a moment two */
#define RETRY_FIRST_MS 100
#define RETRY_LAST_MS  10000
#define START_LIMIT    (60 * VIV_SECOND) /* until it is ready */
#define ANSWER_LIMIT   (20 * VIV_SECOND) /* for a fork; supervisors wait longer */

struct spawn {
    struct spawn *next;
    struct spawn_request request;
    int fds[SPAWN_FD_MAX];
    size_t fd_count;
    struct zygote *by; /* that was asked, or NULL */
};

void zygotes_init(struct zygotes *zygotes, const struct zygote_setup *setup,
                  struct event_loop *loop, zygotes_answer *answer, void *context) {
    *zygotes = (struct zygotes){
        .setup = setup, .loop = loop, .answer = answer, .context = context};
    for (int i = 0; i < 2; i++) {
        zygotes->two[i].all = zygotes;
        zygotes->two[i].process.socket = -1;
    }
}

static struct zygote *current(struct zygotes *zygotes) {
    return &zygotes->two[zygotes->current];
}

static struct zygote *other(struct zygotes *zygotes) {
    return &zygotes->two[1 - zygotes->current];
}

/* ---- requests ---- */

static void send_waiting(struct zygotes *zygotes) {
    struct zygote *asked = current(zygotes);

    if (!asked->process.ready)
        return;
    for (struct spawn *spawn = zygotes->first; spawn; spawn = spawn->next) {
        if (spawn->by)
            continue;
        if (asked->in_flight == IN_FLIGHT_MAX ||
            zygote_process_ask(&asked->process, &spawn->request, spawn->fds,
                               spawn->fd_count, NULL))
            return;
        spawn->by = asked;
        if (asked->in_flight++ == 0)
            asked->owes_since = viv_now();
        asked->forks++;
    }
}

int zygotes_spawn(struct zygotes *zygotes, uint64_t sandbox, uid_t user, const int fds[],
                  size_t count, struct viv_error *err) {
    struct spawn **end = &zygotes->first;
    int asked = 0;

    for (; *end; end = &(*end)->next)
        asked += (*end)->request.sandbox == sandbox;
    if (asked == SANDBOX_MAX)
        return viv_fail(err, VIV_BAD_GATEWAY, "a sandbox asks for too many workers");
    struct spawn *spawn = viv_xcalloc(1, sizeof *spawn);
    spawn->request.sandbox = sandbox;
    spawn->request.user = user;
    spawn->fd_count = count;
    memcpy(spawn->fds, fds, count * sizeof *fds);
    *end = spawn;
    send_waiting(zygotes);
    return 0;
}

static void drop(struct spawn **link) {
    struct spawn *spawn = *link;

    *link = spawn->next;
    for (size_t i = 0; i < spawn->fd_count; i++)
        close(spawn->fds[i]);
    free(spawn);
}

bool zygotes_forget(struct zygotes *zygotes, uint64_t sandbox) {
    bool under_way = false;

    for (struct spawn **link = &zygotes->first; *link;) {
        bool is_meant = (*link)->request.sandbox == sandbox;
        if (is_meant && !(*link)->by) {
            drop(link);
            continue;
        }
        under_way |= is_meant;
        link = &(*link)->next;
    }
    return under_way;
}

/* The request that was answered; its place is empty when there is none such. */
static struct spawn **find_answered(struct zygote *zygote, uint64_t sandbox) {
    struct spawn **link = &zygote->all->first;

    while (*link && ((*link)->by != zygote || (*link)->request.sandbox != sandbox))
        link = &(*link)->next;
    return link;
}

/* ---- the life of one ---- */

static void stop_asking(struct zygote *zygote) {
    if (zygote->process.socket >= 0)
        event_loop_remove(zygote->all->loop, &zygote->source);
    zygote_process_close(&zygote->process);
    for (struct spawn *spawn = zygote->all->first; spawn; spawn = spawn->next)
        if (spawn->by == zygote)
            spawn->by = NULL;
    zygote->in_flight = 0;
}

/* It died, or must. What it was asked waits again; the next attempt comes later after
 * each failure in a row. */
static void lost(struct zygote *zygote, const char *reason) {
    struct zygotes *all = zygote->all;
    int64_t wait_ms = viv_backoff_ms(++zygote->failures, RETRY_FIRST_MS, RETRY_LAST_MS);

    stop_asking(zygote);
    if (zygote->process.pid > 0)
        kill(zygote->process.pid, SIGKILL);
    zygote->start_at = viv_after_ms(wait_ms);
    if (zygote == current(all))
        snprintf(all->reason, sizeof all->reason, "%s", reason);
    viv_log_failure(VIV_LOG_ERROR, "zygote_lost", reason, "retry_ms=%lld",
                    (long long)wait_ms);
    send_waiting(all);
}

static void end_if_retired(struct zygote *zygote) {
    if (zygote->retiring && zygote->in_flight == 0)
        stop_asking(zygote); /* it ends at the end of its socket */
}

static void became_ready(struct zygote *zygote) {
    struct zygotes *all = zygote->all;

    zygote->ready_at = viv_now();
    zygote->failures = 0;
    zygote->forks = 0;
    all->reason[0] = '\0';
    viv_log(VIV_LOG_INFO, "zygote_ready", "pid=%d size_mb=%llu", (int)zygote->process.pid,
            (unsigned long long)(zygote->process.fresh_size >> 20));
    if (zygote != current(all)) {
        struct zygote *old = current(all);
        all->current = 1 - all->current;
        old->retiring = old->process.pid > 0;
        end_if_retired(old);
    }
    send_waiting(all);
}

static void answered(struct zygote *zygote, const struct spawn_reply *reply) {
    struct zygotes *all = zygote->all;
    struct spawn **asked = find_answered(zygote, reply->sandbox);

    if (!*asked) {
        lost(zygote, "the zygote answered what it was not asked");
        return;
    }
    /* Before the worker's descriptors are closed, whose end would look like a worker
     * that was made and died. */
    all->answer(all->context, reply);
    drop(asked);
    zygote->in_flight--;
    zygote->owes_since = viv_now();
    end_if_retired(zygote);
    send_waiting(all);
}

static void says(struct event_source *source) {
    struct zygote *zygote = (struct zygote *)source;
    struct spawn_reply reply;
    struct viv_error err;

    switch (zygote_process_receive(&zygote->process, &reply, &err)) {
    case ZYGOTE_SAYS_NOTHING:
        break;
    case ZYGOTE_IS_READY:
        became_ready(zygote);
        break;
    case ZYGOTE_ANSWERS:
        answered(zygote, &reply);
        break;
    case ZYGOTE_FAILS:
        lost(zygote, err.message);
    }
}

static void start(struct zygote *zygote) {
    struct zygotes *all = zygote->all;
    struct viv_error err;

    zygote->retiring = false;
    zygote->owes_since = viv_now();
    if (zygote_process_start(&zygote->process, all->setup, &err)) {
        lost(zygote, err.message);
        return;
    }
    zygote->source = (struct event_source){zygote->process.socket, says};
    if (event_loop_add(all->loop, &zygote->source, &err))
        lost(zygote, err.message);
}

bool zygotes_reaped(struct zygotes *zygotes, pid_t pid) {
    for (int i = 0; i < 2; i++) {
        struct zygote *zygote = &zygotes->two[i];
        if (zygote->process.pid != pid)
            continue;
        zygote->process.pid = 0;
        if (zygote->process.socket >= 0)
            lost(zygote, "the zygote died");
        return true;
    }
    return false;
}

/* ---- time ---- */

static bool is_worn(const struct zygote *zygote, const struct settings *settings) {
    return zygote->forks >= settings->zygote_sessions ||
           viv_now() - zygote->ready_at >= (viv_time)settings->zygote_age * VIV_MS;
}

/* Starts it if there is none and the time has come; returns when it will have. */
static viv_time start_if_due(struct zygote *zygote) {
    if (zygote->process.pid > 0)
        return VIV_TIME_NEVER;
    if (viv_now() >= zygote->start_at)
        start(zygote);
    return zygote->process.pid > 0 ? VIV_TIME_NEVER : zygote->start_at;
}

/* One that hangs, in an import or stopped, is as good as dead. */
static void give_up_if_it_hangs(struct zygote *zygote) {
    viv_time owes = viv_now() - zygote->owes_since;

    if (zygote->process.socket < 0)
        return;
    if (!zygote->process.ready && owes > START_LIMIT)
        lost(zygote, "the zygote does not become ready");
    else if (zygote->in_flight > 0 && owes > ANSWER_LIMIT)
        lost(zygote, "the zygote does not answer");
}

viv_time zygotes_keep_time(struct zygotes *zygotes) {
    const struct settings *settings = zygotes->setup->settings;

    for (int i = 0; i < 2; i++)
        give_up_if_it_hangs(&zygotes->two[i]);
    struct zygote *asked = current(zygotes);
    viv_time next = start_if_due(asked);

    if (!asked->process.ready)
        return next;
    if (is_worn(asked, settings))
        return start_if_due(other(zygotes));
    return asked->ready_at + (viv_time)settings->zygote_age * VIV_MS;
}

bool zygotes_have(const struct zygotes *zygotes, pid_t pid) {
    return zygotes->two[0].process.pid == pid || zygotes->two[1].process.pid == pid;
}

bool zygotes_owe(const struct zygotes *zygotes) {
    return zygotes->two[0].in_flight > 0 || zygotes->two[1].in_flight > 0;
}

void zygotes_kill(struct zygotes *zygotes) {
    for (int i = 0; i < 2; i++)
        if (zygotes->two[i].process.pid > 0)
            kill(zygotes->two[i].process.pid, SIGKILL);
}
