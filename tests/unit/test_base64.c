/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <stdbool.h>
#include <stdio.h>

#include "common/cleanup.h"
#include "fcgi-app/base64.h"

static const char alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* A sink that keeps everything, and counts its calls. */
struct kept {
    struct buffer bytes;
    size_t largest;
    size_t calls;
    size_t fail_at; /* this call fails; 0: none */
};

static void kept_clear_cleanup(struct kept *kept) { buffer_clear(&kept->bytes); }

static int keep(void *context, const char *data, size_t size, struct viv_error *err) {
    struct kept *kept = context;

    kept->largest = size > kept->largest ? size : kept->largest;
    if (++kept->calls == kept->fail_at)
        return viv_fail(err, VIV_UNAVAILABLE, "the sink is full");
    assert_true(size > 0);
    return buffer_append(&kept->bytes, data, size, SIZE_MAX, err);
}

static void encode(struct kept *kept, struct slice data, size_t piece) {
    struct base64_encoder encoder;

    base64_encoder_init(&encoder, keep, kept);
    while (data.size > 0) {
        size_t taken = data.size < piece ? data.size : piece;
        assert_int_equal(
            base64_encoder_put(&encoder, (struct slice){data.data, taken}, NULL), 0);
        data = (struct slice){data.data + taken, data.size - taken};
    }
    assert_int_equal(base64_encoder_end(&encoder, NULL), 0);
}

/* Base64 of up to three bytes, by the book (RFC 4648, section 4). */
static void encode_group(const unsigned char *data, size_t size, char text[5]) {
    uint32_t bits = (uint32_t)data[0] << 16 | (uint32_t)(size > 1 ? data[1] : 0) << 8 |
                    (uint32_t)(size > 2 ? data[2] : 0);

    for (int i = 0; i < 4; i++)
        text[i] = alphabet[bits >> (18 - 6 * i) & 63];
    for (size_t i = size + 1; i < 4; i++)
        text[i] = '=';
    text[4] = '\0';
}

static void check_good(struct slice text, struct slice expected) {
    CLEANUP(kept_clear) struct kept kept = {0};
    size_t size = 99, offset = 99;
    struct viv_error err;

    if (base64_check(text, &size, &offset))
        fail_msg("%.*s at %zu", (int)text.size, text.data, offset);
    assert_int_equal(size, expected.size);
    assert_int_equal(base64_decoded_size(text), expected.size);
    assert_int_equal(base64_decode(text, keep, &kept, &err), 0);
    assert_int_equal(kept.bytes.size, expected.size);
    if (expected.size > 0)
        assert_memory_equal(kept.bytes.data, expected.data, expected.size);
}

static void every_content_of_up_to_two_bytes(void **state) {
    (void)state;
    check_good(SLICE(""), SLICE(""));
    for (unsigned value = 0; value < 1U << 16; value++) {
        const unsigned char data[2] = {(unsigned char)(value >> 8), (unsigned char)value};
        for (size_t size = (value & 0xff) == 0 ? 1 : 2; size <= 2; size++) {
            char text[5];
            encode_group(data, size, text);
            check_good((struct slice){text, 4}, (struct slice){(const char *)data, size});
        }
    }
}

static void contents_of_three_bytes(void **state) {
    (void)state;
    for (unsigned value = 0; value < 1U << 24; value += 241) {
        const unsigned char data[3] = {(unsigned char)(value >> 16),
                                       (unsigned char)(value >> 8), (unsigned char)value};
        char text[5];
        encode_group(data, 3, text);
        check_good((struct slice){text, 4}, (struct slice){(const char *)data, 3});
    }
}

