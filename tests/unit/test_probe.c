/* SPDX-License-Identifier: MIT */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "executor/launcher/probe.h"
#include "executor/seccomp/filter.h"
#include "tests/unit/child.h"

#define ROWS_IN_NAMESPACES (PROBE_ROOT_CHANGE + 1)

/* Gives `action` to one system call of this process and its children. */
static void filter_call(int number, unsigned action) {
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, action),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct seccomp_filter filter = {.instructions = instructions, .count = 4};

    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(seccomp_filter_load(&filter, NULL) == 0);
}

static void probe(struct probe_report *report) {
    struct settings settings;

    settings_init(&settings);
    REQUIRE(settings_set(&settings, "slot_directory", "/tmp/viv-probe", "test", NULL) ==
            0);
    probe_host(&settings, report);
    settings_clear(&settings);
}

static void require_state(const struct probe_report *report, enum probe_row row,
                          enum probe_state state, const char *reason) {
    const struct probe_control *control = &report->controls[row];

    if (control->state == state && strstr(control->reason, reason))
        return;
    fprintf(stderr, "%s: state %d, %s\n", control->name, control->state, control->reason);
    _exit(CHILD_FAILED);
}

static int probe_here(void *context) {
    struct probe_report report;

    (void)context;
    probe(&report);
    /* Nothing is left, and this process is as it was. */
    REQUIRE(access("/tmp/viv-probe", F_OK) != 0);
    REQUIRE(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 0);
    REQUIRE(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    for (enum probe_row i = PROBE_NO_NEW_PRIVS; i <= PROBE_SECCOMP; i++)
        require_state(&report, i, PROBE_WORKS, "");
    require_state(&report, PROBE_SLOT_DIRECTORY, PROBE_WORKS, "");
    require_state(&report, PROBE_MEMORY_CONTROLLER, PROBE_ABSENT, "");
    require_state(&report, PROBE_LANDLOCK,
                  report.landlock_abi > 0 ? PROBE_WORKS : PROBE_ABSENT, "");
    return 0;
}

static void a_host_is_probed_and_stays_as_it_was(void **state) {
    (void)state;
    in_child(probe_here, NULL);
}

static int probe_without_unshare(void *context) {
    struct probe_report report;

    (void)context;
    filter_call(SYS_unshare, SECCOMP_RET_ERRNO | EPERM);
    probe(&report);
    require_state(&report, PROBE_USER_NAMESPACE, PROBE_REFUSED,
                  "Operation not permitted");
    for (enum probe_row i = PROBE_USER_NAMESPACE + 1; i < ROWS_IN_NAMESPACES; i++)
        require_state(&report, i, PROBE_ABSENT, "not tried");
    return 0;
}

static void what_a_filter_refuses_is_refused(void **state) {
    (void)state;
    in_child(probe_without_unshare, NULL);
}

static int probe_without_chroot(void *context) {
    struct probe_report report;

    (void)context;
    filter_call(SYS_chroot, SECCOMP_RET_KILL_PROCESS);
    probe(&report);
    require_state(&report, PROBE_CHROOT, PROBE_REFUSED, "the attempt ended its process");
    require_state(&report, PROBE_SECCOMP, PROBE_WORKS, "");
    return 0;
}

static void an_attempt_may_be_the_end_of_its_process(void **state) {
    (void)state;
    in_child(probe_without_chroot, NULL);
}

/* A call that nobody answers: seccomp_unotify(2). */
static int probe_with_a_chroot_that_hangs(void *context) {
    struct sock_filter instructions[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_chroot, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {.len = 4, .filter = instructions};
    struct probe_report report;

    (void)context;
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                    SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) >= 0);
    probe(&report);
    require_state(&report, PROBE_CHROOT, PROBE_REFUSED, "the attempt hangs");
    require_state(&report, PROBE_SECCOMP, PROBE_WORKS, "");
    return 0;
}

static void an_attempt_that_hangs_is_given_up(void **state) {
    (void)state;
    in_child(probe_with_a_chroot_that_hangs, NULL);
}

static int probe_as_user(void *context) {
    struct probe_report report;

    (void)context;
    REQUIRE(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
    REQUIRE(prctl(PR_SET_DUMPABLE, 1) == 0);
    probe(&report);
    require_state(&report, PROBE_CAPABILITIES, PROBE_REFUSED, "not started as root");
    require_state(&report, PROBE_CHROOT, PROBE_REFUSED, "Operation not permitted");
    require_state(&report, PROBE_CHANGE_OF_USER, PROBE_REFUSED, "");
    require_state(&report, PROBE_SECCOMP, PROBE_WORKS, "");
    return 0;
}

static void an_ordinary_user_has_no_privilege(void **state) {
    (void)state;
    if (geteuid() != 0)
        cannot("only root can become somebody else");
    in_child(probe_as_user, NULL);
}

static int probe_unmapped_users(void *context) {
    struct probe_report report;
    struct settings settings;

    (void)context;
    child_unshare(0, 0);
    settings_init(&settings);
    probe_host(&settings, &report);
    settings_clear(&settings);
    require_state(&report, PROBE_CHANGE_OF_USER, PROBE_REFUSED, "set");
    require_state(&report, PROBE_USER_NAMESPACE, PROBE_REFUSED, "gid_map");
    return 0;
}

static void users_that_are_not_mapped_cannot_be_had(void **state) {
    (void)state;
    in_child(probe_unmapped_users, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_is_probed_and_stays_as_it_was),
        cmocka_unit_test(what_a_filter_refuses_is_refused),
        cmocka_unit_test(an_attempt_may_be_the_end_of_its_process),
        cmocka_unit_test(an_attempt_that_hangs_is_given_up),
        cmocka_unit_test(an_ordinary_user_has_no_privilege),
        cmocka_unit_test(users_that_are_not_mapped_cannot_be_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
