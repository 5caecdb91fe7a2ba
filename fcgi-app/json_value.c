/* SPDX-License-Identifier: MIT */
#include "fcgi-app/json_value.h"

#include <jansson.h>
#include <string.h>

/* What a token costs jansson at most, measured with [{},{},...]: two tokens and 150 bytes
 * for each object. */
#define BYTES_PER_TOKEN 80

/* Counts the tokens that open a value, and the depth. Syntax is jansson's to judge. */
static size_t count_tokens(struct slice text, unsigned *depth_max) {
    size_t tokens = 1;
    unsigned depth = 0;
    bool in_string = false;

    *depth_max = 0;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        if (in_string) {
            i += c == '\\';
            in_string = c != '"';
            continue;
        }
        in_string = c == '"';
        tokens += c == ',' || c == ':' || c == '[' || c == '{';
        depth += c == '[' || c == '{';
        depth -= depth > 0 && (c == ']' || c == '}');
        if (depth > *depth_max)
            *depth_max = depth;
    }
    return tokens;
}

bool json_value_is_fit(struct slice text, struct budget_share *share) {
    unsigned depth;
    uint64_t cost = 2 * text.size + BYTES_PER_TOKEN * count_tokens(text, &depth);

    /* jansson 2.14 passes over a NUL behind a number. */
    if (text.size == 0 || memchr(text.data, '\0', text.size) ||
        depth > JSON_VALUE_DEPTH_MAX || !budget_take(share, cost))
        return false;
    json_t *value =
        json_loadb(text.data, text.size,
                   JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    bool fit = value != NULL;
    json_decref(value);
    budget_give_back(share, cost);
    return fit;
}
