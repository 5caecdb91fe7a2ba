/* SPDX-License-Identifier: MIT */
/* Base64: a text passes exactly when encoding what it decodes to gives it back, but for
 * the line breaks between its groups. */
#include "tests/fuzz/fuzz.h"

#include "common/cleanup.h"
#include "fcgi-app/base64.h"

static int keep(void *context, const char *data, size_t size, struct viv_error *err) {
    return buffer_append(context, data, size, SIZE_MAX, err);
}

/* The text without line breaks that stand where a group may begin. */
static struct buffer without_breaks(struct slice text) {
    struct buffer out = {0};

    for (size_t i = 0; i < text.size; i++)
        if (out.size % 4 != 0 || (text.data[i] != '\n' && text.data[i] != '\r'))
            buffer_append(&out, text.data + i, 1, SIZE_MAX, NULL);
    return out;
}

static struct buffer encode(struct slice data) {
    struct buffer out = {0};
    struct base64_encoder encoder;

    base64_encoder_init(&encoder, keep, &out);
    MUST(base64_encoder_put(&encoder, data, NULL) == 0);
    MUST(base64_encoder_end(&encoder, NULL) == 0);
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice text = {(const char *)data, size};
    CLEANUP(buffer_clear) struct buffer decoded = {0};
    CLEANUP(buffer_clear) struct buffer plain = without_breaks(text);
    size_t decoded_size = 0, offset = 0;
    struct viv_error err;

    int passes = base64_check(text, &decoded_size, &offset) == 0;
    /* The decoder skips what it does not know: fed with anything it must stay in its
     * bounds. */
    int decodes = base64_decode(text, keep, &decoded, &err) == 0;
    CLEANUP(buffer_clear)
    struct buffer again = encode((struct slice){decoded.data, decoded.size});
    int comes_back = again.size == plain.size &&
                     (again.size == 0 || memcmp(again.data, plain.data, again.size) == 0);
    MUST(passes == comes_back);
    if (passes) {
        MUST(decodes && decoded.size == decoded_size);
        MUST(base64_decoded_size(text) == decoded_size);
    } else {
        MUST(offset <= size);
    }
    return 0;
}
