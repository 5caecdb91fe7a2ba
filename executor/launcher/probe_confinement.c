/* SPDX-License-Identifier: MIT */
/* Attempts as the process that was started: what needs no namespace. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "executor/confine.h"
#include "executor/landlock.h"
#include "executor/launcher/probe_attempts.h"
#include "executor/launcher/slot_folders.h"
#include "executor/launcher/slot_ids.h"
#include "executor/seccomp/filter.h"

#define ELSEWHERE "/usr" /* any folder that is not the root */

/* ---- with privilege ---- */

int attempt_capabilities(const struct settings *settings, struct viv_error *err) {
    static const struct {
        int number;
        const char *name;
    } needed[] = {{CAP_CHOWN, "CHOWN"},     {CAP_DAC_OVERRIDE, "DAC_OVERRIDE"},
                  {CAP_FOWNER, "FOWNER"},   {CAP_KILL, "KILL"},
                  {CAP_SETGID, "SETGID"},   {CAP_SETUID, "SETUID"},
                  {CAP_SETPCAP, "SETPCAP"}, {CAP_SYS_CHROOT, "SYS_CHROOT"}};
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {0};
    char missing[128] = "";

    (void)settings;
    if (geteuid() != 0)
        return viv_fail(err, VIV_SYSTEM, "it was not started as root");
    if (syscall(SYS_capget, &header, sets))
        return viv_fail(err, VIV_SYSTEM, "capget: %m");
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (sets[0].effective >> needed[i].number & 1)
            continue;
        size_t length = strlen(missing);
        snprintf(missing + length, sizeof missing - length, " %s", needed[i].name);
    }
    return *missing ? viv_fail(err, VIV_SYSTEM, "there is no%s", missing) : 0;
}

int attempt_chroot(const struct settings *settings, struct viv_error *err) {
    struct stat there, root;

    (void)settings;
    if (stat(ELSEWHERE, &there) || chroot(ELSEWHERE) || chdir("/"))
        return viv_fail(err, VIV_SYSTEM, "chroot: %m");
    if (stat("/", &root) || root.st_ino != there.st_ino || root.st_dev != there.st_dev)
        return viv_fail(err, VIV_SYSTEM, "the root did not change");
    return 0;
}

int attempt_change_of_user(const struct settings *settings, struct viv_error *err) {
    const uint32_t last = (uint32_t)settings->slots - 1;
    const uid_t group = slot_worker_uid(settings, last);
    const uid_t user = slot_supervisor_uid(settings, last); /* the highest of all */

    if (setgroups(0, NULL))
        return viv_fail(err, VIV_SYSTEM, "setgroups: %m");
    if (setresgid(group, group, group))
        return viv_fail(err, VIV_SYSTEM, "setresgid %u: %m", (unsigned)group);
    if (setresuid(user, user, user))
        return viv_fail(err, VIV_SYSTEM, "setresuid %u: %m", (unsigned)user);
    if (getuid() != user || geteuid() != user || getegid() != group)
        return viv_fail(err, VIV_SYSTEM, "the user did not change");
    return 0;
}

int attempt_bounding_set(const struct settings *settings, struct viv_error *err) {
    (void)settings;
    return confine_capabilities(0, err);
}

/* ---- files ---- */

/* What the janitor asks of the folder, but for its lock, which an executor may hold. */
static int use_folder(const char *path, struct viv_error *err) {
    char inside[256];
    struct stat status;

    if (stat(path, &status))
        return viv_fail(err, VIV_SYSTEM, "%s: %m", path);
    if (status.st_uid != geteuid() || status.st_mode & (S_IWGRP | S_IWOTH))
        return viv_fail(err, VIV_SYSTEM, "%s does not belong to the user %u alone", path,
                        (unsigned)geteuid());
    snprintf(inside, sizeof inside, "%s/.probe-%d", path, (int)getpid());
    if (mkdir(inside, 0700))
        return viv_fail(err, VIV_SYSTEM, "mkdir in %s: %m", path);
    rmdir(inside);
    return 0;
}

