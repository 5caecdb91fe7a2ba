/* SPDX-License-Identifier: MIT */
/*
 * The channel of a session: frames between vivarium-fcgi (the client) and the supervisor
 * of the session's sandbox, one call after another.
 *
 *     client      EXEC (FILE DATA*)* RUN INTERRUPT?
 *     supervisor  REFUSED                                    nothing was written or run
 *             or  OUTPUT* RESULT? (FILE DATA* FILE_END | LEFT_OUT)* OUTPUT* DONE
 *
 * All frames of a call carry its sequence number, which the client counts up from 1 on
 * each new channel. FILE opens a file, the DATA frames after it are its content. OUTPUT
 * comes as the code writes it. RESULT holds the worker's own claims
 * (executor/worker_wire.h has their form) and is absent when the worker did not live to
 * make them. DONE is the supervisor's verdict. INTERRUPT ends the code as its deadline
 * would, though not as a time-out; it may cross the end of its call, and is then passed
 * over.
 *
 * The client takes all that a supervisor sends for an attacker's bytes; anything out of
 * order ends the sandbox. The supervisor trusts the client's numbers, not its manners.
 */
#ifndef VIV_SESSION_WIRE_H
#define VIV_SESSION_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "common/frame.h"

enum session_frame {
    SESSION_EXEC = 1, /* struct session_exec, then the code, then the standard input */
    SESSION_FILE = 2, /* the name. Both directions */
    SESSION_DATA = 3, /* bytes of the file. Both directions */
    SESSION_RUN = 4,  /* empty: put the files in place and run */
    SESSION_INTERRUPT = 5, /* empty */

    SESSION_REFUSED = 16,  /* struct session_refused */
    SESSION_OUTPUT = 17,   /* u8 stream (1 or 2), bytes */
    SESSION_RESULT = 18,   /* claims of the worker */
    SESSION_FILE_END = 19, /* struct session_file_end of the open file */
    SESSION_LEFT_OUT = 20, /* struct session_file_end, then the name */
    SESSION_DONE = 21,     /* struct session_done */
};

#define SESSION_CODE_MAX   (16U << 20)
#define SESSION_STDIN_MAX  (16U << 20)
#define SESSION_NAME_MAX   4096U
#define SESSION_DATA_MAX   (256U << 10)
#define SESSION_OUTPUT_MAX (64U << 10)
#define SESSION_CLAIMS_MAX (17U << 20) /* max_result is at most 16M */
#define SESSION_NONCE_SIZE 16

struct session_exec {
    unsigned char nonce[SESSION_NONCE_SIZE];
    uint32_t number; /* of the execution in its session, for the name <exec-N> */
    uint32_t timeout_ms;
    uint32_t grace_ms;
    uint32_t max_output; /* bytes of each stream */
    uint32_t max_result;
    uint32_t max_output_files;
    uint64_t max_file_size;
    uint64_t max_output_total; /* bytes of all files of an answer */
    uint32_t code_size;
    bool has_stdin;
    uint32_t stdin_size;
};

#define SESSION_EXEC_SIZE 65

enum session_refusal {
    SESSION_NO_ROOM = 1,     /* the files do not fit into the session */
    SESSION_IN_THE_WAY = 2,  /* what is no file, or a file in place of a folder */
    SESSION_NOT_WRITTEN = 3, /* another failure */
};

struct session_refused {
    enum session_refusal reason;
    uint32_t file; /* index in the request */
};

#define SESSION_REFUSED_SIZE 5

/* Why a file is left out of an answer. */
enum session_left_out {
    SESSION_INCLUDED = 0,
    SESSION_TOO_LARGE = 1,
    SESSION_TOO_MANY = 2,
    SESSION_TOTAL_TOO_LARGE = 3,
    SESSION_UNREADABLE = 4,
    SESSION_TOO_DEEP = 5,
    SESSION_NAME_REFUSED = 6,
    SESSION_CHANGED = 7, /* while it was read */
    SESSION_LEFT_OUT_COUNT
};

struct session_file_end {
    enum session_left_out reason;
    uint64_t size; /* as seen by the supervisor */
};

#define SESSION_FILE_END_SIZE 9

