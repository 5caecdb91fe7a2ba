/* SPDX-License-Identifier: MIT */
/* Finding and decoding the session id of a query. */
#include "fcgi-app/session_id.h"

#include <stdbool.h>
#include <string.h>

#include "common/utf8.h"

#define PARAMETER "sessionId"

/* Decodes the character at the front of `text` and returns how many bytes it took. */
static size_t decode_one(struct slice text, char *decoded) {
    if (text.data[0] == '%' && text.size >= 3) {
        int high = hex_value(text.data[1]), low = hex_value(text.data[2]);
        if (high >= 0 && low >= 0) {
            *decoded = (char)(high << 4 | low);
            return 3;
        }
    }
    *decoded = text.data[0] == '+' ? ' ' : text.data[0];
    return 1;
}

/* Decodes into `to` and returns the size, or room + 1 when there is more than that. */
static size_t decode(struct slice text, char *to, size_t room) {
    size_t used = 0;

    while (text.size > 0) {
        char decoded;
        size_t taken = decode_one(text, &decoded);
        if (used == room)
            return room + 1;
        to[used++] = decoded;
        text.data += taken;
        text.size -= taken;
    }
    return used;
}

/* Takes what comes before the next `divider`, or all, off the front of *text. */
static struct slice take_until(struct slice *text, char divider) {
    const char *end = text->size ? memchr(text->data, divider, text->size) : NULL;
    struct slice taken = {text->data, end ? (size_t)(end - text->data) : text->size};
    size_t gone = taken.size + (end != NULL);

    *text = (struct slice){text->data + gone, text->size - gone};
    return taken;
}

static bool is_parameter(struct slice name) {
    char decoded[sizeof PARAMETER - 1];

    return decode(name, decoded, sizeof decoded) == sizeof decoded &&
           memcmp(decoded, PARAMETER, sizeof decoded) == 0;
}

static int refuse(struct validation_details *details, struct viv_error *err,
                  const char *message) {
    validation_add(details, "query", "/" PARAMETER, "string", "%s", message);
    return viv_fail(err, VIV_VALIDATION, "%s", message);
}

int session_id_from_query(struct slice query, char id[SESSION_ID_MAX + 1],
                          struct validation_details *details, struct viv_error *err) {
    struct slice value = {NULL, 0};
    int found = 0;

    while (query.size > 0) {
        struct slice pair = take_until(&query, '&');
        if (!is_parameter(take_until(&pair, '=')))
            continue;
        value = pair;
        found++;
    }
    if (found > 1)
        return refuse(details, err, PARAMETER " query parameter is given more than once");
    if (value.size == 0)
        return refuse(details, err, PARAMETER " query parameter is required");
    size_t size = decode(value, id, SESSION_ID_MAX);
    if (size > SESSION_ID_MAX)
        return refuse(details, err, PARAMETER " is longer than 128 bytes");
    if (!utf8_valid(id, size))
        return refuse(details, err, PARAMETER " is not UTF-8");
    if (utf8_has_control(id, size))
        return refuse(details, err, PARAMETER " has a control character");
    id[size] = '\0';
    return 0;
}
