/* SPDX-License-Identifier: MIT */
/*
 * The one table from a code to its HTTP status, and the one function that turns a
 * failure into an answer. Any thread.
 */
#ifndef VIV_ERROR_REPLY_H
#define VIV_ERROR_REPLY_H

#include "common/error.h"
#include "fcgi-app/exchange.h"
#include "fcgi-app/validation.h"

/*
 * Answers the exchange with the failure and, where there are any (NULL is none), its
 * details. The message goes out as it is, but for those of type `system`: they say no
 * more than the request's id, and the log has the message. exchange->head keeps what was
 * set there before; Retry-After is set where the table has one and nothing was set.
 */
void error_reply(struct exchange *exchange, const struct viv_error *err,
                 const struct validation_details *details);

#endif
