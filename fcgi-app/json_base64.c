/* SPDX-License-Identifier: MIT */
#include "fcgi-app/json_base64.h"

#include "fcgi-app/base64.h"

static int put_encoded(void *context, const char *data, size_t size,
                       struct viv_error *err) {
    struct json_out *out = context;

    json_out_splice(out, (struct slice){data, size});
    return out->failed ? viv_fail(err, VIV_UNAVAILABLE, "the sink failed") : 0;
}

void json_out_base64(struct json_out *out, struct slice data) {
    struct base64_encoder encoder;
    struct viv_error err;

    json_out_raw(out, "\"");
    if (!out->sink || out->failed) {
        out->size += base64_encoded_size(data.size);
    } else {
        base64_encoder_init(&encoder, put_encoded, out);
        if (base64_encoder_put(&encoder, data, &err) ||
            base64_encoder_end(&encoder, &err))
            out->failed = true;
    }
    json_out_raw(out, "\"");
}
