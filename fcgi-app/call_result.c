/* SPDX-License-Identifier: MIT */
#include "fcgi-app/call_result.h"

#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "fcgi-app/json_value.h"

#define TYPE_NAME_MAX  256
#define ERROR_TEXT_MAX (64 * 1024)

static const char cut_mark[] = "\n[the message is cut here]";

void call_result_init(struct call_result *result, struct budget *bytes) {
    *result = (struct call_result){.share = {.budget = bytes}};
}

void call_result_add_output(struct call_result *result, int stream, struct slice data) {
    struct call_stream *to = &result->streams[stream];

    /* Once something was dropped, nothing after it may look as if it followed. */
    if (to->truncated || !budget_take(&result->share, data.size) ||
        buffer_append(&to->text, data.data, data.size, SIZE_MAX / 2, NULL))
        to->truncated = true;
}

static int keep(struct buffer *to, struct slice text) {
    return buffer_append(to, text.data, text.size, SIZE_MAX / 2, NULL);
}

/* Keeps text that is cut at `limit`, with the mark (may be "") behind it where it was. */
static int keep_short(struct buffer *to, struct slice text, size_t limit,
                      const char *mark) {
    size_t fits = utf8_cut(text.data, text.size, limit);

    if (keep(to, (struct slice){text.data, fits}))
        return -1;
    return fits < text.size ? keep(to, (struct slice){mark, strlen(mark)}) : 0;
}

static void keep_value(struct call_result *result, struct slice value) {
    if (!budget_take(&result->share, value.size) || keep(&result->value, value))
        result->value_truncated = true;
    else
        result->value_is_json = json_value_is_fit(value, &result->share);
}

int call_result_add_claims(struct call_result *result, struct slice payload,
                           struct viv_error *err) {
    struct slice claims[CLAIM_COUNT];

    if (session_claims_get(payload, claims, err) || session_claims_check(claims, err))
        return -1;
    struct slice cut = claims[CLAIM_VALUE_CUT];
    result->has_claims = true;
    result->raised = claims[CLAIM_STATUS].data[0] == 1;
    result->value_truncated = cut.data && cut.data[0] != 0;
    if (claims[CLAIM_ERROR_LINE].data)
        result->error_line = get_u32(claims[CLAIM_ERROR_LINE].data);
    if (claims[CLAIM_VALUE].size > 0)
        keep_value(result, claims[CLAIM_VALUE]);
    if (keep_short(&result->value_type, claims[CLAIM_VALUE_TYPE], TYPE_NAME_MAX, "") ||
        keep_short(&result->error_type, claims[CLAIM_ERROR_TYPE], TYPE_NAME_MAX, "") ||
        keep_short(&result->error_text, claims[CLAIM_ERROR_TEXT], ERROR_TEXT_MAX,
                   cut_mark))
        return viv_fail(err, VIV_BAD_GATEWAY, "no memory for the claims");
    return 0;
}

/* Room for one more item of an array that doubles. */
static void *grow(void *items, size_t count, size_t item_size) {
    if (count > 0 && (count & (count - 1)) != 0)
        return items;
    return viv_xrealloc(items, (count > 0 ? 2 * count : 1) * item_size);
}

static char *copy_name(struct slice name) {
    char *copy = viv_xmalloc(name.size + 1);

    memcpy(copy, name.data, name.size);
    copy[name.size] = '\0';
    return copy;
}

void call_result_add_file(struct call_result *result, struct slice name,
                          struct buffer *content) {
    result->files = grow(result->files, result->file_count, sizeof *result->files);
    result->files[result->file_count++] = (struct call_file){copy_name(name), *content};
    *content = (struct buffer){0};
}

void call_result_add_left_out(struct call_result *result, struct slice name,
                              uint64_t size, const char *reason) {
    if (result->left_out_count == SESSION_LEFT_OUT_MAX ||
        !budget_take(&result->share, name.size)) {
        result->left_out_unnamed++;
        return;
    }
    result->left_out =
        grow(result->left_out, result->left_out_count, sizeof *result->left_out);
    result->left_out[result->left_out_count++] =
        (struct call_left_out){copy_name(name), size, reason};
}

const char *call_left_out_word(enum session_left_out reason) {
    static const char *const words[SESSION_LEFT_OUT_COUNT] = {
        [SESSION_INCLUDED] = "included",
        [SESSION_TOO_LARGE] = "too_large",
        [SESSION_TOO_MANY] = "too_many",
        [SESSION_TOTAL_TOO_LARGE] = "total_too_large",
        [SESSION_UNREADABLE] = "unreadable",
        [SESSION_TOO_DEEP] = "too_deep",
        [SESSION_NAME_REFUSED] = "name",
        [SESSION_CHANGED] = "changed",
    };

    return words[reason];
}

/* The size without a sequence at the end that was cut in two. */
static size_t without_cut_sequence(const char *text, size_t size) {
    for (size_t back = 1; back <= 3 && back <= size; back++) {
        unsigned char lead = (unsigned char)text[size - back];
        if (lead < 0x80)
            return size;
        if (lead < 0xc0)
            continue;
        size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
        return length > back ? size - back : size;
    }
    return size;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct call_file *)a)->name,
                  ((const struct call_file *)b)->name);
}

static int by_left_out_name(const void *a, const void *b) {
    return strcmp(((const struct call_left_out *)a)->name,
                  ((const struct call_left_out *)b)->name);
}

static void clear_file(struct call_file *file) {
    free(file->name);
    buffer_clear(&file->content);
}

/* Sorts by name; of files with one name, which a folder renamed meanwhile can make, one
 * stays. */
static void sort_files(struct call_result *result) {
    size_t kept = 0;

    if (result->file_count < 2)
        return;
    qsort(result->files, result->file_count, sizeof *result->files, by_name);
    for (size_t i = 1; i < result->file_count; i++) {
        if (by_name(&result->files[kept], &result->files[i]) == 0)
            clear_file(&result->files[i]);
        else
            result->files[++kept] = result->files[i];
    }
    result->file_count = kept + 1;
}

void call_result_finish(struct call_result *result) {
    for (int i = 0; i < 2; i++) {
        struct call_stream *stream = &result->streams[i];
        if (stream->truncated)
            stream->text.size =
                without_cut_sequence(stream->text.data, stream->text.size);
    }
    sort_files(result);
    if (result->left_out_count > 1)
        qsort(result->left_out, result->left_out_count, sizeof *result->left_out,
              by_left_out_name);
}

void call_result_clear(struct call_result *result) {
    for (int i = 0; i < 2; i++)
        buffer_clear(&result->streams[i].text);
    for (size_t i = 0; i < result->file_count; i++)
        clear_file(&result->files[i]);
    for (size_t i = 0; i < result->left_out_count; i++)
        free(result->left_out[i].name);
    free(result->files);
    free(result->left_out);
    buffer_clear(&result->value);
    buffer_clear(&result->value_type);
    buffer_clear(&result->error_type);
    buffer_clear(&result->error_text);
    budget_release(&result->share);
    *result = (struct call_result){.share = {.budget = result->share.budget}};
}
