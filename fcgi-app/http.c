/* SPDX-License-Identifier: MIT */
#include "fcgi-app/http.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char json_type[] = "application/json";

static enum http_method method_of(const char *name) {
    static const char *const names[] = {"GET", "HEAD", "POST", "DELETE", "OPTIONS"};

    for (int i = 0; name && i < HTTP_OTHER; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum http_method)i;
    return HTTP_OTHER;
}

/* application/json with any parameters; case does not matter (RFC 9110, 8.3.1). */
static bool is_json_type(const char *type) {
    if (!type || strncasecmp(type, json_type, sizeof json_type - 1) != 0)
        return false;
    type += sizeof json_type - 1;
    type += strspn(type, " \t");
    return *type == '\0' || *type == ';';
}

/* A missing length is none: the web server reads chunked bodies to their end and then
 * knows. */
static int parse_length(const char *text, uint64_t *length, struct viv_error *err) {
    *length = 0;
    for (; text && *text; text++) {
        if (*text < '0' || *text > '9' || __builtin_mul_overflow(*length, 10U, length) ||
            __builtin_add_overflow(*length, (unsigned)(*text - '0'), length))
            return viv_fail(err, VIV_NOT_JSON, "Content-Length is not a number of bytes");
    }
    return 0;
}

/* Takes one character off the front, decoded. */
static unsigned char take_decoded(struct slice *text) {
    size_t size = 1;
    int byte = (unsigned char)text->data[0];

    if (byte == '%' && text->size >= 3) {
        int high = hex_value(text->data[1]), low = hex_value(text->data[2]);
        if (high >= 0 && low >= 0) {
            byte = high << 4 | low;
            size = 3;
        }
    }
    *text = (struct slice){text->data + size, text->size - size};
    return (unsigned char)byte;
}

/* What follows SCRIPT_NAME, the path that the web server serves us at (RFC 3875, 4.1.13):
 * it is decoded, and the path is as it was sent. The whole path where nothing follows:
 * some web servers take all of it for the name of the script. */
static struct slice behind_prefix(struct slice path, const char *prefix) {
    struct slice rest = path;

    for (; prefix && *prefix; prefix++)
        if (rest.size == 0 || take_decoded(&rest) != (unsigned char)*prefix)
            return path;
    return rest.size > 0 && rest.data[0] == '/' ? rest : path;
}

int http_request_read(const struct http_connection *connection,
                      const struct networks *trusted, struct http_request *request,
                      struct viv_error *err) {
    void *context = connection->context;
    /* PATH_INFO is not as it was sent, and not each web server makes one. */
    const char *target = connection->variable(context, "REQUEST_URI");

    if (!target)
        target = "";
    *request = (struct http_request){0};
    request->method = method_of(connection->variable(context, "REQUEST_METHOD"));
    request->is_json = is_json_type(connection->variable(context, "CONTENT_TYPE"));
    /* nginx hands on an empty one where there is none. */
    const char *origin = connection->variable(context, "HTTP_ORIGIN");
    request->is_of_page = origin && *origin;
    struct slice path = {target, strcspn(target, "?")};
    request->path = behind_prefix(path, connection->variable(context, "SCRIPT_NAME"));
    const char *query = target + path.size;
    query += *query == '?';
    request->query = (struct slice){query, strlen(query)};
    client_address(trusted, connection->variable(context, "REMOTE_ADDR"),
                   connection->variable(context, "HTTP_X_FORWARDED_FOR"),
                   request->client);
    return parse_length(connection->variable(context, "CONTENT_LENGTH"),
                        &request->body_size, err);
}

static const char *reason_of(int status) {
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {{200, "OK"},
                   {400, "Bad Request"},
                   {404, "Not Found"},
                   {405, "Method Not Allowed"},
                   {409, "Conflict"},
                   {413, "Content Too Large"},
                   {415, "Unsupported Media Type"},
                   {422, "Unprocessable Content"},
                   {429, "Too Many Requests"},
                   {500, "Internal Server Error"},
                   {502, "Bad Gateway"},
                   {503, "Service Unavailable"}};

    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Error";
}

int http_head_write(const struct http_connection *connection,
                    const struct http_head *head, uint64_t body_size) {
    char text[1024], allow[128] = "", retry[64] = "", rate[256] = "";

    if (head->allow)
        snprintf(allow, sizeof allow, "Allow: %s\r\n", head->allow);
    if (head->retry_after_s > 0)
        snprintf(retry, sizeof retry, "Retry-After: %u\r\n", head->retry_after_s);
    if (head->rate_limited)
        snprintf(rate, sizeof rate,
                 "RateLimit-Limit: %" PRIu64 "\r\nRateLimit-Remaining: %" PRIu64
                 "\r\nRateLimit-Reset: %u\r\n",
                 head->rate_limit, head->rate_remaining, head->rate_reset_s);
    int size = snprintf(text, sizeof text,
                        "Status: %d %s\r\n"
                        "Content-Type: %s\r\n"
                        "Content-Length: %" PRIu64 "\r\n"
                        "Cache-Control: no-store\r\n"
                        "X-Content-Type-Options: nosniff\r\n"
                        "%s%s%s\r\n",
                        head->status, reason_of(head->status), json_type, body_size,
                        allow, retry, rate);
    return connection->write(connection->context, text, (size_t)size);
}
