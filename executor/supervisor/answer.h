/* SPDX-License-Identifier: MIT */
/* What a supervisor sends to the client at the end of a call: session_wire.h. */
#ifndef VIV_ANSWER_H
#define VIV_ANSWER_H

#include "executor/supervisor/call.h"
#include "executor/supervisor/client_channel.h"

struct answer {
    struct call *call;
    struct client_channel *client;
};

/* The call was not run: its files cannot be written. */
void answer_refuse(struct answer *answer);

/* The claims, if there are any, the files of the home that are new, then *done, of which
 * what the call knows is filled in here. Returns -1 when the client does not take it. */
int answer_finish(struct answer *answer, int home, struct session_done *done,
                  struct slice claims);

#endif
