/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "executor/launcher/slot_ids.h"
#include "tests/unit/janitor_client.h"

#define STRANGER (other_users + 50)

static const char *const writable[] = {"home/earth", "tmp", "dev/shm"};

/* A folder for slots, with what passes for trees in it: a real one is only made when a
 * test wants it. */
static struct scratch slots_new(void) {
    static const char *const folders[] = {"",      "/dev",        "/dev/shm", "/etc",
                                          "/home", "/home/earth", "/tmp"};
    static const char *const trees[] = {"0", "1", "zygote"};
    struct scratch slots = {.path = "/var/tmp/viv-unit-XXXXXX"};
    char path[64];

    if (geteuid() != 0)
        cannot("only root may become somebody else");
    umask(022);
    assert_non_null(mkdtemp(slots.path));
    assert_int_equal(chmod(slots.path, 0711), 0);
    slots.fd = open(slots.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; i < COUNT_OF(trees); i++)
        for (size_t k = 0; k < COUNT_OF(folders); k++) {
            snprintf(path, sizeof path, "%s%s", trees[i], folders[k]);
            put_folder(slots.fd, path);
        }
    return slots;
}

static int leave_things(int folder, uid_t user) {
    REQUIRE(setresgid(user, user, user) == 0 && setresuid(user, user, user) == 0);
    for (size_t i = 0; i < COUNT_OF(writable); i++) {
        REQUIRE(fchdir(folder) == 0 && chdir(writable[i]) == 0);
        REQUIRE(mkdir("locked", 0700) == 0 && mkdir("locked/in", 0700) == 0);
        REQUIRE(symlink("/", "link") == 0 && chmod("locked", 0) == 0);
        REQUIRE(chmod(".", 0) == 0);
    }
    return 0;
}

/* A process of that user, which leaves things and stays, or ends. */
static pid_t start_session(int folder, uid_t user, bool stays) {
    int ready[2];
    char byte;

    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        REQUIRE(leave_things(folder, user) == 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        REQUIRE(write(ready[1], "", 1) == 1);
        for (;;) {
            if (!stays)
                _exit(0);
            pause();
        }
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void a_slot_belongs_to_its_user(void **state) {
    struct scratch slots = slots_new();
    struct janitor janitor;
    char entry[128];

    (void)state;
    start(&janitor, ISOLATION_CONFINED, slots.path);
    int folder = prepared(&janitor, 1);
    assert_fresh(folder, writable, slot_worker_uid(&janitor.settings, 1));
    snprintf(entry, sizeof entry, "earth:x:%u:%u::/home/earth:/nonexistent\n",
             other_users + 4, other_users + 4);
    assert_content(folder, "etc/passwd", entry);
    int zygote = prepared(&janitor, JANITOR_ZYGOTE);
    assert_fresh(zygote, writable, slot_zygote_uid(&janitor.settings));
    close(folder);
    close(zygote);
    assert_int_equal(stop(&janitor), 0);
    scratch_remove(&slots);
}

static void what_a_session_left_goes_and_no_other_ones(void **state) {
    struct scratch slots = slots_new();
    struct janitor janitor;
    int status;

    (void)state;
    start(&janitor, ISOLATION_CONFINED, slots.path);
    int first = prepared(&janitor, 0), second = prepared(&janitor, 1);
    pid_t leaves = start_session(first, slot_worker_uid(&janitor.settings, 0), true);
    pid_t stays = start_session(second, slot_worker_uid(&janitor.settings, 1), true);
    int again = prepared(&janitor, 0);
    assert_fresh(again, writable, slot_worker_uid(&janitor.settings, 0));
    assert_int_equal(waitpid(leaves, &status, 0), leaves);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(waitpid(stays, &status, WNOHANG), 0);
    assert_true(is_there(second, "home/earth/locked/in"));
    kill(stays, SIGKILL);
    waitpid(stays, NULL, 0);
    close(first);
    close(second);
    close(again);
    assert_int_equal(stop(&janitor), 0);
    scratch_remove(&slots);
}

/* slot_uid_base was another one. */
static void what_an_earlier_user_left_goes(void **state) {
    struct scratch slots = slots_new();
    struct janitor janitor;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(writable); i++) {
        char path[64];
        snprintf(path, sizeof path, "0/%s", writable[i]);
        assert_int_equal(fchownat(slots.fd, path, STRANGER, STRANGER, 0), 0);
    }
    CLEANUP(close_fd) int tree = openat(slots.fd, "0", O_PATH | O_CLOEXEC);
    pid_t session = start_session(tree, STRANGER, false);
    assert_int_equal(waitpid(session, NULL, 0), session);
    start(&janitor, ISOLATION_CONFINED, slots.path);
    int folder = prepared(&janitor, 0);
    assert_fresh(folder, writable, slot_worker_uid(&janitor.settings, 0));
    close(folder);
    assert_int_equal(stop(&janitor), 0);
    scratch_remove(&slots);
}

static void a_failure_is_an_answer(void **state) {
    struct scratch slots = slots_new();
    struct janitor janitor;
    struct janitor_reply reply;

    (void)state;
    put_file(slots.fd, "0/home/earth/roots", "");
    start(&janitor, ISOLATION_CONFINED, slots.path);
    ask(&janitor, 4);
    ask(&janitor, 0);
    ask(&janitor, 1);
    assert_int_equal(answered(&janitor, 4, &reply), -1);
    assert_string_equal(reply.reason, "there is no slot 4");
    assert_int_equal(answered(&janitor, 0, &reply), -1);
    assert_string_equal(reply.reason, "remove home/earth: Directory not empty");
    int folder = answered(&janitor, 1, &reply);
    assert_true(folder >= 0);
    close(folder);
    assert_int_equal(stop(&janitor), 0);
    scratch_remove(&slots);
}

/* The real thing: after a change of the host's packages. */
static void outdated_trees_are_made_anew(void **state) {
    struct scratch slots = slots_new();
    struct janitor janitor;
    struct stat status, host;

    (void)state;
    assert_int_equal(fstat(slots.fd, &status) | stat("/usr/lib", &host), 0);
    if (status.st_dev != host.st_dev) {
        scratch_remove(&slots);
        cannot("/var/tmp is on another file system than /usr");
    }
    put_file(slots.fd, "made-for", "another host\n");
    put_folder(slots.fd, "base");
    put_file(slots.fd, "base/old", "");
    put_file(slots.fd, "0/old", "");
    put_file(slots.fd, "0/tmp/file", "");
    assert_int_equal(fchownat(slots.fd, "0/tmp", STRANGER, STRANGER, 0), 0);
    start(&janitor, ISOLATION_CONFINED, slots.path);
    int folder = prepared(&janitor, 0);
    assert_fresh(folder, writable, slot_worker_uid(&janitor.settings, 0));
    assert_false(is_there(folder, "old"));
    assert_content(folder, "etc/hosts", "127.0.0.1 localhost\n");
    assert_false(is_there(slots.fd, "base/old") || is_there(slots.fd, "zygote"));
    close(folder);
    assert_int_equal(stop(&janitor), 0);
    scratch_remove(&slots);
}

static uint64_t capabilities_of(pid_t pid) {
    char path[64], line[256];
    uint64_t found = UINT64_MAX;

    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "CapPrm:", 7) == 0)
            found = strtoull(line + 7, NULL, 16);
    fclose(file);
    return found;
}

