/* SPDX-License-Identifier: MIT */
#include "fcgi-app/error_reply.h"

#include <stdio.h>
#include <string.h>

#include "common/log.h"

struct row {
    const char *type;
    int status;
    unsigned retry_after_s;
};

static const struct row table[VIV_CODE_COUNT] = {
    [VIV_OK] = {"system", 500, 0},
    [VIV_SYSTEM] = {"system", 500, 0},
    [VIV_BAD_GATEWAY] = {"system", 502, 0},
    [VIV_UNAVAILABLE] = {"system", 503, 2},
    [VIV_TIMED_OUT] = {"system", 503, 2},
    [VIV_CONFIG] = {"system", 500, 0},
    [VIV_NOT_JSON] = {"validation", 400, 0},
    [VIV_CONTENT_TYPE] = {"validation", 415, 0},
    [VIV_VALIDATION] = {"validation", 422, 0},
    [VIV_PARSING] = {"parsing", 422, 0},
    [VIV_RESOURCE_LIMIT] = {"resource_limit", 413, 0},
    [VIV_RATE_LIMIT] = {"rate_limit", 429, 60},
    [VIV_BUSY] = {"busy", 409, 2},
    [VIV_CAPACITY] = {"capacity", 503, 5},
    [VIV_NOT_FOUND] = {"not_found", 404, 0},
    [VIV_METHOD] = {"method", 405, 0},
};

/* Types of failed executions, which have no row: they are answers of status 200. */
static const char *const execution_types[] = {"timeout", "crash"};

static bool is(struct slice name, const char *type) {
    return name.size == strlen(type) && memcmp(name.data, type, name.size) == 0;
}

bool error_type_is_ours(struct slice name) {
    for (int i = 0; i < VIV_CODE_COUNT; i++)
        if (is(name, table[i].type))
            return true;
    for (size_t i = 0; i < sizeof execution_types / sizeof *execution_types; i++)
        if (is(name, execution_types[i]))
            return true;
    return false;
}

struct document {
    const char *type;
    const char *message;
    const struct validation_details *details;
};

static void write_details(struct json_out *out,
                          const struct validation_details *details) {
    json_out_raw(out, ",\"details\":[");
    for (size_t i = 0; i < details->count; i++) {
        const struct validation_detail *detail = &details->items[i];
        json_out_raw(out, i > 0 ? ",{\"on\":" : "{\"on\":");
        json_out_text(out, detail->on);
        json_out_raw(out, ",\"path\":");
        json_out_text(out, detail->path);
        json_out_raw(out, ",\"expected\":");
        json_out_text(out, detail->expected);
        json_out_raw(out, ",\"message\":");
        json_out_text(out, detail->message);
        json_out_raw(out, "}");
    }
    json_out_raw(out, "]");
    if (details->untold > 0) {
        json_out_raw(out, ",\"details_left_out\":");
        json_out_unsigned(out, details->untold);
    }
}

static void write_document(struct json_out *out, const void *context) {
    const struct document *document = context;

    json_out_raw(out, "{\"success\":false,\"error\":{\"type\":");
    json_out_text(out, document->type);
    json_out_raw(out, ",\"message\":");
    json_out_text(out, document->message);
    if (document->details && document->details->count > 0)
        write_details(out, document->details);
    json_out_raw(out, "}}");
}

/* What a client is told of a fault that is ours. */
static const char *public_message(int status) {
    switch (status) {
    case 502:
        return "A part of the service gave an answer that is none";
    case 503:
        return "The service cannot run code at the moment, try again";
    default:
        return "The service failed";
    }
}

void error_reply(struct exchange *exchange, const struct viv_error *err,
                 const struct validation_details *details) {
    const struct row *row = &table[err->code < VIV_CODE_COUNT ? err->code : VIV_SYSTEM];
    struct document document = {row->type, err->message, details};
    char message[128];

    if (strcmp(row->type, "system") == 0) {
        viv_log_failure(VIV_LOG_ERROR, "request_failed", err->message, "req=%s",
                        exchange->id);
        snprintf(message, sizeof message, "%s (request %s)", public_message(row->status),
                 exchange->id);
        document.message = message;
    }
    if (exchange->head.retry_after_s == 0)
        exchange->head.retry_after_s = row->retry_after_s;
    exchange->outcome = row->type;
    exchange_answer(exchange, row->status, write_document, &document);
}
