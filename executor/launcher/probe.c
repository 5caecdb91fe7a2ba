/* SPDX-License-Identifier: MIT */
#include "executor/launcher/probe.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/io.h"
#include "executor/landlock.h"
#include "executor/launcher/probe_attempts.h"
#include "executor/launcher/user_namespace.h"

#define LIMIT_MS 10000

#define NAMESPACES                                                                       \
    "in a container: --security-opt seccomp=PROFILE, where PROFILE is a copy "           \
    "of " VIVARIUM_SECCOMP_PROFILE                                                       \
    " (contrib/docker in the sources), and --security-opt "                              \
    "apparmor=unconfined"
#define USER_NAMESPACE                                                                   \
    NAMESPACES "; on a host: sysctl kernel.unprivileged_userns_clone=1, "                \
               "kernel.apparmor_restrict_unprivileged_userns=0, "                        \
               "user.max_user_namespaces above 0; as root: uid_base inside of "          \
               "/proc/self/uid_map"
#define CONTROLLER                                                                       \
    "systemd: Delegate=memory pids cpu in the unit, on a host with cgroup v2 alone"
#define ROOT_OF_CONTAINER                                                                \
    "start it as root, in a container without --user and --cap-drop; with --cap-drop "   \
    "ALL: --cap-add for CHOWN, DAC_OVERRIDE, FOWNER, KILL, MKNOD, SETGID, SETPCAP, "     \
    "SETUID, SYS_CHROOT"
#define KERNEL "a kernel that has it, and a container that does not refuse it"

#define IN_NAMESPACES "full, isolated"
#define IN_SLOTS      "confined, minimal"
#define EVERYWHERE    "every tier"

struct row {
    const char *name;
    const char *needed_for;
    probe_attempt *attempt; /* NULL: somebody else's */
    bool inside;            /* of a user namespace */
    const char *remedy;
};

