/* SPDX-License-Identifier: MIT */
#include "fcgi-app/exchange.h"

#include <inttypes.h>

#include "common/log.h"

static int send_piece(void *context, const void *data, size_t size) {
    struct exchange *exchange = context;

    return exchange->connection->write(exchange->connection->context, data, size);
}

static void send_answer(struct exchange *exchange, exchange_document *document,
                        const void *context) {
    enum http_method method = exchange->request.method;
    struct json_out counted = {0};
    struct json_out sent = {.sink = send_piece, .context = exchange};

    /* RFC 9110, 9.3.2: the head is that of GET, size included. */
    if (method != HTTP_OPTIONS)
        document(&counted, context);
    exchange->failed =
        http_head_write(exchange->connection, &exchange->head, counted.size);
    if (method == HTTP_HEAD || method == HTTP_OPTIONS || exchange->failed)
        return;
    document(&sent, context);
    exchange->answer_size = sent.size;
    exchange->failed = sent.failed;
}

void exchange_answer(struct exchange *exchange, int status, exchange_document *document,
                     const void *context) {
    if (exchange->answered)
        return;
    exchange->answered = true;
    exchange->head.status = status;
    send_answer(exchange, document, context);
    exchange->connection->end(exchange->connection->context);
}

void exchange_log(const struct exchange *exchange) {
    viv_log(exchange->quiet ? VIV_LOG_DEBUG : VIV_LOG_INFO, "request",
            "req=%s session=%s route=%s status=%d outcome=%s in=%" PRIu64 " out=%" PRIu64
            " wait_ms=%" PRId64 " run_ms=%" PRId64 " total_us=%" PRId64 "%s%s%s%s",
            exchange->id, *exchange->session.digits ? exchange->session.digits : "-",
            exchange->route, exchange->head.status, exchange->outcome,
            exchange->request.body_size, exchange->answer_size, exchange->wait_ms,
            exchange->run_ms, (viv_now() - exchange->begun) / 1000,
            exchange->limit ? " limit=" : "", exchange->limit ? exchange->limit : "",
            exchange->left ? " left=1" : "", exchange->failed ? " cut=1" : "");
}
