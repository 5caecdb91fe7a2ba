/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sys/syscall.h>

#include "executor/zygote/fork_orphan.h"
#include "tests/unit/child.h"

static void *robust_list(void) {
    void *list = NULL;
    size_t size;

    REQUIRE(syscall(SYS_get_robust_list, 0, &list, &size) == 0);
    return list;
}

/* libc's own idea of who it is: a recursive mutex is refused to nobody but others. */
static void require_sane_libc(void) {
    pthread_mutexattr_t attributes;
    pthread_mutex_t mutex;

    REQUIRE(pthread_mutexattr_init(&attributes) == 0);
    REQUIRE(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE) == 0);
    REQUIRE(pthread_mutex_init(&mutex, &attributes) == 0);
    REQUIRE(pthread_mutex_lock(&mutex) == 0 && pthread_mutex_lock(&mutex) == 0);
    REQUIRE(mutex.__data.__owner == gettid());
    /* It takes the lock of abort(3). */
    REQUIRE(signal(SIGABRT, SIG_DFL) != SIG_ERR);
}

static int fork_one(void *context) {
    pid_t grandparent = getpid();
    void *list = robust_list();
    int status;

    (void)context;
    REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    pid_t orphan = fork_orphan();
    if (orphan == 0) {
        require_sane_libc();
        REQUIRE(robust_list() == list);
        /* A fork(2) of it is one as always. */
        pid_t child = fork();
        if (child == 0)
            _exit(getppid() == grandparent ? 1 : 0);
        REQUIRE(waitpid(child, &status, 0) == child && status == 0);
        _exit(getppid() == grandparent ? 7 : 1);
    }
    REQUIRE(orphan > 0);
    require_sane_libc();
    REQUIRE(waitpid(orphan, &status, 0) == orphan);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    return 0;
}

static void the_orphan_is_the_subreapers_and_in_order(void **state) {
    (void)state;
    assert_int_equal(child_status(fork_one, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_orphan_is_the_subreapers_and_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