enum session_outcome {
    SESSION_RAN = 1,            /* to its end or to an exception: RESULT says which */
    SESSION_TIMED_OUT = 2,      /* at its deadline; RESULT may be there */
    SESSION_CRASHED = 3,        /* the worker died by its own doing */
    SESSION_OUT_OF_MEMORY = 4,  /* the worker was stopped for its memory */
    SESSION_BROKE_PROTOCOL = 5, /* the worker was stopped for what it sent */
    SESSION_OUT_OF_DISK = 6,    /* or for its files, where no quota bounds them */
    SESSION_INTERRUPTED =
        7, /* the worker was stopped: INTERRUPT had not ended the code */
    SESSION_OUTCOME_COUNT
};

/* Why the last checkpoint that was due was not made. */
enum session_skipped {
    SESSION_NOT_SKIPPED = 0,
    SESSION_HAS_THREADS = 1,
    SESSION_HAS_OPEN_FILES = 2,
    SESSION_HAS_SHARED_MEMORY = 3,
    SESSION_TOO_MUCH_MEMORY = 4,
    SESSION_NOT_COPIED = 5, /* the kernel has refused it */
    SESSION_SKIPPED_COUNT
};

struct session_done {
    unsigned char nonce[SESSION_NONCE_SIZE]; /* of the EXEC */
    enum session_outcome outcome;
    bool variables_lost; /* in this call, or since the last one */
    bool stdout_truncated;
    bool stderr_truncated;
    uint8_t signal; /* that ended a crashed worker, or 0 */
    uint8_t status; /* its exit status where there was no signal */
    uint32_t runtime_ms;
    uint32_t files_left_out; /* beyond those named by LEFT_OUT */
    /* Numbers of executions, whose end they mean; 0 for none. */
    uint32_t checkpoint;  /* to which a loss in this call would have gone back */
    uint32_t restored_to; /* to which the session went back, as variables_lost */
    enum session_skipped skipped;
};

#define SESSION_DONE_SIZE 39

/* At most so many LEFT_OUT frames a call; DONE has the number of the rest. */
#define SESSION_LEFT_OUT_MAX 1000

/* Caps for each direction. */
frame_cap session_cap_to_supervisor, session_cap_to_client;

/* The put functions write exactly *_SIZE bytes. The get functions check every field and
 * fail with VIV_BAD_GATEWAY; they read the fixed part at the front of the payload, and
 * *rest (which may be NULL: then there must be none) is what follows it. */
void session_exec_put(char *to, const struct session_exec *exec);
int session_exec_get(struct slice payload, struct session_exec *exec, struct slice *rest,
                     struct viv_error *err);
void session_refused_put(char *to, const struct session_refused *refused);
int session_refused_get(struct slice payload, struct session_refused *refused,
                        struct viv_error *err);
void session_file_end_put(char *to, const struct session_file_end *end);
int session_file_end_get(struct slice payload, struct session_file_end *end,
                         struct slice *rest, struct viv_error *err);
void session_done_put(char *to, const struct session_done *done);
int session_done_get(struct slice payload, struct session_done *done,
                     struct viv_error *err);

/*
 * The claims of a worker: items of u8 tag, u32 length, bytes, each tag at most once.
 * The tags are those of executor/runner.py.
 */
enum session_claim {
    CLAIM_STATUS = 1,     /* u8: 0 ran to its end, 1 an exception */
    CLAIM_VALUE = 2,      /* JSON text; absent is null */
    CLAIM_VALUE_TYPE = 3, /* text */
    CLAIM_VALUE_CUT = 4,  /* u8 1 */
    CLAIM_ERROR_TYPE = 5, /* text */
    CLAIM_ERROR_TEXT = 6, /* text */
    CLAIM_ERROR_LINE = 7, /* u32 */
    CLAIM_COUNT
};

/* Splits claims by tag: claims[tag].data is NULL where a tag is absent. The slices borrow
 * from the payload and nothing is said of their content. Fails with VIV_BAD_GATEWAY. */
int session_claims_get(struct slice payload, struct slice claims[CLAIM_COUNT],
                       struct viv_error *err);

/* Checks what each tag demands: a status; its size, where a claim has one; a type
 * where the status is an exception. Nothing is said of the texts. Fails with
 * VIV_BAD_GATEWAY. */
int session_claims_check(const struct slice claims[CLAIM_COUNT], struct viv_error *err);

#endif
