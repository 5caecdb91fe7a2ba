/* SPDX-License-Identifier: MIT */
/*
 * The standard output and error of a worker, from its pipes to the client of the
 * running call, up to the call's limit; the rest, and what comes between calls, is read
 * and dropped, so that a full pipe never holds the worker.
 */
#ifndef VIV_OUTPUT_H
#define VIV_OUTPUT_H

#include "executor/supervisor/call.h"
#include "executor/supervisor/client_channel.h"
#include "executor/supervisor/worker_process.h"

/* Reads once from stream 0 (output) or 1 (error), which has something or is at its
 * end. */
void output_pump(struct worker_process *worker, int stream, struct call *call,
                 struct client_channel *client);

/* Reads what both pipes hold now, and not what a flood adds meanwhile. */
void output_pump_all(struct worker_process *worker, struct call *call,
                     struct client_channel *client);

#endif
