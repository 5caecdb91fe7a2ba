/* SPDX-License-Identifier: MIT */
#include "fcgi-app/session_record.h"

#include <string.h>

#include "common/utf8.h"

/* The first byte. */
#define RECORD_WHOLE    1
#define RECORD_LOST_ALL 2

#define RECORD_FIXED (1 + 4 * 8)

static size_t put_text(char *to, const char *text) {
    size_t size = strlen(text);

    *to = (char)size;
    memcpy(to + 1, text, size);
    return 1 + size;
}

size_t session_record_put(char to[SESSION_RECORD_MAX],
                          const struct session_record *record) {
    size_t size = RECORD_FIXED;

    to[0] = record->lost_all ? RECORD_LOST_ALL : RECORD_WHOLE;
    put_u64(to + 1, (uint64_t)record->created_wall_ms);
    put_u64(to + 9, (uint64_t)record->created);
    put_u64(to + 17, (uint64_t)record->used);
    put_u64(to + 25, record->execution_count);
    size += put_text(to + size, record->id);
    size += put_text(to + size, record->client);
    return size;
}

/* Takes a text with its length off the front of *from, into `to` with room for `room`
 * bytes. */
static bool get_text(struct slice *from, char *to, size_t room) {
    size_t size = from->size > 0 ? (unsigned char)from->data[0] : SIZE_MAX;

    if (size >= from->size || size >= room)
        return false;
    memcpy(to, from->data + 1, size);
    to[size] = '\0';
    *from = (struct slice){from->data + 1 + size, from->size - 1 - size};
    return strlen(to) == size;
}

int session_record_get(struct slice from, struct session_record *record,
                       struct viv_error *err) {
    struct slice rest;

    if (from.size < RECORD_FIXED ||
        (from.data[0] != RECORD_WHOLE && from.data[0] != RECORD_LOST_ALL))
        return viv_fail(err, VIV_BAD_GATEWAY, "a record of another kind");
    rest = (struct slice){from.data + RECORD_FIXED, from.size - RECORD_FIXED};
    record->created_wall_ms = (int64_t)get_u64(from.data + 1);
    record->created = (viv_time)get_u64(from.data + 9);
    record->used = (viv_time)get_u64(from.data + 17);
    record->execution_count = get_u64(from.data + 25);
    record->lost_all = from.data[0] == RECORD_LOST_ALL;
    if (!get_text(&rest, record->id, sizeof record->id) ||
        !get_text(&rest, record->client, sizeof record->client) || rest.size != 0 ||
        record->id[0] == '\0' || !utf8_valid(record->id, strlen(record->id)) ||
        record->created < 0 || record->used < record->created)
        return viv_fail(err, VIV_BAD_GATEWAY, "a malformed record");
    return 0;
}
