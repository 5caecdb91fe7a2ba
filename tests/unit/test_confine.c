/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "executor/confine.h"
#include "executor/control.h"
#include "tests/unit/child.h"

#define BIT(capability) (UINT64_C(1) << (capability))

static uint64_t all_capabilities(void) {
    uint64_t all = 0;

    for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
        all |= BIT(capability);
    return all;
}

static void require_sets(uint64_t effective, uint64_t bounding) {
    REQUIRE(child_status_field("CapEff", 16) == effective);
    REQUIRE(child_status_field("CapPrm", 16) == effective);
    REQUIRE(child_status_field("CapInh", 16) == 0);
    REQUIRE(child_status_field("CapAmb", 16) == 0);
    REQUIRE(child_status_field("CapBnd", 16) == bounding);
}

/* An inheritable and ambient capability, as one that was started with it has. */
static void raise_ambient(int capability) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];

    REQUIRE(syscall(SYS_capget, &header, sets) == 0);
    sets[0].inheritable |= 1U << capability;
    REQUIRE(syscall(SYS_capset, &header, sets) == 0);
    REQUIRE(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) == 0);
}

static int drop_to(uint64_t kept) {
    struct viv_error err;

    child_unshare(0, 0);
    REQUIRE(child_status_field("CapEff", 16) == all_capabilities());
    raise_ambient(CAP_CHOWN);
    REQUIRE(confine_capabilities(kept, &err) == 0);
    require_sets(kept, kept);
    REQUIRE(prctl(PR_GET_SECUREBITS) ==
            (SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
             SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
             SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED));
    return 0;
}

static int drop_all(void *context) {
    (void)context;
    return drop_to(0);
}

static int drop_all_but_two(void *context) {
    (void)context;
    return drop_to(BIT(CAP_DAC_OVERRIDE) | BIT(CAP_CHECKPOINT_RESTORE));
}

static void capabilities_are_dropped_for_ever(void **state) {
    (void)state;
    in_child(drop_all, NULL);
    in_child(drop_all_but_two, NULL);
}

/* What was given up does not come back, not even to the user 0 of its namespace. */
static int try_to_regain(void *context) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2] = {{.effective = 1, .permitted = 1}};

    (void)context;
    child_unshare(0, 0);
    REQUIRE(confine_capabilities(0, NULL) == 0);
    REQUIRE(syscall(SYS_capset, &header, sets) == -1 && errno == EPERM);
    REQUIRE(prctl(PR_SET_SECUREBITS, 0) == -1 && errno == EPERM);
    REQUIRE(prctl(PR_SET_KEEPCAPS, 1) == -1 && errno == EPERM);
    REQUIRE(setresuid(0, 0, 0) == 0);
    require_sets(0, 0);
    return 0;
}

static void capabilities_do_not_come_back(void **state) {
    (void)state;
    in_child(try_to_regain, NULL);
}

static int drop_without_bounding(void *context) {
    const uint64_t kept = BIT(CAP_KILL) | BIT(CAP_SETUID);

    (void)context;
    child_unshare(0, 0);
    raise_ambient(CAP_CHOWN);
    REQUIRE(confine_to_capabilities(kept, NULL) == 0);
    require_sets(kept, all_capabilities());
    return 0;
}

static void the_bounding_set_may_be_left(void **state) {
    (void)state;
    in_child(drop_without_bounding, NULL);
}

static int keep_what_is_not_there(void *context) {
    struct viv_error err;

    (void)context;
    child_unshare(0, 0);
    REQUIRE(confine_to_capabilities(0, NULL) == 0);
    REQUIRE(confine_to_capabilities(BIT(CAP_KILL), &err) == -1);
    REQUIRE(err.code == VIV_SYSTEM && strstr(err.message, "capset"));
    /* A bounding set that cannot be dropped is a failure, not passed over. */
    REQUIRE(confine_capabilities(0, &err) == -1);
    REQUIRE(err.code == VIV_SYSTEM && strstr(err.message, "drop capability 0"));
    return 0;
}

static void a_capability_that_is_not_there_is_a_failure(void **state) {
    (void)state;
    in_child(keep_what_is_not_there, NULL);
}

