/* SPDX-License-Identifier: MIT */
/*
 * What came of one call: the raw material of its answer. It is filled from a sandbox's
 * frames, whose content is an attacker's: what is kept is bounded by the settings and
 * counted against the budget of bytes. Text is kept as it came, UTF-8 or not. Knows no
 * frames and no HTTP. One thread.
 */
#ifndef VIV_CALL_RESULT_H
#define VIV_CALL_RESULT_H

#include <stdbool.h>

#include "common/bytes.h"
#include "common/session_wire.h"
#include "common/settings.h"
#include "fcgi-app/budget.h"

enum call_end {
    CALL_DONE,    /* the supervisor gave its verdict */
    CALL_REFUSED, /* the supervisor ran nothing: see `refused` */
    CALL_OVERDUE, /* there was no verdict by the deadline */
    CALL_BROKEN,  /* the sandbox died or broke the protocol */
    CALL_ENDED,   /* nobody wants it any more: its session was ended */
};

struct call_stream {
    struct buffer text;
    bool truncated;
};

struct call_file {
    char *name; /* owned; passed filename_refusal() */
    struct buffer content;
};

struct call_left_out {
    char *name; /* owned */
    uint64_t size;
    const char *reason; /* a constant: one word of the contract */
};

struct call_result {
    enum call_end end;
    struct session_done done;       /* with CALL_DONE */
    struct session_refused refused; /* with CALL_REFUSED */
    bool interrupted;               /* INTERRUPT was sent */
    uint64_t runtime_ms;
    struct call_stream streams[2]; /* standard output, standard error */

    bool has_claims;
    bool raised;         /* the claim is an exception */
    struct buffer value; /* of the final expression; empty: none */
    bool value_is_json;  /* otherwise it is text */
    bool value_truncated;
    struct buffer value_type, error_type, error_text;
    uint32_t error_line; /* 0: none */

    struct call_file *files;
    size_t file_count;
    struct call_left_out *left_out;
    size_t left_out_count;
    uint64_t left_out_unnamed;

    struct budget_share share; /* of the bytes held here */
};

/* An empty result whose bytes are taken out of `bytes`. */
void call_result_init(struct call_result *result, struct budget *bytes);

/* Adds output of stream 0 or 1; what has no room is dropped and the stream marked as
 * truncated. */
void call_result_add_output(struct call_result *result, int stream, struct slice data);

/* Takes the claims of a worker (session_wire.h). Fails with VIV_BAD_GATEWAY when they are
 * malformed. Content that is too long is cut, and says so. */
int call_result_add_claims(struct call_result *result, struct slice payload,
                           struct viv_error *err);

/* Adds a file that is in the answer. The content is handed over on success and freed
 * otherwise; its bytes are in the share already. */
void call_result_add_file(struct call_result *result, struct slice name,
                          struct buffer *content);

/* Adds a file that is left out. */
void call_result_add_left_out(struct call_result *result, struct slice name,
                              uint64_t size, const char *reason);

/* Why a file is left out that the sandbox would have sent: too much is in flight. */
#define CALL_NO_ROOM "no_room"

/* The word for a reason of the supervisor. */
const char *call_left_out_word(enum session_left_out reason);

/* To be called once, at the end: drops characters that a cut divided, sorts files by
 * name. */
void call_result_finish(struct call_result *result);

void call_result_clear(struct call_result *result);

static inline void call_result_clear_cleanup(struct call_result *result) {
    call_result_clear(result);
}

#endif
