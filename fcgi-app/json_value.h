/* SPDX-License-Identifier: MIT */
/*
 * Whether text from a sandbox can stand in an answer as a JSON value, as it is. jansson
 * is the judge; before it is asked, the depth and the memory that it would need are
 * bounded. Any thread.
 */
#ifndef VIV_JSON_VALUE_H
#define VIV_JSON_VALUE_H

#include <stdbool.h>

#include "common/bytes.h"
#include "fcgi-app/budget.h"

#define JSON_VALUE_DEPTH_MAX 512

/* True for one JSON value of any type, without duplicate members and within the bounds.
 * The memory for the check is taken out of `share` and given back; where it is not there,
 * the answer is false. */
bool json_value_is_fit(struct slice text, struct budget_share *share);

#endif
