/* SPDX-License-Identifier: MIT */
/*
 * vivarium-fcgi's side of the socket to vivarium-executor (common/executor_wire.h). Knows
 * no sessions. Any thread: each operation has a connection of its own, but for records,
 * which share one.
 *
 * An executor that cannot be reached is VIV_UNAVAILABLE, at once; one that does not
 * answer in time, too. Another version of it, or an answer that is none, is
 * VIV_BAD_GATEWAY. What it refuses comes with its code and message.
 */
#ifndef VIV_EXECUTOR_CLIENT_H
#define VIV_EXECUTOR_CLIENT_H

#include <pthread.h>

#include "common/clock.h"
#include "common/executor_wire.h"

/* How long an answer may take. A sandbox that has to be made first takes some
 * milliseconds on an idle machine, and many may be asked for at once. */
#define EXECUTOR_ACQUIRE_MS 10000
#define EXECUTOR_ANSWER_MS  3000

/* Sizes of its texts, each with its end. */
#define EXECUTOR_WORD_SIZE   32
#define EXECUTOR_REASON_SIZE 256
#define EXECUTOR_WEAKER_SIZE 512

struct executor_client {
    const char *path; /* of the socket; borrowed */
    pthread_mutex_t lock;
    int record_fd; /* -1: not connected */
};

void executor_client_init(struct executor_client *client, const char *path);
void executor_client_clear(struct executor_client *client);

/* A sandbox of one's own, with its first record. *channel is the caller's; it does not
 * block. */
int executor_acquire(struct executor_client *client, struct slice record,
                     uint64_t *sandbox, int *channel, struct viv_error *err);

/* A new channel for a live sandbox. Fails with VIV_NOT_FOUND when the sandbox is gone. */
int executor_attach(struct executor_client *client, uint64_t sandbox, int *channel,
                    struct viv_error *err);

/* Ends a sandbox. One that is gone already is no failure. */
int executor_end(struct executor_client *client, uint64_t sandbox, struct viv_error *err);

/* One sandbox of the executor's list. */
struct executor_entry {
    uint64_t sandbox; /* 0: there is no further one */
    char record[EXECUTOR_BYTES_MAX];
    size_t record_size;
};

/* The first sandbox with a number above `after`. */
int executor_next(struct executor_client *client, uint64_t after,
                  struct executor_entry *entry, struct viv_error *err);

/* As EXECUTOR_STATUS has it; what it does not say is "" or 0. */
struct executor_status {
    char tier[EXECUTOR_WORD_SIZE];
    char network[EXECUTOR_WORD_SIZE];
    char disk[EXECUTOR_WORD_SIZE];
    char controllers[EXECUTOR_WORD_SIZE];      /* divided by "," */
    char weaker[EXECUTOR_WEAKER_SIZE];         /* divided by "; " */
    char no_checkpoints[EXECUTOR_REASON_SIZE]; /* why none are made; "" when they are */
    unsigned landlock;
    unsigned slots;
    char reason[EXECUTOR_REASON_SIZE]; /* why it cannot start sandboxes; "" when it can */
};

/* The state of the executor. Waits until `deadline`; fails as said above. Texts that are
 * too long for their place are cut; *status is the state on success only. */
int executor_status(struct executor_client *client, viv_time deadline,
                    struct executor_status *status, struct viv_error *err);

/* Writes a record into `to` and returns its size, 0 for none. */
typedef size_t executor_record_source(void *context, char to[EXECUTOR_BYTES_MAX]);

/*
 * Replaces the record of a sandbox without waiting for anything. The source is asked
 * under the lock that orders records, so that an older state never overtakes a newer one;
 * it takes no lock but leaves. A record that cannot be sent is lost; the next one makes
 * good for it.
 */
void executor_record(struct executor_client *client, uint64_t sandbox,
                     executor_record_source *source, void *context);

#endif
