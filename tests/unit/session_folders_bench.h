/* SPDX-License-Identifier: MIT */
/* The folders of a session in a slot of the test's own. */
#ifndef VIV_TESTS_SESSION_FOLDERS_BENCH_H
#define VIV_TESTS_SESSION_FOLDERS_BENCH_H

#include "tests/unit/unit.h"

#include "executor/supervisor/session_folders.h"
#include "tests/unit/scratch.h"

struct slot {
    struct scratch scratch;
    int folders[SESSION_FOLDER_COUNT];
    int before; /* the current folder of the program */
};

static inline struct slot slot_new(void) {
    struct slot slot = {.scratch = scratch_new()};

    slot.before = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_true(slot.before >= 0);
    put_folder(slot.scratch.fd, "home");
    put_folder(slot.scratch.fd, "tmp");
    put_folder(slot.scratch.fd, "shm");
    assert_int_equal(fchdir(slot.scratch.fd), 0);
    assert_int_equal(session_folders_open(slot.folders, ISOLATION_MINIMAL, NULL), 0);
    return slot;
}

static inline void slot_remove(struct slot *slot) {
    for (int i = 0; i < SESSION_FOLDER_COUNT; i++)
        close(slot->folders[i]);
    assert_int_equal(fchdir(slot->before), 0);
    close(slot->before);
    scratch_remove(&slot->scratch);
}

/* Makes a file larger. */
static inline void fill(int folder, const char *name, size_t size) {
    static const char block[4096] = "x";
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    for (size_t written = 0; written < size; written += sizeof block)
        assert_int_equal(write(fd, block, sizeof block), sizeof block);
    close(fd);
}

#endif
