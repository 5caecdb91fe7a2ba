/* SPDX-License-Identifier: MIT */
/* Which process the kernel kills first when the host has no memory left: proc(5). */
#ifndef VIV_OOM_SCORE_H
#define VIV_OOM_SCORE_H

#include "common/error.h"

#define OOM_SCORE_OF_SESSIONS 500

/* Raises the calling process, whose children inherit it, to OOM_SCORE_OF_SESSIONS; one
 * that stands higher stays. `proc` is a descriptor of /proc. Takes no privilege, but the
 * process must be dumpable: the files of others are not their own. */
int oom_score_raise(int proc, struct viv_error *err);

#endif