static int descriptors_of(pid_t pid) {
    char path[64];
    int count = -2; /* . and .. */

    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *stream = opendir(path);
    assert_non_null(stream);
    while (readdir(stream))
        count++;
    closedir(stream);
    return count;
}

static void it_keeps_no_more_than_it_needs(void **state) {
    struct scratch slots = slots_new();
    struct janitor janitor;
    const uint64_t needed = 1 << 0 | 1 << 1 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 27;
    CLEANUP(close_fd) int secret = open("/dev/null", O_RDONLY | O_CLOEXEC);

    (void)state;
    assert_true(secret >= 0);
    start(&janitor, ISOLATION_CONFINED, slots.path);
    close(prepared(&janitor, 0));
    close(prepared(&janitor, 1));
    assert_int_equal(capabilities_of(janitor.pid) & ~needed, 0);
    /* The standard ones, its socket, slot_directory; that of an answer for a moment. */
    viv_time deadline = viv_after_ms(PATIENCE);
    while (descriptors_of(janitor.pid) != 5 && viv_now() < deadline)
        sched_yield();
    assert_int_equal(descriptors_of(janitor.pid), 5);
    assert_int_equal(stop(&janitor), 0);
    scratch_remove(&slots);
}

static void an_open_folder_of_slots_is_refused(void **state) {
    struct scratch slots = slots_new();
    struct janitor janitor;
    char byte;

    (void)state;
    assert_int_equal(chmod(slots.path, 0777), 0);
    start(&janitor, ISOLATION_CONFINED, slots.path);
    assert_int_equal(recv(janitor.socket, &byte, 1, 0), 0);
    int status = stop(&janitor);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_FAILURE);
    scratch_remove(&slots);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_belongs_to_its_user),
        cmocka_unit_test(what_a_session_left_goes_and_no_other_ones),
        cmocka_unit_test(what_an_earlier_user_left_goes),
        cmocka_unit_test(a_failure_is_an_answer),
        cmocka_unit_test(outdated_trees_are_made_anew),
        cmocka_unit_test(it_keeps_no_more_than_it_needs),
        cmocka_unit_test(an_open_folder_of_slots_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
