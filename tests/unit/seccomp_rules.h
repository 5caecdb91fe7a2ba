/* SPDX-License-Identifier: MIT */
/* What the rules with arguments are to say, written a second time: one predicate for
 * each. */
#ifndef VIV_TESTS_SECCOMP_RULES_H
#define VIV_TESTS_SECCOMP_RULES_H

#include "tests/unit/unit.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <termios.h>

#include "executor/seccomp/worker_filter.h"
#include "tests/unit/bpf.h"

#define OWN_PID 4711
#define THREAD                                                                           \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM)

static inline bool is_one_of(uint64_t value, const uint64_t *list, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (list[i] == value)
            return true;
    return false;
}

#define IS_ONE_OF(value, ...)                                                            \
    is_one_of((value), (const uint64_t[]){__VA_ARGS__},                                  \
              COUNT_OF(((const uint64_t[]){__VA_ARGS__})))

static inline uint32_t allowed_if(bool condition) {
    return condition ? SECCOMP_RET_ALLOW : BPF_REFUSED(EPERM);
}

static inline uint32_t worker_clone(const uint64_t *a) {
    const uint64_t choice =
        CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID;

    return allowed_if((a[0] & THREAD) == THREAD && (a[0] & ~(THREAD | choice)) == 0);
}

static inline uint32_t worker_fcntl(const uint64_t *a) {
    if (IS_ONE_OF(a[1], F_SETLK, F_SETLKW))
        return BPF_REFUSED(0);
    return allowed_if(IS_ONE_OF(a[1], F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL,
                                F_SETFL, F_GETLK, F_GETPIPE_SZ));
}

static inline uint32_t worker_ioctl(const uint64_t *a) {
    return allowed_if(
        IS_ONE_OF(a[1], TCGETS, TIOCGWINSZ, FIOCLEX, FIONCLEX, FIONBIO, FIONREAD));
}

static inline uint32_t worker_madvise(const uint64_t *a) {
    if (IS_ONE_OF(a[2], MADV_DONTFORK, MADV_WIPEONFORK))
        return BPF_REFUSED(EINVAL);
    return allowed_if(a[2] <= MADV_DONTNEED || IS_ONE_OF(a[2], MADV_FREE, MADV_REMOVE) ||
                      (a[2] >= MADV_DOFORK && a[2] <= 25) || IS_ONE_OF(a[2], 102, 103));
}

static inline uint32_t worker_mmap(const uint64_t *a) {
    return a[3] & 8 ? BPF_REFUSED(EINVAL) : SECCOMP_RET_ALLOW; /* MAP_DROPPABLE */
}

static inline uint32_t worker_prlimit64(const uint64_t *a) {
    return allowed_if(a[0] == 0 && a[2] == 0);
}

static inline uint32_t worker_socketpair(const uint64_t *a) {
    const uint64_t flags = SOCK_CLOEXEC | SOCK_NONBLOCK;

    return allowed_if(a[0] == AF_UNIX && (a[1] & ~flags) == SOCK_STREAM);
}

static inline uint32_t without_address(const uint64_t *a) {
    return allowed_if(a[4] == 0);
}

static inline uint32_t worker_kill_in_namespace(const uint64_t *a) {
    return allowed_if((int32_t)a[0] > 1);
}

static inline uint32_t worker_kill_self(const uint64_t *a) {
    return allowed_if((int32_t)a[0] == OWN_PID);
}

static inline uint32_t worker_utimensat(const uint64_t *a) {
    return allowed_if(a[1] == 0);
}

static inline uint32_t with_a_name(uint64_t flags) {
    return flags & O_TMPFILE & ~O_DIRECTORY ? BPF_REFUSED(EOPNOTSUPP) : SECCOMP_RET_ALLOW;
}

static inline uint32_t worker_open(const uint64_t *a) { return with_a_name(a[1]); }

static inline uint32_t worker_openat(const uint64_t *a) { return with_a_name(a[2]); }

static inline uint32_t supervisor_fcntl(const uint64_t *a) {
    return allowed_if(IS_ONE_OF(a[1], F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_SETFD));
}

