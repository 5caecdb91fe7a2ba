/* SPDX-License-Identifier: MIT */
/* A folder of the test's own, in place of a session's home. */
#ifndef VIV_TESTS_SCRATCH_H
#define VIV_TESTS_SCRATCH_H

#include "tests/unit/unit.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct scratch {
    char path[64];
    int fd;
};

static inline struct scratch scratch_new(void) {
    struct scratch scratch = {.path = "/tmp/viv-unit-XXXXXX"};

    assert_non_null(mkdtemp(scratch.path));
    scratch.fd = open(scratch.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(scratch.fd >= 0);
    return scratch;
}

static inline int scratch_remove_one(const char *path, const struct stat *status,
                                     int flag, struct FTW *place) {
    (void)status;
    (void)flag;
    (void)place;
    return remove(path);
}

static inline void scratch_remove(struct scratch *scratch) {
    close(scratch->fd);
    nftw(scratch->path, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file below the folder, over what was there. */
static inline void put_file(int folder, const char *name, const char *content) {
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    size_t size = strlen(content);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, size), (ssize_t)size);
    close(fd);
}

static inline void put_folder(int folder, const char *name) {
    assert_int_equal(mkdirat(folder, name, 0755), 0);
}

static inline bool is_there(int folder, const char *name) {
    struct stat status;

    return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline void assert_content(int folder, const char *name, const char *expected) {
    char content[256];
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    assert_true(fd >= 0);
    ssize_t got = read(fd, content, sizeof content - 1);
    close(fd);
    assert_true(got >= 0);
    content[got] = '\0';
    assert_string_equal(content, expected);
}

#endif
