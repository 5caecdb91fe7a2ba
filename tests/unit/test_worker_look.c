/* SPDX-License-Identifier: MIT */
/* The test's own process takes the place of a supervisor, its children that of
 * workers. */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <sys/mman.h>

#include "executor/launcher/worker_look.h"
#include "tests/unit/child.h"
#include "tests/unit/scratch.h"

#define OWN_MEMORY (8U << 20)
#define A_FILE     9 /* a descriptor that workers have from the start */

/* What a worker has done since it was fresh. */
enum deed {
    NOTHING,
    A_THREAD,
    AN_OPEN_FILE,
    A_CLOSED_FILE,
    SHARED_MEMORY,
    SHARED_UNTOUCHED,
    SHARED_UNREADABLE,
    SHARED_READ_ONLY,
    FILE_TO_READ,
    FILE_TO_WRITE,
    MANY_MAPPINGS,
    SIGNAL_TO_ITSELF,
    SIGNAL_TO_A_THREAD,
    OWN,
};

static void *wait_for_ever(void *context) {
    while (pause())
        ;
    return context;
}

static char *map(int kind, int rights) {
    char *made = mmap(NULL, OWN_MEMORY, rights, kind | MAP_ANONYMOUS, -1, 0);

    REQUIRE(made != MAP_FAILED);
    return made;
}

static void map_file(int rights) {
    REQUIRE(mmap(NULL, OWN_MEMORY, rights, MAP_SHARED, A_FILE, 0) != MAP_FAILED);
}

/* Each other page has other rights, so that no two of them are one mapping. */
static void map_many(void) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), count = 10000;
    char *made = mmap(NULL, count * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    REQUIRE(made != MAP_FAILED);
    for (size_t i = 0; i < count; i += 2)
        REQUIRE(mprotect(made + i * page, page, PROT_NONE) == 0);
}