/* What of all four-character texts passes: a text is right when a content has it. */
static void every_pair_at_the_end_of_a_group(void **state) {
    size_t right = 0;

    (void)state;
    for (unsigned value = 0; value < 1U << 24; value++) {
        const char text[4] = {'A', (char)(value >> 16), (char)(value >> 8), (char)value};
        size_t size, offset;
        right += base64_check((struct slice){text, 4}, &size, &offset) == 0;
    }
    assert_int_equal(right,
                     64 * 64 * 64 /* no padding */ + 64 * 16 /* one = */ + 4 /* two */);
}

static void faults_are_found_where_they_are(void **state) {
    static const struct {
        const char *text;
        size_t offset;
    } faults[] = {
        {"@@@@", 0},
        {"QUJ@QUJD", 3},
        {"QUJDQU@D", 6},
        {"QUJD QUJD", 4},
        {"QUJD ", 4},
        {"QUJ-", 3},
        {"QU_D", 2},
        {"QUJDQ\xc3\x9cJD", 5},
        {"=QUJ", 0},
        {"====", 0},
        {"Q===", 1},
        {"Q=JD", 1},
        {"QUJD=", 4},
        {"QUJD====", 4},
        {"QQ==QQ==", 4},
        {"QQ==QUJD", 4},
        {"QQ==\nQUJD", 5},
        {"QQ===", 4},
        {"QQ=A", 3},
        {"QQ=\n=", 3},
        {"Q", 1},
        {"QQ", 2},
        {"QUI", 3},
        {"QQ=", 3},
        {"QUJDQ", 5},
        {"QR==", 1},
        {"QUK=", 2},
        {"QUJD\nQ\nUJD", 6},
        {"QU\r\nJD", 2},
        {"QUJD\n\tQUJD", 5},
        {"QUFB\r\nQU*B", 8},
        {"\nQ", 2},
        {"data:text/csv;base64,QUJD", 4},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        size_t size, offset = 99;
        int failed = base64_check(slice_of(faults[i].text), &size, &offset);
        if (!failed || offset != faults[i].offset)
            fail_msg("%s: %zu, not %zu", faults[i].text, offset, faults[i].offset);
    }
    size_t size, offset;
    assert_int_equal(base64_check(SLICE("QU\0D"), &size, &offset), -1);
    assert_int_equal(offset, 2);
}

static void line_breaks_stand_between_groups(void **state) {
    (void)state;
    check_good(SLICE("\r\n"), SLICE(""));
    check_good(SLICE("\nQUJD"), SLICE("ABC"));
    check_good(SLICE("QUJD\nQUJD"), SLICE("ABCABC"));
    check_good(SLICE("QUJD\r\n\r\n\r\nQUJDQUI=\r\n"), SLICE("ABCABCAB"));
    check_good(SLICE("QUJD\rQQ==\n\n"), SLICE("ABCA"));
    check_good(SLICE("QUI=\r\n\r\n\r\n"), SLICE("AB"));
}

static void wrapped_lines_of_any_width(void **state) {
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    const size_t size = 100000; /* several blocks of the decoder */
    CLEANUP(free_ptr) char *data = viv_xmalloc(size);
    CLEANUP(kept_clear) struct kept text = {0};

    (void)state;
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * i >> 3);
    encode(&text, (struct slice){data, size}, size);
    for (size_t width = 4; width < 80; width += 12) {
        CLEANUP(buffer_clear) struct buffer wrapped = {0};
        for (size_t at = 0; at < text.bytes.size; at += width) {
            size_t rest = text.bytes.size - at;
            const char *end = ends[width % COUNT_OF(ends)];
            buffer_append(&wrapped, text.bytes.data + at, rest < width ? rest : width,
                          SIZE_MAX, NULL);
            buffer_append(&wrapped, end, strlen(end), SIZE_MAX, NULL);
        }
        check_good((struct slice){wrapped.data, wrapped.size},
                   (struct slice){data, size});
    }
}

