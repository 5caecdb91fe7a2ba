/* SPDX-License-Identifier: MIT */
/*
 * Request bodies. A scanned body and a plain one must mean the same to the parser; and a
 * request that is taken keeps what its header promises.
 */
#include "tests/fuzz/fuzz.h"

#include <jansson.h>

#include "common/cleanup.h"
#include "common/filename.h"
#include "fcgi-app/base64.h"
#include "fcgi-app/body_scan.h"
#include "fcgi-app/exec_request.h"

#define FLAGS (JSON_REJECT_DUPLICATES | JSON_DECODE_ANY)

static void check_same(const json_t *plain, const json_t *lifted,
                       const struct body_scan *scan);

static void check_same_members(const json_t *plain, const json_t *lifted,
                               const struct body_scan *scan) {
    json_t *object = (json_t *)plain; /* iterating takes no const */

    MUST(json_object_size(plain) == json_object_size(lifted));
    for (void *member = json_object_iter(object); member;
         member = json_object_iter_next(object, member))
        check_same(json_object_iter_value(member),
                   json_object_get(lifted, json_object_iter_key(member)), scan);
}

static void check_same(const json_t *plain, const json_t *lifted,
                       const struct body_scan *scan) {
    MUST(lifted && json_typeof(plain) == json_typeof(lifted));
    if (json_is_string(plain)) {
        struct slice text = body_scan_string(scan, json_string_value(lifted));
        MUST(text.size == json_string_length(plain));
        MUST(memcmp(text.data, json_string_value(plain), text.size) == 0);
    } else if (json_is_object(plain)) {
        check_same_members(plain, lifted, scan);
    } else if (json_is_array(plain)) {
        MUST(json_array_size(plain) == json_array_size(lifted));
        for (size_t i = 0; i < json_array_size(plain); i++)
            check_same(json_array_get(plain, i), json_array_get(lifted, i), scan);
    } else {
        MUST(json_equal(plain, lifted));
    }
}

static int is_bound(const char *message) {
    return strstr(message, "nested more") || strstr(message, "tokens") ||
           strstr(message, "too much");
}

static char *copy_of(const uint8_t *data, size_t size) {
    char *copy = viv_xmalloc(size);

    if (size > 0)
        memcpy(copy, data, size);
    return copy;
}

static void compare_with_plain(const uint8_t *data, size_t size) {
    CLEANUP(free_ptr) char *body = copy_of(data, size);
    CLEANUP(body_scan_clear) struct body_scan scan = {0};
    struct viv_error err;
    json_error_t error;

    int failed = body_scan(body, size, &scan, &err);
    if (failed && is_bound(err.message))
        return;
    json_t *plain = json_loadb((const char *)data, size, FLAGS, NULL);
    if (failed) {
        /* jansson passes over a NUL that follows a number. */
        MUST(!plain || memchr(data, '\0', size));
        json_decref(plain);
        return;
    }
    json_t *lifted = json_loadb(scan.skeleton.data ? scan.skeleton.data : "",
                                scan.skeleton.size, FLAGS, &error);
    MUST(!plain == !lifted);
    if (plain)
        check_same(plain, lifted, &scan);
    else
        MUST(body_scan_offset(&scan, (size_t)error.position) <= size);
    json_decref(plain);
    json_decref(lifted);
}

static int count_bytes(void *context, const char *data, size_t size,
                       struct viv_error *err) {
    (void)data;
    (void)err;
    *(size_t *)context += size;
    return 0;
}

static void check_files(const struct exec_request *request,
                        const struct settings *settings) {
    for (size_t i = 0; i < request->file_count; i++) {
        const struct exec_file *file = &request->files[i];
        size_t decoded = 0;
        MUST(!filename_refusal(file->name) && file->size <= settings->max_file_size);
        MUST(base64_decode(file->base64, count_bytes, &decoded, NULL) == 0);
        MUST(decoded == file->size);
        for (size_t k = 0; k < i; k++) {
            struct slice other = request->files[k].name;
            MUST(!filename_is_folder_of(file->name, other));
            MUST(!filename_is_folder_of(other, file->name));
            MUST(other.size != file->name.size ||
                 memcmp(other.data, file->name.data, other.size) != 0);
        }
    }
}

static void check_request(const uint8_t *data, size_t size) {
    const struct settings settings = {
        .max_code = 64,
        .max_stdin = 64,
        .max_files = 3,
        .max_file_size = 64,
        .exec_timeout = 30000,
        .max_exec_timeout = 300000,
    };
    CLEANUP(free_ptr) char *body = copy_of(data, size);
    CLEANUP(exec_request_clear) struct exec_request request = {0};
    struct validation_details details = {0};
    struct viv_error err;

    if (exec_request_parse(body, size, &settings, &request, &details, &err)) {
        MUST(!request.files && request.file_count == 0);
        MUST((err.code == VIV_VALIDATION) <= (details.count > 0));
        return;
    }
    MUST(details.count == 0);
    MUST(request.code.size <= settings.max_code &&
         request.input.size <= settings.max_stdin);
    MUST(request.timeout_ms >= 1 && request.timeout_ms <= settings.max_exec_timeout);
    MUST(request.file_count <= settings.max_files);
    check_files(&request, &settings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    compare_with_plain(data, size);
    check_request(data, size);
    return 0;
}
