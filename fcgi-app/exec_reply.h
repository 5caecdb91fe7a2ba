/* SPDX-License-Identifier: MIT */
/*
 * The body of an answer to POST /exec whose code was run. Knows no HTTP, no sessions, no
 * frames. Any thread.
 */
#ifndef VIV_EXEC_REPLY_H
#define VIV_EXEC_REPLY_H

#include "common/json_out.h"
#include "fcgi-app/call_result.h"

struct exec_reply {
    const struct call_result *result; /* finished; not CALL_REFUSED */
    uint32_t timeout_ms;              /* that the code had */
    const char *session_id;
    bool created;
    const char *lost; /* "none", "variables" or "all" */
    uint64_t execution_count;
};

/* An exchange_document: writes the body for the struct exec_reply at `context`. */
void exec_reply_write(struct json_out *out, const void *context);

/* How the execution ended, in a word for the log: "ok", "raised", "timeout", "crash",
 * "resource_limit", "interrupted". */
const char *exec_reply_outcome(const struct call_result *result);

#endif
