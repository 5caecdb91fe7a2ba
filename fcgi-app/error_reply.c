/* SPDX-License-Identifier: MIT */
#include "fcgi-app/error_reply.h"

#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "fcgi-app/error_type.h"

struct row {
    int status;
    unsigned retry_after_s;
};

static const struct row table[VIV_CODE_COUNT] = {
    [VIV_OK] = {500, 0},
    [VIV_SYSTEM] = {500, 0},
    [VIV_BAD_GATEWAY] = {502, 0},
    [VIV_UNAVAILABLE] = {503, 2},
    [VIV_TIMED_OUT] = {503, 2},
    [VIV_CONFIG] = {500, 0},
    [VIV_NOT_JSON] = {400, 0},
    [VIV_CONTENT_TYPE] = {415, 0},
    [VIV_VALIDATION] = {422, 0},
    [VIV_PARSING] = {422, 0},
    [VIV_RESOURCE_LIMIT] = {413, 0},
    [VIV_RATE_LIMIT] = {429, 60},
    [VIV_BUSY] = {409, 2},
    [VIV_CAPACITY] = {503, 5},
    [VIV_NOT_FOUND] = {404, 0},
    [VIV_METHOD] = {405, 0},
    [VIV_INTERRUPTED] = {409, 0},
};

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
    const char *type = error_type_of(err->code);
    struct document document = {type, err->message, details};
    char message[128];

    if (strcmp(type, "system") == 0) {
        viv_log_failure(VIV_LOG_ERROR, "request_failed", err->message, "req=%s",
                        exchange->id);
        snprintf(message, sizeof message, "%s (request %s)", public_message(row->status),
                 exchange->id);
        document.message = message;
    }
    if (exchange->head.retry_after_s == 0)
        exchange->head.retry_after_s = row->retry_after_s;
    exchange->outcome = type;
    exchange->limit = err->limit;
    exchange_answer(exchange, row->status, write_document, &document);
}
