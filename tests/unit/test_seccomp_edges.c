/* SPDX-License-Identifier: MIT */
/* The edges of the workers' filter: sockets, numbers that nobody knows, foreign ABIs. */
#include "tests/unit/unit.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "executor/seccomp/worker_filter.h"
#include "tests/unit/attempts.h"

static const struct worker_filter_options options = {.kill = KILL_IN_PID_NAMESPACE};
static struct seccomp_filter filter;

static int build_filter(void **state) {
    (void)state;
    return worker_filter_build(&filter, &options, NULL);
}

static int clear_filter(void **state) {
    (void)state;
    seccomp_filter_clear(&filter);
    return 0;
}

static int try_sockets(void *context) {
    static const int families[] = {AF_UNIX,   AF_INET, AF_INET6, AF_NETLINK,
                                   AF_PACKET, AF_ALG,  AF_VSOCK};

    (void)context;
    load_filter(&filter);
    for (size_t i = 0; i < COUNT_OF(families); i++) {
        REQUIRE(socket(families[i], SOCK_STREAM, 0) == -1 && errno == EPERM);
        REQUIRE(socket(families[i], SOCK_RAW | SOCK_CLOEXEC, 0) == -1 && errno == EPERM);
    }
    return 0;
}

static void no_socket_is_made(void **state) {
    (void)state;
    in_child(try_sockets, NULL);
}

/* asyncio needs one, and what is done with it. */
static int try_socket_pairs(void *context) {
    static const int refused[][2] = {
        {AF_UNIX, SOCK_DGRAM},
        {AF_UNIX, SOCK_SEQPACKET},
        {AF_UNIX, SOCK_RAW},
        {AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC},
        {AF_INET, SOCK_STREAM},
        {AF_TIPC, SOCK_STREAM},
        {AF_UNIX, SOCK_STREAM | 0x10000},
    };
    static const int flags[] = {0, SOCK_CLOEXEC, SOCK_NONBLOCK,
                                SOCK_CLOEXEC | SOCK_NONBLOCK};
    int pair[2];
    char byte;

    (void)context;
    load_filter(&filter);
    for (size_t i = 0; i < COUNT_OF(refused); i++)
        REQUIRE(socketpair(refused[i][0], refused[i][1], 0, pair) == -1 &&
                errno == EPERM);
    REQUIRE(syscall(SYS_socketpair, AF_UNIX | UINT64_C(1) << 32, SOCK_STREAM, 0, pair) ==
                -1 &&
            errno == EPERM);
    for (size_t i = 0; i < COUNT_OF(flags); i++) {
        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | flags[i], 0, pair) == 0);
        REQUIRE(send(pair[0], "x", 1, 0) == 1);
        REQUIRE(recv(pair[1], &byte, 1, 0) == 1);
    }
    return 0;
}

static void a_pair_of_stream_sockets_is_allowed(void **state) {
    (void)state;
    in_child(try_socket_pairs, NULL);
}

/* No call can carry a descriptor, or name a peer. */
static int try_messages(void *context) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/nowhere"};
    struct msghdr message = {0};
    struct mmsghdr messages[1] = {0};
    int pair[2];

    (void)context;
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
    load_filter(&filter);
    REQUIRE(sendmsg(pair[0], &message, 0) == -1 && errno == EPERM);
    REQUIRE(recvmsg(pair[0], &message, 0) == -1 && errno == EPERM);
    REQUIRE(sendmmsg(pair[0], messages, 1, 0) == -1 && errno == EPERM);
    REQUIRE(recvmmsg(pair[0], messages, 1, 0, NULL) == -1 && errno == EPERM);
    REQUIRE(sendto(pair[0], "x", 1, 0, (struct sockaddr *)&address, sizeof address) ==
                -1 &&
            errno == EPERM);
    REQUIRE(connect(pair[0], (struct sockaddr *)&address, sizeof address) == -1 &&
            errno == EPERM);
    REQUIRE(bind(pair[0], (struct sockaddr *)&address, sizeof address) == -1 &&
            errno == EPERM);
    REQUIRE(listen(pair[0], 1) == -1 && errno == EPERM);
    REQUIRE(accept4(pair[0], NULL, NULL, 0) == -1 && errno == EPERM);
    REQUIRE(setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, pair, sizeof *pair) == -1 &&
            errno == EPERM);
    return 0;
}

