/* SPDX-License-Identifier: MIT */
/* Landlock where a session has no root of its own: nothing else is between it and the
 * files of the host and of other sessions. */
#include "tests/unit/unit.h"

#include <limits.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "common/cleanup.h"
#include "executor/confine.h"
#include "executor/landlock.h"
#include "executor/session_root.h"
#include "tests/unit/child.h"
#include "tests/unit/refuse.h"
#include "tests/unit/scratch.h"

#define NEW_FILE (O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC)
#define FOLDER   (O_RDONLY | O_DIRECTORY)

static struct scratch slots; /* with the slots `own` and `other` */

static int set_up(void **state) {
    (void)state;
    slots = scratch_new();
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "own" : "other";
        put_folder(slots.fd, name);
        CLEANUP(close_fd)
        int slot = openat(slots.fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        put_folder(slot, "home");
        put_folder(slot, "tmp");
        put_folder(slot, "shm");
        put_file(slot, "home/file", "content");
        put_file(slot, "tmp/file", "content");
        put_file(slot, "shm/file", "content");
    }
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    scratch_remove(&slots);
    return 0;
}

static void enter_home(void) {
    REQUIRE(fchdir(slots.fd) == 0 && chdir("own/home") == 0);
    REQUIRE(confine_descriptors(STDERR_FILENO + 1, NULL) == 0);
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
}

static void become_worker(void) {
    REQUIRE(landlock_restrict_worker(ISOLATION_MINIMAL, NULL) == 0);
}

static bool may_open(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC, 0600);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

static void require_refused(const char *path, int flags) {
    if (may_open(path, flags) || errno != EACCES) {
        fprintf(stderr, "%s, flags %#o\n", path, (unsigned)flags);
        REQUIRE(!"it is refused");
    }
}

/* ---- workers ---- */

static int home_and_tmp(void *context) {
    static const char *const places[] = {".", "../tmp", "../home"};
    char here[PATH_MAX];

    (void)context;
    enter_home();
    REQUIRE(getcwd(here, sizeof here));
    become_worker();
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        REQUIRE(chdir(here) == 0 && chdir(places[i]) == 0);
        REQUIRE(may_open(".", FOLDER) && may_open("file", O_RDWR | O_TRUNC));
        REQUIRE(may_open("a", NEW_FILE) && mkdir("folder", 0700) == 0);
        REQUIRE(rename("a", "folder/b") == 0 && link("folder/b", "c") == 0);
        REQUIRE(symlink("c", "d") == 0 && truncate("c", 10) == 0);
        REQUIRE(unlink("folder/b") == 0 && rmdir("folder") == 0);
        REQUIRE(unlink("c") == 0 && unlink("d") == 0);
        REQUIRE(mkfifo("fifo", 0600) == -1 && errno == EACCES);
    }
    REQUIRE(chdir(here) == 0);
    REQUIRE(rename("file", "../tmp/moved") == 0 && rename("../tmp/moved", "file") == 0);
    return 0;
}

/* Each can be opened before, so that what is refused after it is refused by Landlock. */
static int other_slots(void *context) {
    static const char *const files[] = {"../../other/home/file", "../../other/tmp/file",
                                        "../shm/file"};
    static const char *const folders[] = {
        "..", "../..", "../../other", "../../other/home", "../../other/tmp", "../shm",
    };

    (void)context;
    enter_home();
    for (size_t i = 0; i < COUNT_OF(files); i++)
        REQUIRE(may_open(files[i], O_RDWR));
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        REQUIRE(may_open(folders[i], FOLDER));
    become_worker();
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        require_refused(files[i], O_RDONLY);
        require_refused(files[i], O_WRONLY);
        REQUIRE(unlink(files[i]) == -1 && errno == EACCES);
        REQUIRE(rename(files[i], "stolen") == -1);
        REQUIRE(link(files[i], "stolen") == -1);
        /* Nor through a link of its own. */
        REQUIRE(symlink(files[i], "link") == 0);
        require_refused("link", O_RDONLY);
        REQUIRE(unlink("link") == 0);
    }
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/new", folders[i]);
        require_refused(folders[i], FOLDER);
        require_refused(name, NEW_FILE);
        REQUIRE(mkdir(name, 0700) == -1 && errno == EACCES);
        REQUIRE(rename("file", name) == -1);
    }
    REQUIRE(may_open("file", O_RDONLY));
    return 0;
}