/* It is blocked, and waits. */
static void send_signal(bool to_thread) {
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    REQUIRE(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
    REQUIRE((to_thread ? raise(SIGUSR1) : kill(getpid(), SIGUSR1)) == 0);
}

static void do_it(enum deed deed) {
    pthread_t thread;

    if (deed == A_THREAD)
        REQUIRE(pthread_create(&thread, NULL, wait_for_ever, NULL) == 0);
    else if (deed == AN_OPEN_FILE)
        REQUIRE(open("/dev/null", O_RDONLY) >= 0);
    else if (deed == A_CLOSED_FILE)
        REQUIRE(close(0) == 0);
    else if (deed == SHARED_MEMORY)
        memset(map(MAP_SHARED, PROT_READ | PROT_WRITE), 1, OWN_MEMORY);
    else if (deed == SHARED_UNTOUCHED)
        map(MAP_SHARED, PROT_READ | PROT_WRITE);
    else if (deed == SHARED_UNREADABLE)
        map(MAP_SHARED, PROT_NONE);
    else if (deed == SHARED_READ_ONLY)
        map(MAP_SHARED, PROT_READ);
    else if (deed == FILE_TO_READ)
        map_file(PROT_READ);
    else if (deed == FILE_TO_WRITE)
        map_file(PROT_READ | PROT_WRITE);
    else if (deed == MANY_MAPPINGS)
        map_many();
    else if (deed == SIGNAL_TO_ITSELF || deed == SIGNAL_TO_A_THREAD)
        send_signal(deed == SIGNAL_TO_A_THREAD);
    else if (deed == OWN)
        memset(map(MAP_PRIVATE, PROT_READ | PROT_WRITE), 1, OWN_MEMORY);
}

struct worker {
    pid_t pid;
    int go, done; /* pipes */
};

static struct worker start(enum deed deed) {
    int go[2], done[2];
    char byte;

    REQUIRE(pipe(go) == 0 && pipe(done) == 0);
    struct worker worker = {.pid = fork(), .go = go[1], .done = done[0]};
    REQUIRE(worker.pid >= 0);
    if (worker.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        REQUIRE(read(go[0], &byte, 1) == 1);
        do_it(deed);
        REQUIRE(write(done[1], "x", 1) == 1);
        wait_for_ever(NULL);
    }
    close(go[0]);
    close(done[1]);
    return worker;
}

static struct control_look look_at(enum deed deed) {
    const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct worker worker = start(deed);
    struct control_look look = {.number = 1, .worker = worker.pid};
    struct fresh_worker fresh;
    char byte;

    worker_look_fresh(proc, getpid(), &look, &fresh);
    REQUIRE(write(worker.go, "x", 1) == 1 && read(worker.done, &byte, 1) == 1);
    worker_look(proc, getpid(), &fresh, &look);
    kill(worker.pid, SIGKILL);
    waitpid(worker.pid, NULL, 0);
    close(proc);
    return look;
}

static int body_verdicts(void *context) {
    static const enum look_verdict verdicts[] = {
        [NOTHING] = LOOK_CLEAN,
        [A_THREAD] = LOOK_THREADS,
        [AN_OPEN_FILE] = LOOK_OPEN_FILES,
        [A_CLOSED_FILE] = LOOK_OPEN_FILES,
        [SHARED_MEMORY] = LOOK_SHARED_MEMORY,
        [SHARED_UNTOUCHED] = LOOK_SHARED_MEMORY,
        [SHARED_UNREADABLE] = LOOK_SHARED_MEMORY,
        [SHARED_READ_ONLY] = LOOK_SHARED_MEMORY,
        [FILE_TO_READ] = LOOK_CLEAN,
        [FILE_TO_WRITE] = LOOK_SHARED_MEMORY,
        [MANY_MAPPINGS] = LOOK_FAILED,
        [SIGNAL_TO_ITSELF] = LOOK_FAILED,
        [SIGNAL_TO_A_THREAD] = LOOK_FAILED,
        [OWN] = LOOK_CLEAN,
    };
    char path[] = "/tmp/vivarium-look-XXXXXX";

    (void)context;
    REQUIRE(dup2(mkstemp(path), A_FILE) == A_FILE);
    for (enum deed deed = NOTHING; deed <= OWN; deed++)
        REQUIRE(look_at(deed).verdict == verdicts[deed]);
    unlink(path);
    REQUIRE(look_at(NOTHING).own < OWN_MEMORY / 2);
    uint64_t own = look_at(OWN).own;
    REQUIRE(own >= OWN_MEMORY && own < 2 * OWN_MEMORY);
    return 0;
}

static void each_obstacle_is_seen(void **state) {
    (void)state;
    in_child(body_verdicts, NULL);
}

static int body_strangers(void *context) {
    const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct worker worker = start(NOTHING), copy = start(NOTHING),
                  stranger = start(NOTHING);
    struct control_look look = {.number = 1, .worker = worker.pid, .copy = copy.pid};
    struct fresh_worker fresh;
    int status;

    (void)context;
    worker_look_fresh(proc, getpid(), &look, &fresh);
    worker_look(proc, getpid(), &fresh, &look);
    REQUIRE(look.verdict == LOOK_CLEAN);
    REQUIRE(waitpid(stranger.pid, &status, 0) == stranger.pid);
    REQUIRE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    REQUIRE(waitpid(worker.pid, &status, WNOHANG) == 0);
    REQUIRE(waitpid(copy.pid, &status, WNOHANG) == 0);
    kill(copy.pid, SIGKILL);
    kill(worker.pid, SIGKILL);
    return 0;
}

static void a_process_too_many_is_ended(void **state) {
    (void)state;
    in_child(body_strangers, NULL);
}

static int body_gone(void *context) {
    const int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct control_look look = {.number = 1, .worker = getpid()}; /* no child of ours */
    struct fresh_worker fresh;

    (void)context;
    worker_look_fresh(proc, getpid(), &look, &fresh);
    worker_look(proc, getpid(), &fresh, &look);
    REQUIRE(look.verdict == LOOK_FAILED && look.own == 0);
    return 0;
}

static void one_that_is_gone_is_no_clean_one(void **state) {
    (void)state;
    in_child(body_gone, NULL);
}

/* A /proc of the test's own: a machine without swap shows none. */
static void memory_that_is_swapped_counts(void **state) {
    struct scratch proc = scratch_new();
    struct control_look look = {.number = 1, .worker = 2};
    struct fresh_worker fresh;
    static const char *const folders[] = {"1", "1/task", "1/task/1", "7", "7/fdinfo"};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        put_folder(proc.fd, folders[i]);
    put_file(proc.fd, "1/task/1/children", "7 ");
    put_file(proc.fd, "7/maps", "1000-2000 rw-p 00000000 00:00 0\n");
    put_file(proc.fd, "7/status",
             "Name:\tx\nNSpid:\t7\t2\nRssAnon:\t  512 kB\nVmSwap:\t    0 kB\n"
             "Threads:\t1\nSigPnd:\t0\nShdPnd:\t0\n");
    worker_look_fresh(proc.fd, 1, &look, &fresh);
    put_file(proc.fd, "7/status",
             "Name:\tx\nNSpid:\t7\t2\nRssAnon:\t  256 kB\nVmSwap:\t 1280 kB\n"
             "Threads:\t1\nSigPnd:\t0\nShdPnd:\t0\n");
    worker_look(proc.fd, 1, &fresh, &look);
    scratch_remove(&proc);
    assert_int_equal(look.verdict, LOOK_CLEAN);
    assert_int_equal(look.own, (256 + 1280 - 512) * 1024);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_obstacle_is_seen),
        cmocka_unit_test(a_process_too_many_is_ended),
        cmocka_unit_test(one_that_is_gone_is_no_clean_one),
        cmocka_unit_test(memory_that_is_swapped_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
