/* SPDX-License-Identifier: MIT */
/*
 * One zygote as the launcher sees it: started, ready, asked for workers. When which one
 * is asked is said in zygotes.h. Only the launcher's one thread.
 */
#ifndef VIV_ZYGOTE_PROCESS_H
#define VIV_ZYGOTE_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/error.h"
#include "common/settings.h"
#include "executor/control.h"

/* What a zygote is started from. */
struct zygote_setup {
    const struct settings *settings;
    enum isolation_tier tier;
    int program;      /* vivarium-zygote, opened before the root was changed */
    int proc;         /* /proc of the host */
    int folder;       /* of the zygote's own files; counts in ISOLATION_MINIMAL */
    bool ordinary;    /* the executor runs as an ordinary user */
    bool checkpoints; /* executor/checkpoint.h */
};

struct zygote_process {
    const struct zygote_setup *setup;
    pid_t pid;  /* 0: there is none */
    int socket; /* SOCK_SEQPACKET to it, or -1 */
    bool ready;
    uint64_t fresh_size; /* bytes of address space of a fresh interpreter */
};

/* Starts one. The caller reaps its pid. */
int zygote_process_start(struct zygote_process *zygote, const struct zygote_setup *setup,
                         struct viv_error *err);

/* Asks for a worker of request->sandbox and ->user; the rest is filled in here. The
 * descriptors stay the caller's. */
int zygote_process_ask(struct zygote_process *zygote, struct spawn_request *request,
                       const int fds[], size_t count, struct viv_error *err);

enum zygote_message {
    ZYGOTE_SAYS_NOTHING,
    ZYGOTE_IS_READY,
    ZYGOTE_ANSWERS, /* *reply is filled */
    ZYGOTE_FAILS    /* it is gone, or must not be used */
};

/* Takes what it says now. */
enum zygote_message zygote_process_receive(struct zygote_process *zygote,
                                           struct spawn_reply *reply,
                                           struct viv_error *err);

/* Closes the socket; a zygote that lives ends by that. Its pid is still to be reaped. */
void zygote_process_close(struct zygote_process *zygote);

#endif
