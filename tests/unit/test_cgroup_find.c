/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "executor/launcher/cgroup_find.h"

#define ROOT_MOUNT "21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
#define V1_MOUNTS                                                                        \
    "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n"                \
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
#define V2_MOUNT                                                                         \
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 "    \
    "cgroup2 rw,nsdelegate,memory_recursiveprot\n"

static char *find(const char *cgroup, const char *mountinfo, struct viv_error *err) {
    CLEANUP(close_file) FILE *first = fmemopen((void *)cgroup, strlen(cgroup), "r");
    CLEANUP(close_file)
    FILE *second = fmemopen((void *)mountinfo, strlen(mountinfo), "r");

    assert_non_null(first);
    assert_non_null(second);
    return cgroup_find(first, second, err);
}

static void assert_found(const char *cgroup, const char *mountinfo,
                         const char *expected) {
    struct viv_error err = {0};
    CLEANUP(free_ptr) char *path = find(cgroup, mountinfo, &err);

    if (!path)
        fail_msg("%s", err.message);
    assert_string_equal(path, expected);
}

static void assert_not_found(const char *cgroup, const char *mountinfo,
                             const char *reason) {
    struct viv_error err = {0};

    assert_null(find(cgroup, mountinfo, &err));
    assert_int_equal(err.code, VIV_UNAVAILABLE);
    assert_non_null(strstr(err.message, reason));
}

static void finds_the_cgroup_of_a_service(void **state) {
    (void)state;
    assert_found("0::/system.slice/vivarium-executor.service\n", ROOT_MOUNT V2_MOUNT,
                 "/sys/fs/cgroup/system.slice/vivarium-executor.service");
    assert_found("0::/user.slice/user-1000.slice/user@1000.service/app.slice/v.service\n",
                 ROOT_MOUNT V2_MOUNT,
                 "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/"
                 "v.service");
}

static void finds_the_root(void **state) {
    (void)state;
    assert_found("0::/\n", ROOT_MOUNT V2_MOUNT, "/sys/fs/cgroup");
    assert_found("0::/\n", V2_MOUNT ROOT_MOUNT, "/sys/fs/cgroup");
}

static void finds_the_second_version_beside_the_first(void **state) {
    (void)state;
    assert_found("9:name=systemd:/\n4:memory:/deep/er\n1:cpu:/\n0::/init.scope\n",
                 ROOT_MOUNT V1_MOUNTS "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - "
                                      "cgroup2 cgroup2 rw\n",
                 "/sys/fs/cgroup/unified/init.scope");
}

static void finds_it_in_containers(void **state) {
    (void)state;
    /* with a namespace of its own */
    assert_found(
        "0::/\n",
        "812 790 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 "
        "cgroup rw,nsdelegate,memory_recursiveprot\n",
        "/sys/fs/cgroup");
    /* and with the host's, where only its own part is mounted */
    assert_found("0::/system.slice/docker-5f.scope/inner\n",
                 "812 790 0:26 /system.slice/docker-5f.scope /sys/fs/cgroup "
                 "ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw,nsdelegate\n",
                 "/sys/fs/cgroup/inner");
}

static void prefers_a_mount_that_can_be_written(void **state) {
    (void)state;
    assert_found("0::/a\n",
                 "30 23 0:26 / /sys/fs/cgroup ro,relatime - cgroup2 cgroup2 rw\n"
                 "31 23 0:26 / /mnt/first rw,relatime - cgroup2 cgroup2 rw\n"
                 "32 23 0:26 / /mnt/second rw,relatime - cgroup2 cgroup2 rw\n",
                 "/mnt/first/a");
    assert_found("0::/a\n",
                 "31 23 0:26 / /mnt/first rw,relatime - cgroup2 cgroup2 rw\n"
                 "30 23 0:26 / /sys/fs/cgroup ro,relatime - cgroup2 cgroup2 rw\n",
                 "/mnt/first/a");
}

static void reads_escapes_and_optional_fields(void **state) {
    (void)state;
    assert_found("0::/with space/x\n",
                 "30 23 0:26 /with\\040space /mnt/a\\134b\\040c rw,relatime shared:9 "
                 "master:2 propagate_from:1 - cgroup2 none rw\n",
                 "/mnt/a\\b c/x");
    assert_found("0::/a:b\n", V2_MOUNT, "/sys/fs/cgroup/a:b");
}

static void a_mount_of_another_part_does_not_count(void **state) {
    (void)state;
    assert_not_found("0::/system.slice/ab\n",
                     "30 23 0:26 /system.slice/a /mnt rw,relatime - cgroup2 cgroup2 rw\n",
                     "no mount");
    assert_not_found("0::/system.slice\n",
                     "30 23 0:26 /system.slice/a /mnt rw,relatime - cgroup2 cgroup2 rw\n",
                     "no mount");
    assert_not_found("0::/\n",
                     "30 23 0:26 /../.. /mnt rw,relatime - cgroup2 cgroup2 rw\n",
                     "no mount");
}

static void there_may_be_none(void **state) {
    (void)state;
    assert_not_found("4:memory:/\n1:name=systemd:/\n", ROOT_MOUNT V1_MOUNTS,
                     "no cgroup version 2");
    assert_not_found("\n", V2_MOUNT, "no cgroup version 2");
    assert_not_found("4:memory:/\n0::/\n", ROOT_MOUNT V1_MOUNTS, "no mount");
    assert_not_found("0::/../other\n", V2_MOUNT, "outside of the cgroup namespace");
}

static void odd_lines_are_passed_over(void **state) {
    (void)state;
    assert_not_found("0::/\n",
                     "\n - cgroup2 \n30 - cgroup2 x\n1 2 3 / /mnt - cgroup2 x\n",
                     "no mount");
    assert_found("x\n0::\n0::/a", "30 23 \\\n" V2_MOUNT, "/sys/fs/cgroup/a");
}

/* Whatever this machine has: a directory, or the reason why there is none. */
static void opens_that_of_this_process(void **state) {
    struct viv_error err = {0};
    char *path;
    int group = cgroup_open_own(&path, &err);

    (void)state;
    if (group < 0) {
        assert_null(path);
        assert_int_equal(err.code, VIV_UNAVAILABLE);
        return;
    }
    assert_int_equal(faccessat(group, "cgroup.procs", F_OK, 0), 0);
    assert_int_equal(path[0], '/');
    free(path);
    close(group);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_cgroup_of_a_service),
        cmocka_unit_test(finds_the_root),
        cmocka_unit_test(finds_the_second_version_beside_the_first),
        cmocka_unit_test(finds_it_in_containers),
        cmocka_unit_test(prefers_a_mount_that_can_be_written),
        cmocka_unit_test(reads_escapes_and_optional_fields),
        cmocka_unit_test(a_mount_of_another_part_does_not_count),
        cmocka_unit_test(there_may_be_none),
        cmocka_unit_test(odd_lines_are_passed_over),
        cmocka_unit_test(opens_that_of_this_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
