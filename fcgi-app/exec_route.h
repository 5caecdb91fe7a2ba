/* SPDX-License-Identifier: MIT */
/*
 * POST /exec: the route of architecture.md's section of that name, step by step. What it
 * may keep others from is bounded: a place among the calls, the bytes of its body and
 * answer, and the session, which is given back before the answer is written.
 */
#ifndef VIV_EXEC_ROUTE_H
#define VIV_EXEC_ROUTE_H

#include "fcgi-app/app.h"
#include "fcgi-app/exchange.h"

/* Answers the exchange. */
void exec_route(struct app *app, struct exchange *exchange);

#endif
