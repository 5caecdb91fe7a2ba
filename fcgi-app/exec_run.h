/* SPDX-License-Identifier: MIT */
/*
 * Running a checked request in its session: enters the session, sees to it that it has a
 * live sandbox, makes the call, and leaves. Decides what a lost sandbox means for the
 * session. Knows no HTTP. Any thread.
 */
#ifndef VIV_EXEC_RUN_H
#define VIV_EXEC_RUN_H

#include "fcgi-app/app.h"
#include "fcgi-app/call_result.h"
#include "fcgi-app/exec_request.h"

struct exec_run {
    struct session_visit visit;
    const struct exec_request *request;
    /* Called once the sandbox has the whole request: its bytes may be freed. */
    void (*sent)(void *context);
    void *context;

    /* What came of it. */
    struct call_result *result; /* empty; the caller's */
    bool created;
    const char *lost; /* "none", "variables", "all" */
    uint64_t execution_count;
    uint64_t sandbox; /* 0: the session has none now */
    int64_t wait_ms;  /* for the session; -1: it was not there to wait for */
    bool left;        /* its visitor was gone while it ran: it was interrupted */
};

/*
 * Returns 0 when the code ran, whatever came of it: *result is then finished and not
 * CALL_REFUSED. Fails as sessions_enter() does, or with
 *     VIV_CAPACITY        there is no room for another sandbox
 *     VIV_UNAVAILABLE     the executor, or the sandbox, cannot be reached
 *     VIV_BAD_GATEWAY     the executor is of another version
 *     VIV_RESOURCE_LIMIT  the session has no room for the files
 *     VIV_PARSING         something is in the way of a file
 *     VIV_SYSTEM          a file could not be written
 *     VIV_INTERRUPTED     somebody ended the session
 * and then nothing has run: a session that did not exist before does not exist now.
 */
int exec_run(struct app *app, struct exec_run *run, struct viv_error *err);

/* Ends a sandbox that no session has any more, unless it is 0. One that cannot be ended
 * now is found and ended later (adoption.h). */
int exec_run_end_sandbox(struct app *app, uint64_t sandbox, struct viv_error *err);

/* Writes the record of the session into the executor, unless it has another sandbox by
 * now. */
void exec_run_record(struct app *app, const char *id, uint64_t sandbox);

#endif
