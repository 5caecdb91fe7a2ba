/* SPDX-License-Identifier: MIT */
/*
 * Release of a resource at the end of its scope, in place of goto.
 *
 *     CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
 *     ...
 *     return steal_fd(&fd);
 *
 * A variable with CLEANUP is always initialised where it is declared. steal_*() hands the
 * resource over: the variable is left empty, the caller of the function owns what it
 * returns.
 */
#ifndef VIV_CLEANUP_H
#define VIV_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(function) __attribute__((cleanup(function##_cleanup)))

static inline void close_fd_cleanup(int *fd) {
    if (*fd >= 0)
        close(*fd);
}

static inline void free_ptr_cleanup(void *pointer) { free(*(void **)pointer); }

static inline void close_file_cleanup(FILE **file) {
    if (*file)
        fclose(*file);
}

static inline int steal_fd(int *fd) {
    int stolen = *fd;
    *fd = -1;
    return stolen;
}

static inline void close_and_clear(int *fd) {
    close_fd_cleanup(fd);
    *fd = -1;
}

static inline void *steal_pointer(void *pointer) {
    void *stolen = *(void **)pointer;
    *(void **)pointer = NULL;
    return stolen;
}

#define steal_ptr(pointer) ((__typeof__(*(pointer)))steal_pointer(pointer))

#endif
