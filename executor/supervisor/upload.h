/* SPDX-License-Identifier: MIT */
/*
 * The files of a request on their way into a session's home: written aside, then
 * renamed, all or none, as long as nobody else changes the home meanwhile: a rename is
 * not undone. By descriptor, beneath the home, through no link. The client
 * has checked the names already (common/filename.h); one that is refused here is a file
 * that is not written. For the supervisor.
 */
#ifndef VIV_UPLOAD_H
#define VIV_UPLOAD_H

#include <stdbool.h>

#include "common/session_wire.h"

struct upload {
    int home;
    int staging; /* folder that the files are written to; -1 until the first one */
    char staging_name[40];
    int file; /* that is being written, or -1 */
    char **names;
    uint32_t count;
    bool failed; /* then `refused` says why, and the rest is not written */
    struct session_refused refused;
};

/* The empty upload; touches nothing. */
void upload_init(struct upload *upload, int home);

/* Opens the next file; what was wrong is kept in `failed`. */
void upload_open(struct upload *upload, struct slice name);

/* Writes to the file that was opened last. */
void upload_write(struct upload *upload, struct slice data);

/* There is no room for the last file. */
void upload_refuse_for_room(struct upload *upload);

/* Puts all files in place. Returns -1 with `refused` filled, and the home as it was; but
 * a thread of the session that puts something in the way after all was checked can make
 * it fail with a part of the files in place. */
int upload_commit(struct upload *upload);

/* Removes what is aside and frees; the upload is empty afterwards. */
void upload_clear(struct upload *upload);

#endif
