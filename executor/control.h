/* SPDX-License-Identifier: MIT */
/*
 * Messages inside the executor, over SOCK_SEQPACKET pairs: launcher and supervisor,
 * launcher and zygote. All three are of one build, so the messages are plain structures;
 * the launcher still takes a supervisor's for an attacker's.
 */
#ifndef VIV_CONTROL_H
#define VIV_CONTROL_H

#include <stdint.h>

#include "common/error.h"

/* The identity of a session inside its user namespace. */
#define SESSION_UID  1000
#define SESSION_GID  1000
#define SESSION_HOME "/home/earth"

enum control_what {
    /* launcher to supervisor */
    CONTROL_MAPPED = 1,      /* the ids are mapped: set up the sandbox */
    CONTROL_CHANNEL,         /* with one descriptor: the session channel from now on */
    CONTROL_WORKER_FAILED,   /* the zygote could not make a worker */
    CONTROL_TELL_FILES,      /* how much memory do the session's files take? */
    CONTROL_STOP_FOR_MEMORY, /* stop the worker, the host is short of memory */
    /* supervisor to launcher */
    CONTROL_SPAWN, /* a worker, please; with the SPAWN_FD_COUNT descriptors of it */
    CONTROL_READY, /* the sandbox takes calls */
    CONTROL_FILES, /* `bytes` of memory that the session's files take */
};

struct control_message {
    enum control_what what;
    uint64_t bytes; /* of CONTROL_FILES, otherwise 0 */
};

/* The namespaces of a session in the order in which a worker joins them: the user
 * namespace gives it the right to join the others. */
enum {
    NAMESPACE_USER,
    NAMESPACE_PID,
    NAMESPACE_MOUNT,
    NAMESPACE_NETWORK,
    NAMESPACE_IPC,
    NAMESPACE_UTS,
    NAMESPACE_CGROUP,
    NAMESPACE_COUNT
};

struct namespace_kind {
    const char *path; /* below /proc */
    int flag;         /* CLONE_NEW* */
};

extern const struct namespace_kind namespace_kinds[NAMESPACE_COUNT];

/* What a worker is made from: its namespaces, then its ends of the channel and
 * the pipes. */
enum { SPAWN_CHANNEL = NAMESPACE_COUNT, SPAWN_STDOUT, SPAWN_STDERR, SPAWN_FD_COUNT };

/* Launcher to zygote, with SPAWN_FD_COUNT descriptors. */
struct spawn_request {
    uint64_t sandbox;
    uint64_t address_space; /* bytes: RLIMIT_AS */
    uint64_t file_size;     /* bytes: RLIMIT_FSIZE */
    uint64_t threads;
};

/* Zygote to launcher: once with sandbox 0 when it is ready, then for each request. */
struct spawn_reply {
    uint64_t sandbox;
    int32_t failed; /* errno, or 0 */
};

#endif
