/* SPDX-License-Identifier: MIT */
/* Base64 as a JSON string: common/json_out.h with base64.h, which common/ does not have.
 * One thread. */
#ifndef VIV_JSON_BASE64_H
#define VIV_JSON_BASE64_H

#include "common/json_out.h"

/* A string with the base64 of `data`. Costs nothing where only the size is counted. */
void json_out_base64(struct json_out *out, struct slice data);

#endif
