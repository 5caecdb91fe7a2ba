/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "common/cleanup.h"
#include "executor/oom_score.h"
#include "tests/unit/child.h"
#include "tests/unit/scratch.h"

static int own_score(void) {
    FILE *file = fopen("/proc/self/oom_score_adj", "re");
    int score;

    REQUIRE(file);
    REQUIRE(fscanf(file, "%d", &score) == 1);
    fclose(file);
    return score;
}

static int open_proc(void) {
    int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    REQUIRE(proc >= 0);
    return proc;
}

static int raise_own(void *context) {
    int before = own_score();
    int expected = before > OOM_SCORE_OF_SESSIONS ? before : OOM_SCORE_OF_SESSIONS,
        status;

    (void)context;
    REQUIRE(oom_score_raise(open_proc(), NULL) == 0);
    REQUIRE(own_score() == expected);
    /* Children inherit it. */
    pid_t child = fork();
    if (child == 0)
        _exit(own_score() == expected ? 0 : 1);
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    return 0;
}

static int raise_higher(void *context) {
    (void)context;
    child_write("/proc/self/oom_score_adj", "750");
    REQUIRE(oom_score_raise(open_proc(), NULL) == 0);
    REQUIRE(own_score() == 750);
    return 0;
}

/* In a user namespace that has no privilege outside, as the zygote is. */
static int raise_in_a_namespace(void *context) {
    int proc = open_proc();

    (void)context;
    child_unshare(0, 0);
    REQUIRE(oom_score_raise(proc, NULL) == 0);
    REQUIRE(own_score() >= OOM_SCORE_OF_SESSIONS);
    return 0;
}

static void raises_the_process_and_its_children(void **state) {
    (void)state;
    in_child(raise_own, NULL);
}

static void lowers_nothing(void **state) {
    (void)state;
    in_child(raise_higher, NULL);
}

static void takes_no_privilege(void **state) {
    (void)state;
    in_child(raise_in_a_namespace, NULL);
}

static void reads_signs_and_writes_a_number(void **state) {
    struct scratch proc = scratch_new();
    struct viv_error err;

    (void)state;
    assert_fails(oom_score_raise(proc.fd, &err), &err, VIV_SYSTEM, "read oom_score_adj");
    put_folder(proc.fd, "self");
    put_file(proc.fd, "self/oom_score_adj", "-99\n");
    assert_int_equal(oom_score_raise(proc.fd, NULL), 0);
    assert_content(proc.fd, "self/oom_score_adj", "500\n");
    put_file(proc.fd, "self/oom_score_adj", "1000\n");
    assert_int_equal(oom_score_raise(proc.fd, NULL), 0);
    assert_content(proc.fd, "self/oom_score_adj", "1000\n");
    scratch_remove(&proc);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raises_the_process_and_its_children),
        cmocka_unit_test(lowers_nothing),
        cmocka_unit_test(takes_no_privilege),
        cmocka_unit_test(reads_signs_and_writes_a_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