int attempt_slot_directory(const struct settings *settings, struct viv_error *err) {
    const char *path = settings->slot_directory;
    CLEANUP(free_ptr) char *copy = viv_xstrdup(path);
    const char *parent = dirname(copy);
    bool was_there = access(path, F_OK) == 0,
         parent_was_there = access(parent, F_OK) == 0;

    umask(022);
    if (slot_folders_make(path))
        return viv_fail(err, VIV_SYSTEM, "mkdir %s: %m", path);
    int failed = use_folder(path, err);
    if (!was_there)
        rmdir(path);
    if (!parent_was_there)
        rmdir(parent);
    return failed;
}

/* The zygote is started, and libraries are mapped, from below the folder. The mount of
 * the one above it counts where it is not there yet. */
int attempt_slot_programs(const struct settings *settings, struct viv_error *err) {
    CLEANUP(free_ptr) char *path = viv_xstrdup(settings->slot_directory);
    struct statvfs mount;

    while (statvfs(path, &mount)) {
        if (errno != ENOENT || strcmp(path, "/") == 0)
            return viv_fail(err, VIV_SYSTEM, "statvfs %s: %m", path);
        /* dirname(3) works in place. */
        const char *above = dirname(path);
        memmove(path, above, strlen(above) + 1);
    }
    if (mount.f_flag & ST_NOEXEC)
        return viv_fail(err, VIV_SYSTEM, "%s is mounted noexec", path);
    return 0;
}

/* linux/landlock.h of Debian 12 has all of this, but not landlock(7)'s wrappers. */
int attempt_landlock(const struct settings *settings, struct viv_error *err) {
    const struct {
        uint64_t handled;
    } attributes = {.handled = 1 << 3 /* LANDLOCK_ACCESS_FS_READ_DIR */};

    (void)settings;
    if (landlock_abi() == 0)
        return viv_fail(err, VIV_NOT_FOUND, "the kernel has it not, or not enabled");
    CLEANUP(close_fd)
    int ruleset =
        (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    if (ruleset < 0)
        return viv_fail(err, VIV_SYSTEM, "landlock_create_ruleset: %m");
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        syscall(SYS_landlock_restrict_self, ruleset, 0))
        return viv_fail(err, VIV_SYSTEM, "landlock_restrict_self: %m");
    CLEANUP(close_fd) int folder = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0)
        return viv_fail(err, VIV_SYSTEM, "what it forbids can be done");
    return 0;
}

/* ---- for any process ---- */

int attempt_no_new_privs(const struct settings *settings, struct viv_error *err) {
    (void)settings;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
        return viv_fail(err, VIV_SYSTEM, "prctl: %m");
    return 0;
}

int attempt_not_dumpable(const struct settings *settings, struct viv_error *err) {
    (void)settings;
    if (prctl(PR_SET_DUMPABLE, 0) || prctl(PR_GET_DUMPABLE) != 0)
        return viv_fail(err, VIV_SYSTEM, "prctl: %m");
    return 0;
}

int attempt_resource_limits(const struct settings *settings, struct viv_error *err) {
    return confine_resources(settings->session_memory, settings->session_disk,
                             settings->session_threads, err);
}

int attempt_seccomp(const struct settings *settings, struct viv_error *err) {
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | E2BIG),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct seccomp_filter filter = {.instructions = instructions,
                                          .count =
                                              sizeof instructions / sizeof *instructions};

    if (attempt_no_new_privs(settings, err) || seccomp_filter_load(&filter, err))
        return -1;
    if (syscall(SYS_getppid) != -1 || errno != E2BIG)
        return viv_fail(err, VIV_SYSTEM, "what it refuses can be called");
    return 0;
}

int attempt_oom_score(const struct settings *settings, struct viv_error *err) {
    CLEANUP(close_fd) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    (void)settings;
    if (fd < 0 || write(fd, "1000", 4) != 4)
        return viv_fail(err, VIV_SYSTEM, "write oom_score_adj: %m");
    return 0;
}
