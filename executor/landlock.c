/* SPDX-License-Identifier: MIT */
#include "executor/landlock.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "executor/control.h"

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

static const struct rule worker_rules[] = {
    {"/", READ},
    {SESSION_HOME, WRITE},
    {"/tmp", WRITE},
    {"/dev/shm", WRITE},
    {"/dev/null", READ_FILE | WRITE_FILE},
    {"/dev/zero", READ_FILE | WRITE_FILE},
    {"/dev/full", READ_FILE | WRITE_FILE},
};

static const struct rule supervisor_rules[] = {{SESSION_HOME, WRITE}};

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

    if (fd < 0)
        return viv_fail(err, VIV_SYSTEM, "open %s: %m", rule->path);
    if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &beneath, 0))
        return viv_fail(err, VIV_SYSTEM, "landlock rule for %s: %m", rule->path);
    return 0;
}

/* `scopes` counts where the kernel has scopes. */
static int restrict_to(const struct rule *rules, size_t count, uint64_t scopes,
                       struct viv_error *err) {
    const int abi = landlock_abi();
    /* An older kernel takes the longer structure as long as what it does not know is
     * zero. */
    const struct ruleset_attributes attributes = {
        .handled_access_fs = known_rights(abi),
        .handled_access_net = abi >= 4 ? NET_BIND_TCP | NET_CONNECT_TCP : 0,
        .scoped = abi >= 6 ? scopes : 0,
    };

    if (abi == 0)
        return 0;
    CLEANUP(close_fd)
    int ruleset =
        (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    if (ruleset < 0)
        return viv_fail(err, VIV_SYSTEM, "landlock_create_ruleset: %m");
    for (size_t i = 0; i < count; i++)
        if (add_rule(ruleset, &rules[i], attributes.handled_access_fs, err))
            return -1;
    if (syscall(SYS_landlock_restrict_self, ruleset, 0))
        return viv_fail(err, VIV_SYSTEM, "landlock_restrict_self: %m");
    return 0;
}

int landlock_restrict_worker(struct viv_error *err) {
    return restrict_to(worker_rules, sizeof worker_rules / sizeof *worker_rules,
                       SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL, err);
}

int landlock_restrict_supervisor(struct viv_error *err) {
    /* No scope for signals: its worker is of another domain, and it must reach it. */
    return restrict_to(supervisor_rules,
                       sizeof supervisor_rules / sizeof *supervisor_rules,
                       SCOPE_ABSTRACT_UNIX_SOCKET, err);
}
