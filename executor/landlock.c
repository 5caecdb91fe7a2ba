/* SPDX-License-Identifier: MIT */
#include "executor/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "executor/control.h"
#include "executor/session_root.h"

/* linux/landlock.h, by the version of the interface that brought each. */
enum {
    /* 1 */
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    REMOVE_DIR = 1 << 4,
    REMOVE_FILE = 1 << 5,
    MAKE_CHAR = 1 << 6,
    MAKE_DIR = 1 << 7,
    MAKE_REG = 1 << 8,
    MAKE_SOCK = 1 << 9,
    MAKE_FIFO = 1 << 10,
    MAKE_BLOCK = 1 << 11,
    MAKE_SYM = 1 << 12,
    REFER = 1 << 13,     /* 2: link and rename between folders */
    TRUNCATE = 1 << 14,  /* 3 */
    IOCTL_DEV = 1 << 15, /* 5 */
};

#define NET_BIND_TCP               (UINT64_C(1) << 0) /* 4 */
#define NET_CONNECT_TCP            (UINT64_C(1) << 1) /* 4 */
#define SCOPE_ABSTRACT_UNIX_SOCKET (UINT64_C(1) << 0) /* 6 */
#define SCOPE_SIGNAL               (UINT64_C(1) << 1) /* 6 */

#define CREATE_RULESET_VERSION 1
#define RULE_PATH_BENEATH      1

struct ruleset_attributes {
    uint64_t handled_access_fs;
    uint64_t handled_access_net; /* 4 */
    uint64_t scoped;             /* 6 */
};

struct path_beneath {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

struct rule {
    const char *path;
    uint64_t allowed;
};

#define READ (READ_FILE | READ_DIR)
#define WRITE                                                                            \
    (READ | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG | MAKE_SYM |     \
     REFER | TRUNCATE)

/* A path that is not there has no rule: a slot may be on a file system without
 * devices. */
static const struct rule device_rules[] = {
    {"/dev/null", READ_FILE | WRITE_FILE}, {"/dev/zero", READ_FILE | WRITE_FILE},
    {"/dev/full", READ_FILE | WRITE_FILE}, {"/dev/random", READ_FILE},
    {"/dev/urandom", READ_FILE},
};

static const struct rule own_root_rules[] = {
    {"/", READ}, {SESSION_HOME, WRITE}, {"/tmp", WRITE}, {"/dev/shm", WRITE}};
static const struct rule no_root_rules[] = {{".", WRITE}, {"../tmp", WRITE}};

static const struct rule own_root_supervisor_rules[] = {
    {SESSION_HOME, WRITE}, {"/tmp", READ_DIR}, {"/dev/shm", READ_DIR}};
static const struct rule no_root_supervisor_rules[] = {
    {".", WRITE}, {"../tmp", READ_DIR}, {"../shm", READ_DIR}};

int landlock_abi(void) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);

    return version < 0 ? 0 : (int)version;
}

/* All rights on files that this version of the interface knows. */
static uint64_t known_rights(int abi) {
    uint64_t rights = (MAKE_SYM << 1) - 1;

    if (abi >= 2)
        rights |= REFER;
    if (abi >= 3)
        rights |= TRUNCATE;
    if (abi >= 5)
        rights |= IOCTL_DEV;
    return rights;
}

static int add_rule(int ruleset, const struct rule *rule, uint64_t known,
                    struct viv_error *err) {
    CLEANUP(close_fd) int fd = open(rule->path, O_PATH | O_CLOEXEC);
    struct path_beneath beneath = {.allowed_access = rule->allowed & known,
                                   .parent_fd = fd};

    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return viv_fail(err, VIV_SYSTEM, "open %s: %m", rule->path);
    struct stat status;
    /* What a folder may be granted is refused for a file. */
    if (fstat(fd, &status) == 0 && !S_ISDIR(status.st_mode))
        beneath.allowed_access &= EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
    if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &beneath, 0))
        return viv_fail(err, VIV_SYSTEM, "landlock rule for %s: %m", rule->path);
    return 0;
}

/* A ruleset without rules; -1 with *err on failure. `scopes` counts where the kernel has
 * scopes. */
static int new_ruleset(int abi, uint64_t scopes, struct viv_error *err) {
    /* An older kernel takes the longer structure as long as what it does not know is
     * zero. */
    const struct ruleset_attributes attributes = {
        .handled_access_fs = known_rights(abi),
        .handled_access_net = abi >= 4 ? NET_BIND_TCP | NET_CONNECT_TCP : 0,
        .scoped = abi >= 6 ? scopes : 0,
    };

    int ruleset =
        (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    if (ruleset < 0)
        return viv_fail(err, VIV_SYSTEM, "landlock_create_ruleset: %m");
    return ruleset;
}

static int add_rules(int ruleset, const struct rule *rules, size_t count, int abi,
                     struct viv_error *err) {
    for (size_t i = 0; i < count; i++)
        if (add_rule(ruleset, &rules[i], known_rights(abi), err))
            return -1;
    return 0;
}

#define ADD_RULES(ruleset, rules, abi, err)                                              \
    add_rules(ruleset, rules, sizeof rules / sizeof *(rules), abi, err)

/* What a root of the session's own would show. */
static int add_shown(int ruleset, int abi, struct viv_error *err) {
    for (size_t i = 0; i < SESSION_ROOT_SHOWN; i++) {
        const struct rule rule = {session_root_shown[i].path, READ};
        struct stat status;
        /* A link such as /lib would open all of /usr/lib; what is needed of it is shown
         * by its own name. */
        if (lstat(rule.path, &status) == 0 && S_ISLNK(status.st_mode))
            continue;
        if (add_rule(ruleset, &rule, known_rights(abi), err))
            return -1;
    }
    return 0;
}

static int restrict_self(int ruleset, struct viv_error *err) {
    return syscall(SYS_landlock_restrict_self, ruleset, 0)
               ? viv_fail(err, VIV_SYSTEM, "landlock_restrict_self: %m")
               : 0;
}

/* 0 where there is nothing to do, -1 where there must be. */
static int is_absent(enum isolation_tier tier, struct viv_error *err) {
    return tier == ISOLATION_MINIMAL ? viv_fail(err, VIV_SYSTEM, "there is no Landlock")
                                     : 0;
}

int landlock_restrict_worker(enum isolation_tier tier, struct viv_error *err) {
    const int abi = landlock_abi();

    if (abi == 0)
        return is_absent(tier, err);
    CLEANUP(close_fd)
    int ruleset = new_ruleset(abi, SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL, err);
    if (ruleset < 0 || ADD_RULES(ruleset, device_rules, abi, err))
        return -1;
    if (tier == ISOLATION_MINIMAL
            ? ADD_RULES(ruleset, no_root_rules, abi, err) || add_shown(ruleset, abi, err)
            : ADD_RULES(ruleset, own_root_rules, abi, err))
        return -1;
    return restrict_self(ruleset, err);
}

int landlock_restrict_supervisor(enum isolation_tier tier, struct viv_error *err) {
    const int abi = landlock_abi();

    if (abi == 0)
        return is_absent(tier, err);
    /* No scope for signals: its worker is of another domain, and it must reach it. */
    CLEANUP(close_fd)
    int ruleset = new_ruleset(abi, SCOPE_ABSTRACT_UNIX_SOCKET, err);
    if (ruleset < 0 || (tier == ISOLATION_MINIMAL
                            ? ADD_RULES(ruleset, no_root_supervisor_rules, abi, err)
                            : ADD_RULES(ruleset, own_root_supervisor_rules, abi, err)))
        return -1;
    return restrict_self(ruleset, err);
}