static int host(void *context) {
    static const char *const folders[] = {"/",    "/etc",     "/proc",     "/proc/self",
                                          "/tmp", "/usr/bin", "/usr/share"};
    static const char *const files[] = {"/etc/passwd", "/etc/group", "/proc/self/status",
                                        "/proc/self/mem", "/proc/self/environ"};

    (void)context;
    enter_home();
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        REQUIRE(may_open(folders[i], FOLDER));
    for (size_t i = 0; i < COUNT_OF(files); i++)
        REQUIRE(may_open(files[i], O_RDONLY));
    become_worker();
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        require_refused(folders[i], FOLDER);
    for (size_t i = 0; i < COUNT_OF(files); i++)
        require_refused(files[i], O_RDONLY);
    require_refused("/tmp/vivarium-unit", NEW_FILE);
    REQUIRE(mkdir("/tmp/vivarium-unit", 0700) == -1 && errno == EACCES);
    execl("/bin/true", "true", NULL);
    REQUIRE(errno == EACCES);
    return 0;
}

/* Libraries, Python and what it reads. */
static int shown(void *context) {
    struct stat status[SESSION_ROOT_SHOWN];
    int there = 0;

    (void)context;
    enter_home();
    for (size_t i = 0; i < SESSION_ROOT_SHOWN; i++)
        /* Links lead to what is shown by its own name. */
        if (lstat(session_root_shown[i].path, &status[i]) || S_ISLNK(status[i].st_mode))
            status[i].st_mode = 0;
    become_worker();
    for (size_t i = 0; i < SESSION_ROOT_SHOWN; i++) {
        const char *path = session_root_shown[i].path;
        char name[128];
        if (!status[i].st_mode)
            continue;
        there++;
        if (S_ISDIR(status[i].st_mode)) {
            snprintf(name, sizeof name, "%s/vivarium-unit", path);
            REQUIRE(may_open(path, FOLDER));
            REQUIRE(!may_open(name, NEW_FILE) && mkdir(name, 0700) == -1);
        } else {
            REQUIRE(may_open(path, O_RDONLY) && !may_open(path, O_WRONLY));
        }
    }
    REQUIRE(there >= 3);
    require_refused("/usr/lib", FOLDER);
    REQUIRE(may_open("/dev/null", O_RDWR) && may_open("/dev/urandom", O_RDONLY));
    REQUIRE(!may_open("/dev/urandom", O_WRONLY) && errno == EACCES);
    return 0;
}

static int nobody_else(void *context) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    pid_t outside = getppid();

    (void)context;
    enter_home();
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(kill(outside, 0) == 0);
    become_worker();
    if (landlock_abi() >= 6)
        REQUIRE(kill(outside, 0) == -1 && errno == EPERM);
    if (landlock_abi() >= 4)
        REQUIRE(bind(fd, (struct sockaddr *)&address, sizeof address) == -1 &&
                errno == EACCES);
    return 0;
}

static void run(int (*body)(void *context)) {
    if (landlock_abi() == 0)
        cannot("this kernel has no Landlock");
    in_child(body, NULL);
}

static void a_worker_has_its_home_and_tmp(void **state) {
    (void)state;
    run(home_and_tmp);
}

static void a_worker_reaches_no_other_slot(void **state) {
    (void)state;
    run(other_slots);
}

static void a_worker_does_not_see_the_host(void **state) {
    (void)state;
    run(host);
}

static void a_worker_reads_what_a_root_would_show(void **state) {
    (void)state;
    run(shown);
}

static void a_worker_reaches_nobody_else(void **state) {
    (void)state;
    run(nobody_else);
}

/* ---- supervisors ---- */

