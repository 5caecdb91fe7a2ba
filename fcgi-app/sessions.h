/* SPDX-License-Identifier: MIT */
/*
 * The sessions that there are, and who may use which when. A call enters a session, has
 * it for itself, and leaves it; calls that find it taken wait in its queue and get it in
 * the order in which they came. Sessions that nobody used for a while expire. Knows no
 * HTTP, no sandboxes but by number, and does no I/O.
 *
 *     (new) ──► STARTING ──► BUSY ⇄ IDLE ──► expired
 *
 * STARTING is a session whose first execution has not begun: it is not listed, and it
 * ceases to exist when the call that made it leaves without running anything. Its sandbox
 * may be lost in any state; a session without one gets another at its next call.
 *
 * A session that is ended while a call has it is out of the table at once; that call
 * frees it when it leaves.
 *
 * One mutex over the table; it is a leaf and never held over I/O (a bell is rung under
 * it: that wakes, and waits for nothing). All functions may be called from any thread;
 * struct session belongs to the call that entered it.
 */
#ifndef VIV_SESSIONS_H
#define VIV_SESSIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/clock.h"
#include "common/error.h"
#include "fcgi-app/session_record.h"

struct sessions;

struct session_limits {
    uint64_t max_sessions;
    uint64_t max_sessions_per_client; /* 0: off */
    uint64_t max_queued;              /* calls that wait in one session */
    uint64_t max_queue_wait;          /* ms */
    uint64_t idle_timeout;            /* ms */
};

/* What others want of the call that has a session. */
enum session_wish {
    WISH_NONE,
    WISH_INTERRUPT, /* that its code ends */
    WISH_END        /* that it leaves: the session is gone */
};

enum session_loss { SESSION_LOST_NONE, SESSION_LOST_VARIABLES, SESSION_LOST_ALL };

/* What the call that has the session knows of it. */
struct session {
    /* Written by the functions below only. */
    char id[SESSION_ID_MAX + 1];
    uint64_t execution_count; /* the one under way included */
    uint64_t sandbox;         /* 0: none */
    enum session_loss lost;   /* and no answer has told it yet */
    /* The call's own. */
    int channel;       /* to the sandbox; -1: none is open */
    uint32_t sequence; /* of the last call over this channel */
};

struct sessions *sessions_new(const struct session_limits *limits);

/* Frees all of it, and closes the channels. Nobody has a session or waits. NULL is
 * allowed. */
void sessions_free(struct sessions *sessions);

/* A call that wants in. */
struct session_visit {
    const char *id;
    const char *client; /* address */
    /* Asked now and then while waiting; true ends the wait. NULL: never. */
    bool (*gone)(void *context);
    void *context;
};

/*
 * Takes the session of that id for the caller, who leaves it again: a new one where there
 * is none. Waits up to max_queue_wait while others have it. Fails with
 *
 *     VIV_CAPACITY     there is no room for another session, of this client or at all
 *     VIV_BUSY         too many calls wait already, or it waited its time
 *     VIV_UNAVAILABLE  the caller is gone, or the service stops
 *     VIV_INTERRUPTED  the session was ended while the caller waited for it
 */
struct session *sessions_enter(struct sessions *sessions,
                               const struct session_visit *visit, struct viv_error *err);

/* Gives the caller's session another sandbox and channel, 0 and -1 for none. The channel
 * that it had is closed; the sandbox that it had is the caller's to end. */
void sessions_set_sandbox(struct sessions *sessions, struct session *session,
                          uint64_t sandbox, int channel);

/* Notes that the caller's session has lost that, or that an answer will tell what it has
 * lost (SESSION_LOST_NONE). */
void sessions_set_lost(struct sessions *sessions, struct session *session,
                       enum session_loss lost);

/* Counts an execution in the caller's session as begun, or as not begun after all. */
void sessions_begin_execution(struct sessions *sessions, struct session *session);
void sessions_revoke_execution(struct sessions *sessions, struct session *session);

/* Rings `bell`, an eventfd(2), when somebody wants something of the caller's call, and at
 * once when somebody does already; -1: no more. */
void sessions_set_bell(struct sessions *sessions, struct session *session, int bell);

/* What is wanted of the caller's call. */
enum session_wish sessions_wish(struct sessions *sessions, const struct session *session);

/* The caller's session for its sandbox's record. */
void sessions_describe(struct sessions *sessions, const struct session *session,
                       struct session_record *record);

/* Gives the session to the call that has waited longest, or sets it idle. Returns the
 * sandbox that the caller must end because the session ceased to exist, or 0. */
uint64_t sessions_leave(struct sessions *sessions, struct session *session);

/* Wants the code of the call that has the session to end, and no other. *running: there
 * is such a call. Fails with VIV_NOT_FOUND when there is no session of that id. */
int sessions_interrupt(struct sessions *sessions, const char *id, bool *running,
                       struct viv_error *err);

/*
 * Ends a session: there is none of that id any more, and the next one to enter begins
 * another. Whoever waits for it gets VIV_INTERRUPTED; the call that has it, if there is
 * one (*running), is wanted to leave. *sandbox is the caller's to end, as it is that
 * call's, which may get another one meanwhile; 0: none. Fails with VIV_NOT_FOUND.
 */
int sessions_end(struct sessions *sessions, const char *id, uint64_t *sandbox,
                 bool *running, struct viv_error *err);

/* The record of the session that has this id and sandbox now; false when there
 * is none. */
bool sessions_record(struct sessions *sessions, const char *id, uint64_t sandbox,
                     struct session_record *record);

/* Takes a session over from before. One of that id that was taken over already gives
 * way if it was not used later, and not by a call here; its sandbox is then one without a
 * session. Otherwise this fails with VIV_BUSY. */
int sessions_adopt(struct sessions *sessions, const struct session_record *record,
                   uint64_t sandbox, struct viv_error *err);

/* Whether a session has this sandbox. */
bool sessions_have_sandbox(struct sessions *sessions, uint64_t sandbox);

/* Removes up to `room` sessions that have been idle for too long and writes their
 * sandboxes, which the caller ends. Returns how many were removed; a 0 in place of a
 * sandbox is none. */
size_t sessions_expire(struct sessions *sessions, viv_time now, uint64_t *sandboxes,
                       size_t room);

/* One session in the list. */
struct session_line {
    char id[SESSION_ID_MAX + 1];
    int64_t created_wall_ms, used_wall_ms;
    uint64_t sandbox; /* 0: none */
    viv_time age, idle;
    bool busy;
    uint64_t execution_count;
};

/* The sessions that have begun an execution, in the order of their creation. Returns
 * their number; *lines is the caller's to free. Touches none. */
size_t sessions_list(struct sessions *sessions, struct session_line **lines);

/* Their number. */
size_t sessions_count(struct sessions *sessions);

/* From now on nobody enters: those who wait get VIV_UNAVAILABLE, at once. */
void sessions_stop(struct sessions *sessions);

#endif
