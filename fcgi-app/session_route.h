/* SPDX-License-Identifier: MIT */
/*
 * What is asked of one session by its path, besides running code in it: DELETE
 * /sessions/{id} and POST /sessions/{id}/interrupt. Neither reads a body, takes a place
 * among the calls, or waits for code. Any thread.
 */
#ifndef VIV_SESSION_ROUTE_H
#define VIV_SESSION_ROUTE_H

#include "fcgi-app/app.h"
#include "fcgi-app/exchange.h"

/* `id` is the component of the path, as it was sent. */
void session_end_route(struct app *app, struct exchange *exchange, struct slice id);
void session_interrupt_route(struct app *app, struct exchange *exchange, struct slice id);

#endif
