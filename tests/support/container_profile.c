/* SPDX-License-Identifier: MIT */
/*
 * Runs a program under what a container engine applies to a container by default, as far
 * as it decides what a sandbox can be made of: fourteen capabilities, and a filter of
 * system calls that refuses namespaces and mounts. So a test shows what the services do
 * in a container on a machine that has no engine. To be started as root.
 *
 *     container_profile [OPTION...] PROGRAM [ARGUMENT...]
 *
 *     --user=UID         become this user and group, who has no capability
 *     --keep=CAPABILITY  one more capability; CAP_SYS_ADMIN also lifts the filter from
 *                        what it is needed for, as the profiles of engines do
 *     --drop=CAPABILITY  one less
 *     --no-seccomp       no filter
 *
 * Not applied: the namespaces of a container, the masks over its /proc, AppArmor.
 */
#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NAMESPACE_FLAGS                                                                  \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |       \
     CLONE_NEWPID | CLONE_NEWNET)
#define BIT(capability) (UINT64_C(1) << (capability))

static const struct {
    const char *name;
    int number;
    bool standard;
} capabilities[] = {
    {"CAP_CHOWN", CAP_CHOWN, true},
    {"CAP_DAC_OVERRIDE", CAP_DAC_OVERRIDE, true},
    {"CAP_FSETID", CAP_FSETID, true},
    {"CAP_FOWNER", CAP_FOWNER, true},
    {"CAP_MKNOD", CAP_MKNOD, true},
    {"CAP_NET_RAW", CAP_NET_RAW, true},
    {"CAP_SETGID", CAP_SETGID, true},
    {"CAP_SETUID", CAP_SETUID, true},
    {"CAP_SETFCAP", CAP_SETFCAP, true},
    {"CAP_SETPCAP", CAP_SETPCAP, true},
    {"CAP_NET_BIND_SERVICE", CAP_NET_BIND_SERVICE, true},
    {"CAP_SYS_CHROOT", CAP_SYS_CHROOT, true},
    {"CAP_KILL", CAP_KILL, true},
    {"CAP_AUDIT_WRITE", CAP_AUDIT_WRITE, true},
    {"CAP_SYS_ADMIN", CAP_SYS_ADMIN, false},
    {"CAP_SYS_RESOURCE", CAP_SYS_RESOURCE, false},
    {"CAP_SYS_PTRACE", CAP_SYS_PTRACE, false},
    {"CAP_NET_ADMIN", CAP_NET_ADMIN, false},
};

/* What only CAP_SYS_ADMIN is given by the profiles, and what nobody is. */
static const char *const for_administrators[] = {
    "mount",         "umount2", "unshare",         "setns",  "open_tree",
    "move_mount",    "fsopen",  "fsmount",         "fspick", "fsconfig",
    "mount_setattr", "bpf",     "perf_event_open",
};
static const char *const for_nobody[] = {
    "pivot_root",  "keyctl",         "add_key",        "request_key",
    "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
};

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static void must(bool done, const char *what) {
    if (!done) {
        fprintf(stderr, "container_profile: %s: %s\n", what, strerror(errno));
        exit(125);
    }
}

static uint64_t bit_of(const char *name) {
    for (size_t i = 0; i < COUNT_OF(capabilities); i++) {
        if (strcasecmp(capabilities[i].name, name) == 0)
            return BIT(capabilities[i].number);
    }
    fprintf(stderr, "container_profile: no capability known as %s\n", name);
    exit(125);
}

static uint64_t standard_capabilities(void) {
    uint64_t bits = 0;

    for (size_t i = 0; i < COUNT_OF(capabilities); i++) {
        if (capabilities[i].standard)
            bits |= BIT(capabilities[i].number);
    }
    return bits;
}

static void refuse(scmp_filter_ctx filter, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        int number = seccomp_syscall_resolve_name(names[i]);

        /* A name that this libseccomp does not know is of a call that it cannot
         * refuse. */
        must(number != __NR_SCMP_ERROR, names[i]);
        must(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0) == 0, names[i]);
    }
}

/* Loaded while there is CAP_SYS_ADMIN, so that it does without no_new_privs, as there. */
static void load_filter(bool administrator) {
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);

    must(filter != NULL, "seccomp_init");
    must(seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0) == 0, "seccomp_attr_set");
    refuse(filter, for_nobody, COUNT_OF(for_nobody));
    if (!administrator) {
        refuse(filter, for_administrators, COUNT_OF(for_administrators));
        /* glibc then uses clone(2), whose flags a filter can see. */
        must(seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0) == 0,
             "clone3");
        for (uint64_t flag = 1; flag <= NAMESPACE_FLAGS; flag <<= 1) {
            if (NAMESPACE_FLAGS & flag)
                must(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                                      SCMP_A0(SCMP_CMP_MASKED_EQ, flag, flag)) == 0,
                     "clone");
        }
    }
    must(seccomp_load(filter) == 0, "seccomp_load");
    seccomp_release(filter);
}

static void set_capabilities(uint64_t bits) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)bits, .permitted = (uint32_t)bits},
        {.effective = (uint32_t)(bits >> 32), .permitted = (uint32_t)(bits >> 32)},
    };

    must(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) == 0, "ambient set");
    for (int i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++) {
        if ((bits & BIT(i)) == 0)
            must(prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0, "bounding set");
    }
    must(syscall(SYS_capset, &header, data) == 0, "capset");
}

static void become(uid_t user) {
    gid_t group = user;

    must(setgroups(0, NULL) == 0, "setgroups");
    must(setresgid(group, group, group) == 0, "setresgid");
    must(setresuid(user, user, user) == 0, "setresuid");
}

static const struct option options[] = {
    {"user", required_argument, NULL, 'u'},
    {"keep", required_argument, NULL, 'k'},
    {"drop", required_argument, NULL, 'd'},
    {"no-seccomp", no_argument, NULL, 'n'},
    {NULL, 0, NULL, 0},
};

int main(int argc, char **argv) {
    uint64_t bits = standard_capabilities();
    bool filtered = true;
    uid_t user = 0;
    int signal = 0, option;

    while ((option = getopt_long(argc, argv, "+", options, NULL)) != -1) {
        if (option == 'u')
            user = (uid_t)strtoul(optarg, NULL, 10);
        else if (option == 'k')
            bits |= bit_of(optarg);
        else if (option == 'd')
            bits &= ~bit_of(optarg);
        else if (option == 'n')
            filtered = false;
        else
            return 125;
    }
    if (optind == argc) {
        fprintf(stderr, "container_profile: which program?\n");
        return 125;
    }
    must(prctl(PR_GET_PDEATHSIG, &signal) == 0, "PR_GET_PDEATHSIG");
    if (filtered)
        load_filter((bits & BIT(CAP_SYS_ADMIN)) != 0);
    set_capabilities(bits);
    if (user != 0)
        become(user);
    /* prctl(2): a change of user clears it. */
    must(prctl(PR_SET_PDEATHSIG, signal) == 0, "PR_SET_PDEATHSIG");
    execvp(argv[optind], argv + optind);
    must(false, argv[optind]);
}
