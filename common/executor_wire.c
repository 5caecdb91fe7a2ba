/* SPDX-License-Identifier: MIT */
#include "common/executor_wire.h"

#include <string.h>

#define EXECUTOR_MAGIC UINT32_C(0x58564956) /* "VIVX" */

size_t executor_message_put(char *to, const struct executor_message *message) {
    size_t size = message->bytes.size;

    if (size > EXECUTOR_BYTES_MAX)
        size = EXECUTOR_BYTES_MAX;
    put_u32(to, EXECUTOR_MAGIC);
    put_u16(to + 4, EXECUTOR_WIRE_VERSION);
    put_u16(to + 6, message->what);
    put_u64(to + 8, message->sandbox);
    if (size > 0)
        memcpy(to + EXECUTOR_HEADER_SIZE, message->bytes.data, size);
    return EXECUTOR_HEADER_SIZE + size;
}

int executor_message_get(struct slice from, struct executor_message *message,
                         struct viv_error *err) {
    if (from.size < EXECUTOR_HEADER_SIZE || from.size > EXECUTOR_MESSAGE_MAX ||
        get_u32(from.data) != EXECUTOR_MAGIC)
        return viv_fail(err, VIV_BAD_GATEWAY, "not a message of this protocol");
    if (get_u16(from.data + 4) != EXECUTOR_WIRE_VERSION)
        return viv_fail(err, VIV_BAD_GATEWAY,
                        "vivarium-fcgi and vivarium-executor are of different versions: "
                        "protocol %u, not %u",
                        get_u16(from.data + 4), EXECUTOR_WIRE_VERSION);
    message->what = get_u16(from.data + 6);
    message->sandbox = get_u64(from.data + 8);
    message->bytes = (struct slice){from.data + EXECUTOR_HEADER_SIZE,
                                    from.size - EXECUTOR_HEADER_SIZE};
    return 0;
}
