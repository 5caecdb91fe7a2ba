/* SPDX-License-Identifier: MIT */
/*
 * What vivarium-executor keeps for vivarium-fcgi with each sandbox, so that a session is
 * found again after vivarium-fcgi was started anew. The form is our own; the executor
 * does not read it. Clocks are CLOCK_MONOTONIC, which goes on as long as the host, and so
 * as any sandbox. Any thread.
 */
#ifndef VIV_SESSION_RECORD_H
#define VIV_SESSION_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "common/clock.h"
#include "common/error.h"
#include "common/executor_wire.h"
#include "fcgi-app/client_address.h"
#include "fcgi-app/session_id.h"

struct session_record {
    char id[SESSION_ID_MAX + 1];
    char client[CLIENT_ADDRESS_SIZE]; /* who began it */
    bool lost_all; /* variables and files were lost, and no answer has told it yet */
    int64_t created_wall_ms;
    viv_time created;
    viv_time used; /* the last call began or ended; while one runs, the record was made */
    uint64_t execution_count;
};

#define SESSION_RECORD_MAX (1 + 4 * 8 + 1 + SESSION_ID_MAX + 1 + CLIENT_ADDRESS_SIZE)

/* Writes the record into `to` and returns its size. */
size_t session_record_put(char to[SESSION_RECORD_MAX],
                          const struct session_record *record);

/* Fails with VIV_BAD_GATEWAY for anything that session_record_put() does not write. */
int session_record_get(struct slice from, struct session_record *record,
                       struct viv_error *err);

#endif
