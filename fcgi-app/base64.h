/* SPDX-License-Identifier: MIT */
/*
 * Base64 (RFC 4648, section 4): the standard alphabet, with padding. Checking is strict
 * and done here; decoding and encoding are libb64's, whose decoder skips what it does not
 * know and so may only be fed what was checked. Any thread.
 *
 * Line breaks: any number of CR and LF may stand between groups, that is where the number
 * of other characters before them is a multiple of 4 (0 and the end included): the output
 * of encoders that wrap their lines. Inside a group they are refused, as is all else.
 * Padding may only end the text, and the bits that it leaves over are zero, so that one
 * content has one spelling.
 */
#ifndef VIV_BASE64_H
#define VIV_BASE64_H

#include <b64/cencode.h>

#include "common/bytes.h"
#include "common/error.h"

/* Takes the next bytes; returns 0, or -1 with *err, which ends the work. */
typedef int base64_sink(void *context, const char *data, size_t size,
                        struct viv_error *err);

/* What `text` decodes to, in bytes, if it is well formed; otherwise something near to it.
 * For the message about a size that is refused before the rest is checked. */
size_t base64_decoded_size(struct slice text);

/* Returns 0 with the decoded *size when the text is well formed; -1 otherwise with
 * *offset: of the first character that is out of place, the size of the text where it
 * ends too early. */
int base64_check(struct slice text, size_t *size, size_t *offset);

/* Decodes a text that passed base64_check() into the sink, in blocks. Fails as the sink
 * does, or with VIV_SYSTEM when the result has not the size that its text foretells. */
int base64_decode(struct slice text, base64_sink *sink, void *context,
                  struct viv_error *err);

/* Encodes piece by piece, without line breaks. */
struct base64_encoder {
    base64_encodestate state;
    base64_sink *sink;
    void *context;
};

void base64_encoder_init(struct base64_encoder *encoder, base64_sink *sink,
                         void *context);

/* Encodes more data. Fails as the sink does. */
int base64_encoder_put(struct base64_encoder *encoder, struct slice data,
                       struct viv_error *err);

/* Writes what is left, with padding. The encoder is used up. Fails as the sink does. */
int base64_encoder_end(struct base64_encoder *encoder, struct viv_error *err);

/* The size that `size` bytes have when encoded. */
static inline size_t base64_encoded_size(size_t size) { return (size + 2) / 3 * 4; }

#endif
