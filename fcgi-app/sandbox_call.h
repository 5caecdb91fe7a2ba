/* SPDX-License-Identifier: MIT */
/*
 * One call over the channel of a session, as session_wire.h has it: the request is sent,
 * then the frames are taken until the verdict. The other end is taken for hostile: order,
 * sequence, sizes, counts and the nonce are checked, and anything odd is the end of that
 * sandbox, whose caller ends it. Knows no HTTP and no sessions. One thread a channel.
 *
 * No wait here is longer than its deadline. The ladder, from the inside out; the read
 * timeout of the web server (www-conf/lighttpd-location.conf, nginx-location.conf.in) is
 * above its sum with the defaults, 362 s:
 *
 *     max_queue_wait          30 s    waiting for the session
 *     EXECUTOR_ACQUIRE_MS     10 s    a sandbox
 *     SANDBOX_SEND_MS         10 s    the request is taken
 *     max_exec_timeout       300 s    the code runs
 *     interrupt_grace          2 s    it was interrupted and has not ended
 *     SANDBOX_COLLECT_MS      10 s    a worker is made anew, files are collected and sent
 *
 * A call that is interrupted before its time has the last two from then on. The first one
 * after vivarium-fcgi was started anew has them twice more, before it is taken and before
 * its code runs: a call of before may have to end first.
 */
#ifndef VIV_SANDBOX_CALL_H
#define VIV_SANDBOX_CALL_H

#include "common/clock.h"
#include "common/session_wire.h"
#include "common/settings.h"
#include "fcgi-app/call_result.h"
#include "fcgi-app/exec_request.h"

#define SANDBOX_SEND_MS    10000
#define SANDBOX_COLLECT_MS 10000
#define SANDBOX_ASK_MS     500

/* An answer's files may have this many times max_file_size in all. */
#define SANDBOX_TOTAL_FILES 10

/* What is wanted of a call whose code runs. */
enum sandbox_wish {
    SANDBOX_GO_ON,
    SANDBOX_INTERRUPT, /* the code ends: by an interrupt, or after its grace by a kill */
    SANDBOX_GIVE_UP,   /* the sandbox is being ended */
};

struct sandbox_call {
    const struct settings *settings;
    int channel;                             /* borrowed, does not block */
    uint32_t sequence;                       /* of this call on this channel, from 1 */
    uint64_t number;                         /* of the execution in its session */
    uint32_t timeout_ms;                     /* of the code */
    int64_t before_ms;                       /* until a call of before has ended */
    unsigned char nonce[SESSION_NONCE_SIZE]; /* set by sandbox_call_send() */
    /* Asked when `bell`, an eventfd(2) that does not block, was rung, and every
     * SANDBOX_ASK_MS; NULL: never. */
    enum sandbox_wish (*wish)(void *context);
    int bell; /* borrowed; -1: none */
    void *context;
};

/* Whether nothing lies in the channel and its other end is there: what arrives between
 * calls is not ours, and a sandbox that sends it is not to be used. */
bool sandbox_channel_is_clean(int channel);

/*
 * Sends the request, files decoded as they are sent, and the word to run it. Nothing
 * has run when it fails: with VIV_BAD_GATEWAY when the sandbox is gone, with
 * VIV_TIMED_OUT when it does not take the request. The request may be freed afterwards.
 */
int sandbox_call_send(struct sandbox_call *call, const struct exec_request *request,
                      struct viv_error *err);

/*
 * Takes frames until the verdict or the deadline and fills `result`, all but its budget,
 * which was set before. With CALL_OVERDUE, CALL_BROKEN and CALL_ENDED the sandbox must be
 * ended; *err then has the reason, for the log. With CALL_DONE and CALL_REFUSED the
 * channel is ready for the next call.
 */
void sandbox_call_receive(struct sandbox_call *call, struct call_result *result,
                          struct viv_error *err);

#endif