static void no_descriptor_is_passed(void **state) {
    (void)state;
    in_child(try_messages, NULL);
}

/* A library that knows a newer kernel falls back; one that asks for a call of the list's
 * time is refused. */
static int try_numbers(void *context) {
    const long unknown[] = {463, 470, 500, 1000, 0xffff, 0x3fffffff};

    (void)context;
    load_filter(&filter);
    for (size_t i = 0; i < COUNT_OF(unknown); i++)
        REQUIRE(syscall(unknown[i], 0, 0, 0, 0, 0, 0) == -1 && errno == ENOSYS);
    REQUIRE(syscall(-1) == -1 && errno == EPERM);
    for (long number = 424; number <= 462; number++) {
        if (number == SYS_clone3 || number == SYS_close_range || number == SYS_openat2 ||
            number == SYS_faccessat2 || number == SYS_epoll_pwait2 ||
            number == SYS_futex_waitv)
            continue;
        REQUIRE(syscall(number, -1, 0, 0, 0, 0, 0) == -1 && errno == EPERM);
    }
    return 0;
}

static void newer_calls_are_unknown(void **state) {
    (void)state;
    in_child(try_numbers, NULL);
}

static int try_to_take_it_off(void *context) {
    (void)context;
    load_filter(&filter);
    REQUIRE(seccomp_filter_load(&filter, NULL) == -1);
    REQUIRE(prctl(PR_SET_SECCOMP, 0) == -1 && errno == EPERM);
    REQUIRE(child_status_field("Seccomp", 10) == SECCOMP_MODE_FILTER);
    REQUIRE(child_status_field("Seccomp_filters", 10) == 1);
    return 0;
}

static void it_stays_on(void **state) {
    (void)state;
    in_child(try_to_take_it_off, NULL);
}

#ifdef __x86_64__

static void assert_killed(int (*body)(void *)) {
    int status = child_status(body, NULL);

    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV)
        cannot("the kernel has no 32-bit calls");
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGSYS);
}

/* getpid(2) as a program of 32 bits would call it. */
static int call_as_i386(void *context) {
    long result;

    (void)context;
    load_filter(&filter);
    __asm__ volatile("int $0x80"
                     : "=a"(result)
                     : "a"(20)
                     : "memory", "r8", "r9", "r10", "r11");
    return 0;
}

static int call_as_x32(void *context) {
    (void)context;
    load_filter(&filter);
    syscall(0x40000000 | SYS_getpid);
    return 0;
}

static void a_foreign_abi_ends_the_process(void **state) {
    (void)state;
    assert_killed(call_as_i386);
    assert_killed(call_as_x32);
}

#else

static void a_foreign_abi_ends_the_process(void **state) {
    (void)state;
    cannot("the foreign ABIs of this architecture are not tried");
}

#endif

static void building_leaves_no_descriptor_open(void **state) {
    int before = open_descriptors();
    struct seccomp_filter another;

    (void)state;
    assert_int_equal(worker_filter_build(&another, &options, NULL), 0);
    assert_int_equal(another.count, filter.count);
    assert_memory_equal(another.instructions, filter.instructions,
                        filter.count * sizeof *filter.instructions);
    seccomp_filter_clear(&another);
    assert_int_equal(open_descriptors(), before);
}

static int load_nothing(void *context) {
    struct seccomp_filter empty = {0};
    struct viv_error err;

    (void)context;
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(seccomp_filter_load(&empty, &err) == -1 && err.code == VIV_SYSTEM);
    return 0;
}

static void an_empty_filter_is_a_failure(void **state) {
    (void)state;
    in_child(load_nothing, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_socket_is_made),
        cmocka_unit_test(a_pair_of_stream_sockets_is_allowed),
        cmocka_unit_test(no_descriptor_is_passed),
        cmocka_unit_test(newer_calls_are_unknown),
        cmocka_unit_test(it_stays_on),
        cmocka_unit_test(a_foreign_abi_ends_the_process),
        cmocka_unit_test(building_leaves_no_descriptor_open),
        cmocka_unit_test(an_empty_filter_is_a_failure),
    };
    return cmocka_run_group_tests(tests, build_filter, clear_filter);
}