static inline uint32_t supervisor_ioctl(const uint64_t *a) {
    return allowed_if(a[1] == FIONREAD);
}

static inline uint32_t supervisor_kill(const uint64_t *a) {
    return allowed_if(a[1] == SIGKILL);
}

static inline uint32_t supervisor_pidfd_send_signal(const uint64_t *a) {
    return allowed_if(a[1] == SIGINT && a[2] == 0);
}

static inline uint32_t supervisor_tgkill(const uint64_t *a) {
    return allowed_if(a[2] == SIGABRT);
}

static inline uint32_t supervisor_tgkill_self(const uint64_t *a) {
    return allowed_if((int32_t)a[0] == OWN_PID && a[2] == SIGABRT);
}

static inline uint32_t supervisor_mmap(const uint64_t *a) {
    return allowed_if((a[2] & ~(uint64_t)(PROT_READ | PROT_WRITE)) == 0 &&
                      (a[3] & ~(uint64_t)(MAP_STACK | MAP_NORESERVE)) ==
                          (MAP_PRIVATE | MAP_ANONYMOUS));
}

static inline uint32_t supervisor_socketpair(const uint64_t *a) {
    return allowed_if(a[0] == AF_UNIX && a[1] == (SOCK_STREAM | SOCK_CLOEXEC));
}

struct rule {
    const char *name;
    uint32_t (*verdict)(const uint64_t *arguments);
};

#define WORKER_RULES                                                                     \
    {"clone", worker_clone}, {"fcntl", worker_fcntl}, {"ioctl", worker_ioctl},           \
        {"prlimit64", worker_prlimit64}, {"socketpair", worker_socketpair},              \
        {"sendto", without_address}, {"mmap", worker_mmap}, {                            \
        "madvise", worker_madvise                                                        \
    }

#define RULES_WITHOUT_NAMESPACES                                                         \
    {"kill", worker_kill_self}, {"tgkill", worker_kill_self}, {"open", worker_open}, {   \
        "openat", worker_openat                                                          \
    }

#define SUPERVISOR_RULES                                                                 \
    {"fcntl", supervisor_fcntl}, {"ioctl", supervisor_ioctl}, {"mmap", supervisor_mmap}, \
        {"socketpair", supervisor_socketpair}, {                                         \
        "sendto", without_address                                                        \
    }

/* The filters that there are, by the place that they are for. */
static const struct filter_kind {
    const char *title;
    bool supervisor;
    bool in_pid_namespace; /* a supervisor */
    struct worker_filter_options options;
    struct rule rules[14]; /* with an end */
} kinds[] = {
    {"namespaces", .options = {.kill = KILL_IN_PID_NAMESPACE},
     .rules = {WORKER_RULES,
               {"kill", worker_kill_in_namespace},
               {"tgkill", worker_kill_in_namespace}}},
    {"confined", .options = {.kill = KILL_SELF_ONLY, .refuse_preallocation = true},
     .rules = {WORKER_RULES, RULES_WITHOUT_NAMESPACES}},
    {"minimal",
     .options = {.kill = KILL_SELF_ONLY,
                 .refuse_path_modes = true,
                 .refuse_preallocation = true},
     .rules = {WORKER_RULES, RULES_WITHOUT_NAMESPACES, {"utimensat", worker_utimensat}}},
    {"supervisor", .supervisor = true, .in_pid_namespace = true,
     .rules = {SUPERVISOR_RULES,
               {"kill", supervisor_kill},
               {"pidfd_send_signal", supervisor_pidfd_send_signal},
               {"tgkill", supervisor_tgkill}}},
    {"supervisor without namespaces", .supervisor = true,
     .rules = {SUPERVISOR_RULES, {"tgkill", supervisor_tgkill_self}}},
};

static inline const struct rule *rule_of(const struct filter_kind *kind,
                                         const char *name) {
    for (const struct rule *rule = kind->rules; name && rule->name; rule++)
        if (strcmp(rule->name, name) == 0)
            return rule;
    return NULL;
}

#endif
