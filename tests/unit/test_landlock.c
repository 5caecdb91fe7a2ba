/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <netinet/in.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "executor/control.h"
#include "executor/landlock.h"
#include "tests/unit/child.h"

#define NEW_FILE (O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC)

/* Places like those of a session, in a mount namespace of the child's own. */
static void make_places(void) {
    child_unshare(CLONE_NEWUSER | CLONE_NEWNS, 0);
    REQUIRE(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
    REQUIRE(mount("test", "/home", "tmpfs", 0, NULL) == 0);
    REQUIRE(mkdir(SESSION_HOME, 0700) == 0 && mkdir("/home/other", 0700) == 0);
    REQUIRE(mount("test", "/tmp", "tmpfs", 0, NULL) == 0);
    REQUIRE(mount("test", "/dev/shm", "tmpfs", 0, NULL) == 0);
    REQUIRE(close(open("/home/other/file", NEW_FILE, 0600)) == 0);
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

static bool may_open(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* The children below try each thing once before the restriction, so that what is refused
 * after it is refused by it. */

static int worker_files(void *context) {
    (void)context;
    make_places();
    REQUIRE(may_open("/home/other/new", NEW_FILE));
    REQUIRE(mkfifo(SESSION_HOME "/fifo", 0600) == 0);
    REQUIRE(may_open("/dev/null", O_RDWR) && may_open("/dev/urandom", O_WRONLY));

    REQUIRE(landlock_restrict_worker(ISOLATION_ISOLATED, NULL) == 0);

    REQUIRE(may_open("/home/other/file", O_RDONLY));
    REQUIRE(!may_open("/home/other/file", O_WRONLY) && errno == EACCES);
    REQUIRE(!may_open("/home/other/newer", NEW_FILE) && errno == EACCES);
    REQUIRE(unlink("/home/other/file") == -1 && errno == EACCES);
    REQUIRE(mkfifo(SESSION_HOME "/fifo2", 0600) == -1 && errno == EACCES);
    REQUIRE(may_open("/dev/null", O_RDWR) && may_open("/dev/urandom", O_RDONLY));
    REQUIRE(!may_open("/dev/urandom", O_WRONLY) && errno == EACCES);
    execl("/bin/true", "true", NULL);
    REQUIRE(errno == EACCES);
    return 0;
}

static int worker_own_places(void *context) {
    static const char *const places[] = {SESSION_HOME, "/tmp", "/dev/shm"};

    (void)context;
    make_places();
    REQUIRE(landlock_restrict_worker(ISOLATION_ISOLATED, NULL) == 0);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        REQUIRE(chdir(places[i]) == 0);
        REQUIRE(may_open("a", NEW_FILE) && mkdir("folder", 0700) == 0);
        REQUIRE(rename("a", "folder/b") == 0 && link("folder/b", "c") == 0);
        REQUIRE(symlink("c", "d") == 0 && truncate("c", 10) == 0);
        REQUIRE(unlink("folder/b") == 0 && rmdir("folder") == 0);
        REQUIRE(may_open("c", O_RDWR | O_TRUNC));
    }
    return 0;
}

static int worker_reaches_nobody(void *context) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    pid_t outside = getppid();
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)context;
    REQUIRE(kill(outside, 0) == 0);
    make_places();
    REQUIRE(landlock_restrict_worker(ISOLATION_ISOLATED, NULL) == 0);
    REQUIRE(kill(getpid(), 0) == 0);
    if (landlock_abi() >= 6)
        REQUIRE(kill(outside, 0) == -1 && errno == EPERM);
    if (landlock_abi() >= 4) {
        REQUIRE(bind(fd, (struct sockaddr *)&address, sizeof address) == -1);
        REQUIRE(errno == EACCES);
    }
    return 0;
}

static int supervisor_reaches_the_home(void *context) {
    pid_t outside = getppid();

    (void)context;
    make_places();
    REQUIRE(landlock_restrict_supervisor(ISOLATION_ISOLATED, NULL) == 0);
    REQUIRE(may_open(SESSION_HOME "/a", NEW_FILE) &&
            may_open(SESSION_HOME "/a", O_RDONLY));
    REQUIRE(!may_open("/home/other/file", O_RDONLY) && errno == EACCES);
    REQUIRE(!may_open("/tmp/a", NEW_FILE) && errno == EACCES);
    /* Its worker is of another domain. */
    REQUIRE(kill(outside, 0) == 0);
    return 0;
}

static void run(int (*body)(void *context)) {
    if (landlock_abi() == 0)
        cannot("this kernel has no Landlock");
    in_child(body, NULL);
}

static void a_worker_reads_what_it_can_name_and_no_more(void **state) {
    (void)state;
    run(worker_files);
}

static void a_worker_has_its_own_places(void **state) {
    (void)state;
    run(worker_own_places);
}

static void a_worker_reaches_nobody_else(void **state) {
    (void)state;
    run(worker_reaches_nobody);
}

static void a_supervisor_reaches_the_home_alone(void **state) {
    (void)state;
    run(supervisor_reaches_the_home);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_reads_what_it_can_name_and_no_more),
        cmocka_unit_test(a_worker_has_its_own_places),
        cmocka_unit_test(a_worker_reaches_nobody_else),
        cmocka_unit_test(a_supervisor_reaches_the_home_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