static const struct row rows[PROBE_CONTROL_COUNT] = {
    [PROBE_USER_NAMESPACE] = {"user namespace", IN_NAMESPACES, attempt_user_namespace,
                              true, USER_NAMESPACE},
    [PROBE_MOUNT_NAMESPACE] = {"mount namespace", IN_NAMESPACES, attempt_mount_namespace,
                               true, NAMESPACES "; sysctl user.max_mnt_namespaces"},
    [PROBE_PID_NAMESPACE] = {"PID namespace", IN_NAMESPACES, attempt_pid_namespace, true,
                             NAMESPACES "; sysctl user.max_pid_namespaces"},
    [PROBE_NETWORK_NAMESPACE] = {"network namespace", IN_NAMESPACES,
                                 attempt_network_namespace, true,
                                 NAMESPACES "; sysctl user.max_net_namespaces"},
    [PROBE_IPC_NAMESPACE] = {"IPC namespace", IN_NAMESPACES, attempt_ipc_namespace, true,
                             NAMESPACES "; sysctl user.max_ipc_namespaces"},
    [PROBE_UTS_NAMESPACE] = {"UTS namespace", IN_NAMESPACES, attempt_uts_namespace, true,
                             NAMESPACES "; sysctl user.max_uts_namespaces"},
    [PROBE_CGROUP_NAMESPACE] = {"cgroup namespace", IN_NAMESPACES,
                                attempt_cgroup_namespace, true,
                                NAMESPACES "; sysctl user.max_cgroup_namespaces"},
    [PROBE_TMPFS] = {"tmpfs with limits", IN_NAMESPACES, attempt_tmpfs, true,
                     USER_NAMESPACE},
    [PROBE_READ_ONLY_BIND] = {"read-only bind mount", IN_NAMESPACES,
                              attempt_read_only_bind, true,
                              NAMESPACES "; Linux 5.12 or later"},
    [PROBE_ROOT_CHANGE] = {"change of the root", IN_NAMESPACES, attempt_root_change, true,
                           NAMESPACES},
    [PROBE_MEMORY_CONTROLLER] = {"memory controller", "full", NULL, false, CONTROLLER},
    [PROBE_PIDS_CONTROLLER] = {"pids controller", "full", NULL, false, CONTROLLER},
    [PROBE_CPU_CONTROLLER] = {"cpu controller", "full", NULL, false, CONTROLLER},
    [PROBE_CAPABILITIES] = {"capabilities of root", "confined", attempt_capabilities,
                            false, ROOT_OF_CONTAINER},
    [PROBE_CHROOT] = {"chroot", "confined", attempt_chroot, false, ROOT_OF_CONTAINER},
    [PROBE_CHANGE_OF_USER] = {"change of user", "confined", attempt_change_of_user, false,
                              ROOT_OF_CONTAINER "; slot_uid_base inside of "
                                                "/proc/self/uid_map, with two numbers "
                                                "for each of slots and two more"},
    [PROBE_BOUNDING_SET] = {"bounding set, secure bits", "confined", attempt_bounding_set,
                            false, ROOT_OF_CONTAINER},
    [PROBE_SLOT_DIRECTORY] = {"slot_directory", IN_SLOTS, attempt_slot_directory, false,
                              "make the folder above it; let it belong to the user that "
                              "starts vivarium-executor, with a mode like 0711; in a "
                              "container with --read-only: --tmpfs or a volume there"},
    [PROBE_SLOT_PROGRAMS] =
        {"programs in slot_directory", "confined", attempt_slot_programs, false,
         "a mount with exec: --tmpfs PATH:exec,dev, or a volume there"},
    [PROBE_LANDLOCK] = {"Landlock", "minimal; a second lock in the others",
                        attempt_landlock, false,
                        "Linux 5.13 or later with landlock among lsm= of its command "
                        "line"},
    [PROBE_NO_NEW_PRIVS] = {"no_new_privs", EVERYWHERE, attempt_no_new_privs, false,
                            KERNEL},
    [PROBE_NOT_DUMPABLE] = {"not dumpable", EVERYWHERE, attempt_not_dumpable, false,
                            KERNEL},
    [PROBE_RESOURCE_LIMITS] = {"resource limits", EVERYWHERE, attempt_resource_limits,
                               false, KERNEL},
    [PROBE_SECCOMP] = {"seccomp filter", EVERYWHERE, attempt_seccomp, false, KERNEL},
    [PROBE_OOM_SCORE] = {"oom_score_adj", "sessions end first when memory is out",
                         attempt_oom_score, false, "a /proc that can be written"},
    [PROBE_CHECKPOINTS] =
        {"checkpoints", "variables outlive a crash; full, isolated", attempt_checkpoints,
         false,
         "Linux 5.9 or later; a container whose runtime has no listener "
         "of its own in its filter"},
    [PROBE_WHOLE_SANDBOX] = {"a whole sandbox", IN_NAMESPACES, NULL, false,
                             NAMESPACES "; the lines of the log above"},
};

/* What a child tells of its attempt, in one message. */
struct outcome {
    enum probe_state state;
    char reason[PROBE_REASON_SIZE];
};

static void note(struct outcome *outcome, enum probe_state state, const char *reason) {
    outcome->state = state;
    snprintf(outcome->reason, sizeof outcome->reason, "%.*s", PROBE_REASON_SIZE - 1,
             reason);
}

static void note_failure(struct outcome *outcome, const struct viv_error *err) {
    note(outcome, err->code == VIV_NOT_FOUND ? PROBE_ABSENT : PROBE_REFUSED,
         err->message);
}

__attribute__((noreturn)) static void
child_main(const struct row *row, const struct settings *settings, int parent) {
    struct outcome outcome = {.state = PROBE_WORKS};
    struct viv_error err;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if ((row->inside && user_namespace_enter_outer(parent, geteuid() != 0, &err)) ||
        row->attempt(settings, &err))
        note_failure(&outcome, &err);
    io_send_message(parent, &outcome, sizeof outcome, NULL, 0, NULL);
    _exit(0);
}

