/* SPDX-License-Identifier: MIT */
/* Query strings: an id that is found keeps its rules, and comes back when it is
 * encoded. */
#include "tests/fuzz/fuzz.h"

#include "common/utf8.h"
#include "fcgi-app/session_id.h"

static int find(const char *query, size_t size, char id[SESSION_ID_MAX + 1]) {
    struct validation_details details = {0};
    struct viv_error err;
    int failed = session_id_from_query((struct slice){query, size}, id, &details, &err);

    MUST(!failed == (details.count == 0));
    MUST(!failed || err.code == VIV_VALIDATION);
    return failed;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char id[SESSION_ID_MAX + 1], again[SESSION_ID_MAX + 1],
        query[3 * SESSION_ID_MAX + 32];

    if (find((const char *)data, size, id))
        return 0;
    size_t length = strlen(id);
    MUST(length >= 1 && length <= SESSION_ID_MAX);
    MUST(utf8_valid(id, length) && !utf8_has_control(id, length));
    int used = snprintf(query, sizeof query, "x=1&sessionId=");
    for (size_t i = 0; i < length; i++)
        used += snprintf(query + used, sizeof query - (size_t)used, "%%%02X",
                         (unsigned)(unsigned char)id[i]);
    MUST(find(query, (size_t)used, again) == 0 && strcmp(id, again) == 0);
    return 0;
}
