/* SPDX-License-Identifier: MIT */
/*
 * From a request to its answer: which path and method lead where. Any thread, one request
 * each.
 */
#ifndef VIV_ROUTES_H
#define VIV_ROUTES_H

#include "fcgi-app/app.h"
#include "fcgi-app/http.h"

/* Answers the request of the connection and logs it. */
void routes_handle(struct app *app, const struct http_connection *connection);

#endif