/* Reads what the child says until it says how it went. A single byte asks for the map of
 * its user namespace. */
static int listen_to(pid_t child, int socket, const struct settings *settings,
                     struct outcome *outcome, struct viv_error *err) {
    viv_time deadline = viv_after_ms(LIMIT_MS);
    size_t fd_count;

    for (;;) {
        if (io_wait(socket, false, deadline, NULL))
            return viv_fail(err, VIV_TIMED_OUT, "the attempt hangs");
        ssize_t got =
            io_receive_message(socket, outcome, sizeof *outcome, NULL, 0, &fd_count, err);
        if (got == (ssize_t)sizeof *outcome)
            return 0;
        if (got != 1)
            return viv_fail(err, VIV_SYSTEM, "the attempt ended its process");
        if (user_namespace_map_outer(child, settings->uid_base, err) ||
            io_send_message(socket, outcome, 1, NULL, 0, err))
            return -1;
    }
}

static void attempt(const struct row *row, const struct settings *settings,
                    struct outcome *outcome) {
    struct viv_error err;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        note(outcome, PROBE_REFUSED, "no socket pair can be made");
        return;
    }
    CLEANUP(close_fd) int ours = pair[0];
    CLEANUP(close_fd) int theirs = pair[1];
    pid_t child = fork();
    if (child == 0) {
        close(ours);
        child_main(row, settings, theirs);
    }
    close_and_clear(&theirs);
    if (child < 0) {
        note(outcome, PROBE_REFUSED, "no process can be made");
        return;
    }
    if (listen_to(child, ours, settings, outcome, &err))
        note_failure(outcome, &err);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

void probe_set(struct probe_report *report, enum probe_row row, enum probe_state state,
               const char *reason) {
    struct probe_control *control = &report->controls[row];

    *control = (struct probe_control){
        .name = rows[row].name,
        .needed_for = rows[row].needed_for,
        .remedy = rows[row].remedy,
        .state = state,
    };
    snprintf(control->reason, sizeof control->reason, "%.*s", PROBE_REASON_SIZE - 1,
             state == PROBE_WORKS ? "" : reason);
}

void probe_set_controllers(struct probe_report *report, const struct cgroups *cgroups) {
    static const enum probe_row rows_of[CGROUP_KINDS] = {
        [CGROUP_MEMORY] = PROBE_MEMORY_CONTROLLER,
        [CGROUP_PIDS] = PROBE_PIDS_CONTROLLER,
        [CGROUP_CPU] = PROBE_CPU_CONTROLLER,
    };

    for (int kind = 0; kind < CGROUP_KINDS; kind++) {
        const struct cgroup_controller *controller = &cgroups->controllers[kind];
        probe_set(report, rows_of[kind], controller->enabled ? PROBE_WORKS : PROBE_ABSENT,
                  controller->reason);
    }
    probe_conclude(report);
}

void probe_host(const struct settings *settings, struct probe_report *report) {
    struct outcome outcome;

    *report = (struct probe_report){.landlock_abi = landlock_abi()};
    for (enum probe_row i = 0; i < PROBE_CONTROL_COUNT; i++) {
        outcome = (struct outcome){.state = PROBE_WORKS};
        if (!rows[i].attempt)
            note(&outcome, PROBE_ABSENT, "it was not asked for");
        else if (rows[i].inside && i > PROBE_USER_NAMESPACE &&
                 report->controls[PROBE_USER_NAMESPACE].state != PROBE_WORKS)
            note(&outcome, PROBE_ABSENT, "not tried without a user namespace");
        else
            attempt(&rows[i], settings, &outcome);
        probe_set(report, i, outcome.state, outcome.reason);
    }
    probe_conclude(report);
}
