/* SPDX-License-Identifier: MIT */
/*
 * Messages inside the executor, over SOCK_SEQPACKET pairs: launcher and supervisor,
 * launcher and zygote. All three are of one build, so the messages are plain structures;
 * the launcher still takes a supervisor's for an attacker's.
 */
#ifndef VIV_CONTROL_H
#define VIV_CONTROL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "executor/isolation.h"

/* The identity of a session inside its user namespace. */
#define SESSION_UID  1000
#define SESSION_GID  1000
#define SESSION_HOME "/home/earth"

enum control_what {
    /* launcher to supervisor */
    CONTROL_GO = 1,  /* set up the sandbox: its ids, if it has its own, are mapped */
    CONTROL_CHANNEL, /* with one descriptor: the session channel from now on */
    CONTROL_WORKER_FAILED,   /* the zygote could not make a worker */
    CONTROL_TELL_FILES,      /* how much memory do the session's files take? */
    CONTROL_STOP_FOR_MEMORY, /* stop the worker, the host is short of memory */
    CONTROL_STOP_FOR_DISK,   /* or of disk */
    CONTROL_INTERRUPTED,     /* SIGINT is on its way, as CONTROL_INTERRUPT_WORKER asked */
    CONTROL_LOOKED,          /* the answer to CONTROL_LOOK */
    /* supervisor to launcher */
    CONTROL_SPAWN, /* a worker, please; with the descriptors of it */
    CONTROL_READY, /* the sandbox takes calls */
    CONTROL_FILES, /* `bytes` of memory, or of the disk, that the session's files take */
    CONTROL_LOOK,  /* how is the worker, from outside? */
    /* Where the worker is no child of the supervisor: */
    CONTROL_INTERRUPT_WORKER, /* SIGINT for it */
    CONTROL_END_WORKER,       /* SIGKILL for it */
};

/* What may stand in the way of a checkpoint. */
enum look_verdict {
    LOOK_CLEAN,
    LOOK_THREADS,       /* a copy would have one thread only */
    LOOK_OPEN_FILES,    /* they would be shared with the copy, with their positions */
    LOOK_SHARED_MEMORY, /* the same, with what is in it */
    LOOK_FAILED,        /* the kernel does not tell, or the worker is gone */
};

/* CONTROL_LOOK fills in all but the last two, CONTROL_LOOKED repeats it with them. */
struct control_look {
    uint32_t
        number;   /* of the question; 0: the worker is fresh, and nothing is answered */
    pid_t worker; /* in the session's PID namespace */
    pid_t copy;   /* the parked one, or 0: any other process of the session is killed */
    enum look_verdict verdict;
    uint64_t own; /* bytes of memory, beyond a fresh interpreter's */
};

struct control_message {
    enum control_what what;
    uint64_t bytes;           /* of CONTROL_FILES, otherwise 0 */
    struct control_look look; /* of CONTROL_LOOK and CONTROL_LOOKED */
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

/* The descriptors that a worker is made from: its ends of the channel and the pipes, then
 * where it is to live. */
enum {
    SPAWN_CHANNEL,
    SPAWN_STDOUT,
    SPAWN_STDERR,
    /* With namespaces: these. */
    SPAWN_NAMESPACES,
    SPAWN_FD_MAX = SPAWN_NAMESPACES + NAMESPACE_COUNT + 1,
    /* Without: from the supervisor a socket to which the launcher, whose child the worker
     * is then, sends the wait status of it; to the zygote in its place the slot's
     * folder. */
    SPAWN_REPORT = SPAWN_NAMESPACES,
    SPAWN_FOLDER = SPAWN_NAMESPACES,
    /* From the launcher to the zygote besides, where the session has a cgroup: the way
     * into it, session_cgroup.h. */
    SPAWN_CGROUP = SPAWN_FD_MAX - 1,
};

/* How many there are in a tier, SPAWN_CGROUP not counted. */
size_t spawn_fd_count(enum isolation_tier tier);

/* The capabilities, as bits 1 << CAP_..., that a zygote needs to make workers of the
 * tier: to join namespaces, or to change root and user. */
uint64_t zygote_capabilities(enum isolation_tier tier);

/* Launcher to zygote, with these descriptors. */
struct spawn_request {
    uint64_t sandbox;
    uint64_t address_space; /* bytes: RLIMIT_AS */
    uint64_t file_size;     /* bytes: RLIMIT_FSIZE */
    uint64_t threads;
    uid_t user;   /* of the worker; counts in ISOLATION_CONFINED */
    pid_t parent; /* of the worker, when the zygote has let it go */
};

/* Zygote to launcher: once with sandbox 0 when it is ready, then for each request. */
struct spawn_reply {
    uint64_t sandbox;
    int32_t failed; /* errno, or 0 */
    pid_t worker;   /* in the launcher's PID namespace */
};

#endif