static int supervisor(void *context) {
    static const char *const refused[] = {"../tmp/file", "../shm/file",
                                          "../../other/home/file", "/etc/passwd",
                                          "/dev/null"};
    pid_t outside = getppid();

    (void)context;
    enter_home();
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        REQUIRE(may_open(refused[i], O_RDONLY));
    REQUIRE(landlock_restrict_supervisor(ISOLATION_MINIMAL, NULL) == 0);
    REQUIRE(may_open("new", NEW_FILE) && may_open("file", O_RDONLY));
    REQUIRE(rename("new", "newer") == 0 && unlink("newer") == 0);
    REQUIRE(may_open("../tmp", FOLDER) && may_open("../shm", FOLDER));
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        if (strcmp(refused[i], "/dev/null") != 0)
            require_refused(refused[i], O_RDONLY);
    require_refused("../tmp/new", NEW_FILE);
    require_refused("/", FOLDER);
    require_refused("../..", FOLDER);
    /* Its worker is of another domain. */
    REQUIRE(kill(outside, 0) == 0);
    return 0;
}

static void a_supervisor_has_the_home_and_looks_into_the_others(void **state) {
    (void)state;
    run(supervisor);
}

/* ---- without it ---- */

static int without_landlock(void *context) {
    const int *error = context;
    struct viv_error err = {0};

    enter_home();
    REFUSE_CALLS(*error, SYS_landlock_create_ruleset);
    REQUIRE(landlock_abi() == 0);
    REQUIRE(landlock_restrict_worker(ISOLATION_MINIMAL, &err) == -1);
    REQUIRE(err.code == VIV_SYSTEM && strstr(err.message, "there is no Landlock"));
    REQUIRE(landlock_restrict_supervisor(ISOLATION_MINIMAL, &err) == -1);
    REQUIRE(err.code == VIV_SYSTEM && strstr(err.message, "there is no Landlock"));
    /* Elsewhere it is a second lock. */
    for (int tier = ISOLATION_CONFINED; tier <= ISOLATION_FULL; tier++) {
        REQUIRE(landlock_restrict_worker((enum isolation_tier)tier, NULL) == 0);
        REQUIRE(landlock_restrict_supervisor((enum isolation_tier)tier, NULL) == 0);
    }
    REQUIRE(may_open("/etc/passwd", O_RDONLY));
    return 0;
}

static void a_kernel_without_it_is_a_failure(void **state) {
    /* Not built in; not among the LSMs that are on; a container's filter. */
    int errors[] = {ENOSYS, EOPNOTSUPP, EPERM};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(errors); i++)
        in_child(without_landlock, &errors[i]);
}

/* What fails later is not passed over, in any tier. */
static int with_half_of_landlock(void *context) {
    const long *refused = context;
    struct viv_error err = {0};

    enter_home();
    REFUSE_CALLS(EPERM, *refused);
    for (int tier = ISOLATION_MINIMAL; tier <= ISOLATION_FULL; tier++) {
        REQUIRE(landlock_restrict_worker((enum isolation_tier)tier, &err) == -1);
        REQUIRE(err.code == VIV_SYSTEM && strstr(err.message, "landlock"));
        REQUIRE(landlock_restrict_supervisor((enum isolation_tier)tier, &err) == -1);
    }
    return 0;
}

static void half_of_it_is_a_failure(void **state) {
    long calls[] = {SYS_landlock_add_rule, SYS_landlock_restrict_self};

    (void)state;
    if (landlock_abi() == 0)
        cannot("this kernel has no Landlock");
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        in_child(with_half_of_landlock, &calls[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_worker_has_its_home_and_tmp),
        TEST(a_worker_reaches_no_other_slot),
        TEST(a_worker_does_not_see_the_host),
        TEST(a_worker_reads_what_a_root_would_show),
        TEST(a_worker_reaches_nobody_else),
        TEST(a_supervisor_has_the_home_and_looks_into_the_others),
        TEST(a_kernel_without_it_is_a_failure),
        TEST(half_of_it_is_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
