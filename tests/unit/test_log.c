/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"

/* What is written to standard error between the two calls. */
struct capture {
    int saved;
    int from;
};

static struct capture capture_begin(void) {
    int ends[2];
    struct capture capture = {.saved = dup(STDERR_FILENO)};

    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    close(ends[1]);
    capture.from = ends[0];
    return capture;
}

static void capture_end(struct capture *capture, char *text, size_t size) {
    assert_true(dup2(capture->saved, STDERR_FILENO) >= 0);
    close(capture->saved);
    ssize_t got = read(capture->from, text, size - 1);
    close(capture->from);
    text[got > 0 ? got : 0] = '\0';
}

static void writes_a_line(void **state) {
    char text[4096];

    (void)state;
    struct capture capture = capture_begin();
    viv_log(VIV_LOG_INFO, "ready", "sandbox=%d took_us=%d", 3, 812);
    viv_log(VIV_LOG_ERROR, "broken", "%s", "");
    capture_end(&capture, text, sizeof text);
    assert_string_equal(text, "level=info event=ready sandbox=3 took_us=812\n"
                              "level=error event=broken\n");
}

static void leaves_out_what_is_below_the_level(void **state) {
    char text[4096];

    (void)state;
    struct capture capture = capture_begin();
    viv_log_set_level(VIV_LOG_WARNING);
    viv_log(VIV_LOG_INFO, "quiet", "a=1");
    viv_log(VIV_LOG_WARNING, "loud", "a=1");
    viv_log_set_level(VIV_LOG_INFO);
    capture_end(&capture, text, sizeof text);
    assert_string_equal(text, "level=warning event=loud a=1\n");
}

static void cuts_long_lines_at_one_line(void **state) {
    char text[8192], longer[4096];

    (void)state;
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    struct capture capture = capture_begin();
    viv_log(VIV_LOG_INFO, "long", "%s", longer);
    capture_end(&capture, text, sizeof text);
    size_t size = strlen(text);
    assert_true(size > 500 && size < sizeof longer);
    assert_ptr_equal(strchr(text, '\n'), text + size - 1);
}

static void tells_why_something_failed(void **state) {
    char text[4096];

    (void)state;
    struct capture capture = capture_begin();
    viv_log_failure(VIV_LOG_ERROR, "lost", "open /a: no", NULL);
    viv_log_failure(VIV_LOG_INFO, "late", "", "retry_ms=%d", 100);
    viv_log_failure(VIV_LOG_DEBUG, "quiet", "no", NULL);
    capture_end(&capture, text, sizeof text);
    assert_string_equal(text, "level=error event=lost reason=\"open /a: no\"\n"
                              "level=info event=late retry_ms=100 reason=\"\"\n");
}

static void quotes_the_reason(void **state) {
    char text[4096];

    (void)state;
    struct capture capture = capture_begin();
    viv_log_failure(VIV_LOG_ERROR, "lost", "a\"\nlevel=info event=ready", "x=%s", "y");
    capture_end(&capture, text, sizeof text);
    assert_string_equal(
        text,
        "level=error event=lost x=y reason=\"a\\x22\\x0alevel=info event=ready\"\n");
}

static void cuts_long_reasons_inside_their_quotes(void **state) {
    char text[8192], longer[4096];

    (void)state;
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    struct capture capture = capture_begin();
    viv_log_failure(VIV_LOG_ERROR, "long", longer, "fields=%s", longer);
    capture_end(&capture, text, sizeof text);
    size_t size = strlen(text);
    assert_true(size > 500 && size < sizeof longer);
    assert_string_equal(text + size - 3, "x\"\n");
    assert_non_null(strstr(text, "x reason=\"x"));
}

static void knows_its_levels(void **state) {
    (void)state;
    assert_int_equal(viv_log_level_of("error"), VIV_LOG_ERROR);
    assert_int_equal(viv_log_level_of("warning"), VIV_LOG_WARNING);
    assert_int_equal(viv_log_level_of("info"), VIV_LOG_INFO);
    assert_int_equal(viv_log_level_of("debug"), VIV_LOG_DEBUG);
    assert_int_equal(viv_log_level_of("loud"), -1);
    assert_int_equal(viv_log_level_of(""), -1);
}

static void quotes_what_is_not_plain(void **state) {
    char buffer[128];

    (void)state;
    assert_string_equal(viv_log_quote(buffer, sizeof buffer, "a b=c"), "\"a b=c\"");
    assert_string_equal(viv_log_quote(buffer, sizeof buffer, ""), "\"\"");
    assert_string_equal(viv_log_quote(buffer, sizeof buffer, "a\"\\\n\x1b\x7f\xc3\xbc"),
                        "\"a\\x22\\x5c\\x0a\\x1b\\x7f\\xc3\\xbc\"");
}

static void quotes_into_any_room(void **state) {
    (void)state;
    for (size_t size = 0; size < 64; size++) {
        /* On the heap, so that a sanitizer sees a byte too many. */
        CLEANUP(free_ptr) char *room = viv_xmalloc(size);
        const char *quoted =
            viv_log_quote(room, size, "some text\x01\x02\x03 and more of it");
        size_t length = strlen(quoted);
        assert_true(length >= 2 && (length < size || size < 3));
        assert_int_equal(quoted[0], '"');
        assert_int_equal(quoted[length - 1], '"');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_a_line),
        cmocka_unit_test(leaves_out_what_is_below_the_level),
        cmocka_unit_test(cuts_long_lines_at_one_line),
        cmocka_unit_test(tells_why_something_failed),
        cmocka_unit_test(quotes_the_reason),
        cmocka_unit_test(cuts_long_reasons_inside_their_quotes),
        cmocka_unit_test(knows_its_levels),
        cmocka_unit_test(quotes_what_is_not_plain),
        cmocka_unit_test(quotes_into_any_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
