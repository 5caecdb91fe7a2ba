/* SPDX-License-Identifier: MIT */
/*
 * The messages between vivarium-fcgi and vivarium-executor, over a SOCK_SEQPACKET unix
 * socket: one request a message, and one reply to each (RECORD has none). Any number of
 * requests follow each other on a connection.
 *
 *     request  u32 magic "VIVX"  u16 version  u16 operation  u64 sandbox  bytes
 *     reply    u32 magic "VIVX"  u16 version  u16 code       u64 sandbox  bytes
 *
 * A record is a small opaque text that vivarium-fcgi keeps with each of its sandboxes, so
 * that it finds its sessions again after a restart. The executor does not read it.
 */
#ifndef VIV_EXECUTOR_WIRE_H
#define VIV_EXECUTOR_WIRE_H

#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"

#define EXECUTOR_WIRE_VERSION 2
#define EXECUTOR_HEADER_SIZE  16
#define EXECUTOR_BYTES_MAX    2048 /* of a request or reply beyond its header */
#define EXECUTOR_MESSAGE_MAX  (EXECUTOR_HEADER_SIZE + EXECUTOR_BYTES_MAX)

enum executor_operation {
    /* A ready sandbox of one's own; bytes: its first record. The reply has its number and
     * one descriptor, the session channel. Fails with VIV_CAPACITY or VIV_SYSTEM. */
    EXECUTOR_ACQUIRE = 1,
    /* A new session channel for a live sandbox; the old one is closed. */
    EXECUTOR_ATTACH = 2,
    /* Replaces the record of a sandbox. No reply. */
    EXECUTOR_RECORD = 3,
    /* The record of the first sandbox with a number above the given one; sandbox 0 in the
     * reply when there is none. */
    EXECUTOR_NEXT = 4,
    /* Ends a sandbox; one that is gone already is no failure. */
    EXECUTOR_END = 5,
    /*
     * The state of the executor: lines of `key=value`, in any order; one that is empty or
     * 0 may be left out.
     *
     *     tier         of isolation, its name
     *     weaker       why it is not a better one; reasons divided by "; "
     *     landlock     version of the kernel's interface, 0 for none
     *     network      what keeps the network away: `namespace` or `seccomp`
     *     disk         what bounds the files of a session: `quota` or `watch`
     *     no_checkpoints  why the memory of sessions is not copied; absent where it is
     *     controllers  of cgroups that bound a session: memory, pids, cpu; with commas
     *     slots        how many sandboxes there can be, where tier has slots
     *     sandboxes    that sessions have
     *     ready        that wait for one
     *     reason       why it cannot start sandboxes; only while it cannot
     */
    EXECUTOR_STATUS = 6,
};

struct executor_message {
    uint16_t what;      /* enum executor_operation, or in a reply enum viv_code */
    uint64_t sandbox;   /* above 0 and growing, also over restarts of the executor */
    struct slice bytes; /* borrowed; in a reply with a code, the message */
};

/* Writes a message into `to` (EXECUTOR_MESSAGE_MAX bytes) and returns its size; bytes
 * beyond EXECUTOR_BYTES_MAX are cut. */
size_t executor_message_put(char *to, const struct executor_message *message);

/* Reads one; the bytes borrow from `from`. Fails with VIV_BAD_GATEWAY; another version of
 * the protocol is said plainly. */
int executor_message_get(struct slice from, struct executor_message *message,
                         struct viv_error *err);

#endif
