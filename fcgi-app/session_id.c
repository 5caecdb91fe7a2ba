/* SPDX-License-Identifier: MIT */
/* Finding and decoding the session id of a query or a path. */
#include "fcgi-app/session_id.h"

#include <stdbool.h>
#include <string.h>

#include "common/utf8.h"

#define PARAMETER "sessionId"

/* What "+" stands for: a space in a query, itself in a path. */
enum place { IN_QUERY, IN_PATH };

/* Decodes the character at the front of `text` and returns how many bytes it took. */
static size_t decode_one(struct slice text, enum place place, char *decoded) {
    if (text.data[0] == '%' && text.size >= 3) {
        int high = hex_value(text.data[1]), low = hex_value(text.data[2]);
        if (high >= 0 && low >= 0) {
            *decoded = (char)(high << 4 | low);
            return 3;
        }
    }
    *decoded = text.data[0] == '+' && place == IN_QUERY ? ' ' : text.data[0];
    return 1;
}

/* Decodes into `to` and returns the size, or room + 1 when there is more than that. */
static size_t decode(struct slice text, enum place place, char *to, size_t room) {
    size_t used = 0;

    while (text.size > 0) {
        char decoded;
        size_t taken = decode_one(text, place, &decoded);
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

    return decode(name, IN_QUERY, decoded, sizeof decoded) == sizeof decoded &&
           memcmp(decoded, PARAMETER, sizeof decoded) == 0;
}

static const char *name_of(enum place place) {
    return place == IN_QUERY ? "query" : "path";
}

static int refuse(enum place place, struct validation_details *details,
                  struct viv_error *err, const char *message) {
    validation_add(details, name_of(place), "/" PARAMETER, "string", "%s", message);
    return viv_fail(err, VIV_VALIDATION, "%s", message);
}

/* Decodes and checks what stands in its place, which is not empty. */
static int read_value(struct slice value, enum place place, char id[SESSION_ID_MAX + 1],
                      struct validation_details *details, struct viv_error *err) {
    size_t size = decode(value, place, id, SESSION_ID_MAX);

    if (size > SESSION_ID_MAX)
        return refuse(place, details, err, PARAMETER " is longer than 128 bytes");
    if (!utf8_valid(id, size))
        return refuse(place, details, err, PARAMETER " is not UTF-8");
    if (utf8_has_control(id, size))
        return refuse(place, details, err, PARAMETER " has a control character");
    id[size] = '\0';
    return 0;
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
        return refuse(IN_QUERY, details, err,
                      PARAMETER " query parameter is given more than once");
    if (value.size == 0)
        return refuse(IN_QUERY, details, err, PARAMETER " query parameter is required");
    return read_value(value, IN_QUERY, id, details, err);
}

int session_id_from_path(struct slice component, char id[SESSION_ID_MAX + 1],
                         struct validation_details *details, struct viv_error *err) {
    return read_value(component, IN_PATH, id, details, err);
}
