/* SPDX-License-Identifier: MIT */
/* The supervisor's filter where there is no PID namespace: the ids of other processes, of
 * other sessions among them, are those of its own. */
#include "tests/unit/unit.h"

#include "common/sanitizer.h"
#include "executor/seccomp/supervisor_filter.h"
#include "tests/unit/attempts.h"
#include "tests/unit/scratch.h"

#define NOBODY 0x7fffffff
#define NONE   ((uint64_t)-1)

static struct seccomp_filter filter;

static int build_filter(void **state) {
    (void)state;
    return supervisor_filter_build(&filter, false, NULL);
}

static int clear_filter(void **state) {
    (void)state;
    seccomp_filter_clear(&filter);
    return 0;
}

static int try_signals(void *context) {
    const uint64_t own = (uint64_t)getpid(), parent = (uint64_t)getppid();
    const struct attempt refused[] = {
        CALL(kill, EPERM, parent, 0),
        CALL(kill, EPERM, own, 0),
        CALL(kill, EPERM, NOBODY, SIGKILL),
        CALL(kill, EPERM, 0, SIGURG),
        CALL(pidfd_send_signal, EPERM, NONE, SIGINT, 0, 0),
        CALL(tgkill, EPERM, NOBODY, NOBODY, SIGABRT),
        CALL(tgkill, EPERM, parent, NOBODY, SIGABRT),
        CALL(tgkill, EPERM, own, own, 0),
        CALL(tkill, EPERM, own, 0),
        CALL(rt_sigqueueinfo, EPERM, own, 0, 0),
    };
    const struct attempt allowed[] = {CALL(tgkill, ESRCH, own, NOBODY, SIGABRT)};

    (void)context;
    seccomp_filter_set_pid(&filter, getpid());
    load_filter(&filter);
    return try_refused(&filter, refused, COUNT_OF(refused)) +
           try_all(allowed, COUNT_OF(allowed));
}

static void it_signals_itself_alone(void **state) {
    (void)state;
    in_child(try_signals, NULL);
}

static int load_and_abort(void *context) {
    (void)context;
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(supervisor_filter_load(&filter, NULL) == 0);
    REQUIRE(syscall(SYS_getppid) == -1 && errno == EPERM);
    abort();
}

/* Whoever loads it puts its id into it. */
static void it_can_abort(void **state) {
    (void)state;
    int status = child_status(load_and_abort, NULL);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static int reveal(void *context) {
    const int folder = *(int *)context;

    load_filter(&filter);
    REQUIRE(fchmodat(folder, "hidden", 0500, 0) == 0);
    int hidden = openat(folder, "hidden", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(hidden >= 0 && fchmod(hidden, 0700) == 0);
    return 0;
}

static void folders_are_made_readable(void **state) {
    struct scratch scratch = scratch_new();

    (void)state;
    assert_int_equal(mkdirat(scratch.fd, "hidden", 0), 0);
    in_child(reveal, &scratch.fd);
    scratch_remove(&scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_signals_itself_alone),
        cmocka_unit_test(it_can_abort),
        cmocka_unit_test(folders_are_made_readable),
    };

    if (BUILT_WITH_ADDRESS_SANITIZER) {
        print_message("skipped: AddressSanitizer needs other calls\n");
        return CHILD_CANNOT;
    }
    return cmocka_run_group_tests(tests, build_filter, clear_filter);
}