static int become_user(void *context) {
    uid_t ids[3];

    (void)context;
    child_unshare(0, SESSION_UID);
    REQUIRE(confine_become_user(SESSION_UID, SESSION_UID, NULL) == 0);
    REQUIRE(getresuid(&ids[0], &ids[1], &ids[2]) == 0);
    REQUIRE(ids[0] == SESSION_UID && ids[1] == SESSION_UID && ids[2] == SESSION_UID);
    REQUIRE(getresgid(&ids[0], &ids[1], &ids[2]) == 0);
    REQUIRE(ids[0] == SESSION_GID && ids[1] == SESSION_GID && ids[2] == SESSION_GID);
    return 0;
}

static int become_a_user_that_is_not_mapped(void *context) {
    struct viv_error err;

    (void)context;
    child_unshare(0, 0);
    REQUIRE(confine_become_user(SESSION_UID, SESSION_UID, &err) == -1);
    REQUIRE(err.code == VIV_SYSTEM && strstr(err.message, "setresgid"));
    return 0;
}

static void becomes_the_user_of_the_session(void **state) {
    (void)state;
    in_child(become_user, NULL);
    in_child(become_a_user_that_is_not_mapped, NULL);
}

static int give_up_privileges(void *context) {
    (void)context;
    REQUIRE(child_status_field("NoNewPrivs", 10) == 0);
    REQUIRE(confine_privileges(NULL) == 0);
    REQUIRE(child_status_field("NoNewPrivs", 10) == 1);
    REQUIRE(prctl(PR_GET_DUMPABLE) == 0);
    return 0;
}

static void privileges_are_given_up(void **state) {
    (void)state;
    in_child(give_up_privileges, NULL);
}

static void require_limit(__rlimit_resource_t resource, rlim_t value) {
    struct rlimit limit;

    REQUIRE(getrlimit(resource, &limit) == 0);
    REQUIRE(limit.rlim_cur == value && limit.rlim_max == value);
}

static int limit_resources(void *context) {
    const uint64_t address_space = UINT64_C(5) << 30;

    (void)context;
    REQUIRE(confine_resources(address_space, 12345678, 77, NULL) == 0);
    if (CONFINE_LIMITS_ADDRESS_SPACE)
        require_limit(RLIMIT_AS, address_space);
    require_limit(RLIMIT_FSIZE, 12345678);
    require_limit(RLIMIT_NPROC, 77);
    require_limit(RLIMIT_NOFILE, 256);
    require_limit(RLIMIT_CORE, 0);
    require_limit(RLIMIT_MEMLOCK, 0);
    require_limit(RLIMIT_MSGQUEUE, 0);
    require_limit(RLIMIT_NICE, 0);
    require_limit(RLIMIT_RTPRIO, 0);
    require_limit(RLIMIT_SIGPENDING, 64);
    require_limit(RLIMIT_STACK, 8 << 20);
    return 0;
}

static int limit_resources_below_the_host(void *context) {
    const struct rlimit low = {.rlim_cur = 50, .rlim_max = 60};

    (void)context;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &low) == 0);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &low) == 0);
    child_unshare(0, SESSION_UID); /* where no limit can be raised */
    REQUIRE(confine_resources(UINT64_C(5) << 30, 12345678, 77, NULL) == 0);
    require_limit(RLIMIT_NOFILE, 60);
    require_limit(RLIMIT_FSIZE, 60);
    return 0;
}

static void resources_are_limited(void **state) {
    (void)state;
    in_child(limit_resources, NULL);
    in_child(limit_resources_below_the_host, NULL);
}

static int close_descriptors(void *context) {
    const int places[] = {5, 6, 100, 900};

    (void)context;
    for (size_t i = 0; i < COUNT_OF(places); i++)
        REQUIRE(dup2(STDERR_FILENO, places[i]) == places[i]);
    REQUIRE(confine_descriptors(6, NULL) == 0);
    REQUIRE(fcntl(5, F_GETFD) >= 0);
    for (size_t i = 1; i < COUNT_OF(places); i++)
        REQUIRE(fcntl(places[i], F_GETFD) == -1);
    return 0;
}

static void descriptors_are_closed(void **state) {
    (void)state;
    in_child(close_descriptors, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capabilities_are_dropped_for_ever),
        cmocka_unit_test(capabilities_do_not_come_back),
        cmocka_unit_test(the_bounding_set_may_be_left),
        cmocka_unit_test(a_capability_that_is_not_there_is_a_failure),
        cmocka_unit_test(becomes_the_user_of_the_session),
        cmocka_unit_test(privileges_are_given_up),
        cmocka_unit_test(resources_are_limited),
        cmocka_unit_test(descriptors_are_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
