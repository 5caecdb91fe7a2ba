/* SPDX-License-Identifier: MIT */
/*
 * The files of an answer: those that are new or changed since a snapshot, sorted by name,
 * as frames of the session channel (session_wire.h). What does not fit is named with its
 * reason. For the supervisor.
 */
#ifndef VIV_COLLECT_H
#define VIV_COLLECT_H

#include <stdint.h>

#include "common/session_wire.h"
#include "executor/supervisor/home_walk.h"

struct collection {
    int home;
    const struct home_snapshot *before;
    uint32_t max_files;
    uint64_t max_file_size; /* bytes */
    uint64_t max_total;     /* bytes */
    /* Sends one frame of up to two parts; a failure ends the collection. */
    int (*send)(void *context, uint8_t type, struct slice first, struct slice second);
    void *context;
};

/* Sends FILE DATA* FILE_END and LEFT_OUT frames. *unnamed is the number of files beyond
 * those that a LEFT_OUT names. Fails when `send` does or memory is short. */
int collect_files(const struct collection *collection, uint32_t *unnamed,
                  struct viv_error *err);

#endif