static void encoding_gives_the_same_in_any_pieces(void **state) {
    const size_t size = 120000; /* two blocks of the encoder */
    CLEANUP(free_ptr) char *data = viv_xmalloc(size);
    CLEANUP(buffer_clear) struct buffer expected = {0};

    (void)state;
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 7);
    for (size_t at = 0; at < size; at += 3) {
        char text[5];
        encode_group((const unsigned char *)data + at, 3, text);
        buffer_append(&expected, text, 4, SIZE_MAX, NULL);
    }
    const size_t pieces[] = {1, 2, 3, 53, 54, 55, 1000, 48 * 1024, size};
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        CLEANUP(kept_clear) struct kept kept = {0};
        encode(&kept, (struct slice){data, size}, pieces[i]);
        assert_int_equal(kept.bytes.size, expected.size);
        assert_memory_equal(kept.bytes.data, expected.data, expected.size);
    }
}

static void encoding_pads_every_rest(void **state) {
    char data[200];

    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (char)(200 - i);
    for (size_t size = 0; size <= sizeof data; size++) {
        CLEANUP(kept_clear) struct kept kept = {0};
        encode(&kept, (struct slice){data, size}, 7);
        assert_int_equal(kept.bytes.size, base64_encoded_size(size));
        check_good((struct slice){kept.bytes.data, kept.bytes.size},
                   (struct slice){data, size});
    }
}

static void sizes_are_foretold_without_a_check(void **state) {
    (void)state;
    assert_int_equal(base64_decoded_size(SLICE("QUJD\r\nQQ==\r\n")), 4);
    assert_int_equal(base64_decoded_size(SLICE("=")), 0);
    assert_int_equal(base64_decoded_size(SLICE("\n\n")), 0);
}

static void a_sink_that_fails_ends_the_work(void **state) {
    const size_t size = 200000;
    CLEANUP(free_ptr) char *data = viv_xcalloc(1, size);
    CLEANUP(kept_clear) struct kept text = {0};
    struct base64_encoder encoder;
    struct viv_error err;

    (void)state;
    encode(&text, (struct slice){data, size}, size);
    for (size_t fail_at = 1; fail_at <= 2; fail_at++) {
        CLEANUP(kept_clear) struct kept kept = {.fail_at = fail_at};
        assert_fails(base64_decode((struct slice){text.bytes.data, text.bytes.size}, keep,
                                   &kept, &err),
                     &err, VIV_UNAVAILABLE, "full");
        assert_int_equal(kept.calls, fail_at);
        kept.calls = 0;
        base64_encoder_init(&encoder, keep, &kept);
        assert_fails(base64_encoder_put(&encoder, (struct slice){data, size}, &err), &err,
                     VIV_UNAVAILABLE, "full");
        assert_int_equal(kept.calls, fail_at);
    }
}

static void blocks_are_neither_small_nor_large(void **state) {
    const size_t size = (size_t)1 << 20;
    CLEANUP(free_ptr) char *data = viv_xcalloc(1, size);
    CLEANUP(kept_clear) struct kept text = {0}, back = {0};

    (void)state;
    encode(&text, (struct slice){data, size}, size);
    assert_int_equal(base64_decode((struct slice){text.bytes.data, text.bytes.size}, keep,
                                   &back, NULL),
                     0);
    assert_true(text.calls < 40 && text.largest <= 65536);
    assert_true(back.calls < 40 && back.largest <= 65536);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_content_of_up_to_two_bytes),
        cmocka_unit_test(contents_of_three_bytes),
        cmocka_unit_test(every_pair_at_the_end_of_a_group),
        cmocka_unit_test(faults_are_found_where_they_are),
        cmocka_unit_test(line_breaks_stand_between_groups),
        cmocka_unit_test(wrapped_lines_of_any_width),
        cmocka_unit_test(encoding_gives_the_same_in_any_pieces),
        cmocka_unit_test(encoding_pads_every_rest),
        cmocka_unit_test(sizes_are_foretold_without_a_check),
        cmocka_unit_test(a_sink_that_fails_ends_the_work),
        cmocka_unit_test(blocks_are_neither_small_nor_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
