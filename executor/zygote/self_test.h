/* SPDX-License-Identifier: MIT */
/*
 * Whether the calling process is confined as its tier says: by trying, in a worker, after
 * its last control and before it says READY.
 */
#ifndef VIV_SELF_TEST_H
#define VIV_SELF_TEST_H

#include "executor/isolation.h"

/* Fails with what was possible that must not be. What is tried does no harm where it is
 * possible after all. */
int self_test(enum isolation_tier tier, struct viv_error *err);

#endif
