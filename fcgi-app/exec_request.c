/* SPDX-License-Identifier: MIT */
/*
 * From a body to a request, in the order that the header gives: scan and parse, the form
 * of all members, counts and sizes, names, base64. jansson sees the skeleton of the body
 * only.
 */
#include "fcgi-app/exec_request.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/filename.h"
#include "fcgi-app/base64.h"
#include "fcgi-app/body_scan.h"

struct reader {
    const struct body_scan *scan;
    const struct settings *settings;
    struct validation_details *details;
    struct exec_request request;
    json_t *files; /* borrowed from the document; an array or NULL */
};

static inline void json_decref_cleanup(json_t **value) { json_decref(*value); }

static const char *parse_failure(enum json_error_code code) {
    switch (code) {
    case json_error_premature_end_of_input:
        return "it ends too early";
    case json_error_end_of_input_expected:
        return "something follows its end";
    case json_error_duplicate_key:
        return "a member is given twice";
    case json_error_numeric_overflow:
        return "a number is out of range";
    default:
        return "a syntax error";
    }
}

/* jansson's own error text quotes the input, so only its code and position are used. */
static json_t *parse(const struct body_scan *scan, struct viv_error *err) {
    const struct buffer *skeleton = &scan->skeleton;
    json_error_t error;

    if (skeleton->size == 0)
        return viv_fail_null(err, VIV_NOT_JSON, "the body is not JSON: it is empty");
    json_t *document = json_loadb(skeleton->data, skeleton->size,
                                  JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (document)
        return document;
    enum json_error_code code = json_error_code(&error);
    if (code == json_error_out_of_memory)
        return viv_fail_null(err, VIV_CAPACITY, "no memory for the body");
    return viv_fail_null(err, VIV_NOT_JSON, "the body is not JSON: %s near byte %zu",
                         parse_failure(code),
                         body_scan_offset(scan, (size_t)error.position));
}

static const char *type_name(const json_t *value) {
    if (!value)
        return "is missing";
    switch (json_typeof(value)) {
    case JSON_OBJECT:
        return "is an object";
    case JSON_ARRAY:
        return "is an array";
    case JSON_STRING:
        return "is a string";
    case JSON_INTEGER:
        return "is an integer";
    case JSON_REAL:
        return "is a number with fraction or exponent";
    case JSON_NULL:
        return "is null";
    default:
        return "is a boolean";
    }
}

static void expect(struct reader *r, const char *path, const char *name,
                   const json_t *value, const char *expected) {
    validation_add(r->details, "body", path, expected, "%s: %s %s is expected, but it %s",
                   name, strchr("aeiou", expected[0]) ? "an" : "a", expected,
                   type_name(value));
}

/* Null counts as absent for members that may be. */
static json_t *optional_member(const json_t *object, const char *name) {
    json_t *value = json_object_get(object, name);

    return json_is_null(value) ? NULL : value;
}

static struct slice text_of(const struct reader *r, const json_t *string) {
    return body_scan_string(r->scan, json_string_value(string));
}

static void read_timeout(struct reader *r, const json_t *value) {
    uint64_t highest = r->settings->max_exec_timeout;
    json_int_t given = json_integer_value(value);

    r->request.timeout_ms = (uint32_t)r->settings->exec_timeout;
    if (!value)
        return;
    if (!json_is_integer(value))
        expect(r, "/timeout_ms", "timeout_ms", value, "integer");
    else if (given < 1 || (uint64_t)given > highest)
        validation_add(r->details, "body", "/timeout_ms", "integer",
                       "timeout_ms: a number from 1 to %" PRIu64 " is expected", highest);
    else
        r->request.timeout_ms = (uint32_t)given;
}

/* The form of all members but the files' own. */
static void read_members(struct reader *r, const json_t *document) {
    const json_t *code = json_object_get(document, "code");
    const json_t *input = optional_member(document, "stdin");

    if (json_is_string(code))
        r->request.code = text_of(r, code);
    else
        expect(r, "/code", "code", code, "string");
    if (json_is_string(input)) {
        r->request.has_input = true;
        r->request.input = text_of(r, input);
    } else if (input) {
        expect(r, "/stdin", "stdin", input, "string");
    }
    read_timeout(r, optional_member(document, "timeout_ms"));
    json_t *files = optional_member(document, "files");
    if (json_is_array(files))
        r->files = files;
    else if (files)
        expect(r, "/files", "files", files, "array");
}

static void check_file_member(struct reader *r, size_t index, const json_t *file,
                              const char *member) {
    const json_t *value = json_object_get(file, member);
    char path[64], name[64];

    if (json_is_string(value))
        return;
    snprintf(path, sizeof path, "/files/%zu/%s", index, member);
    snprintf(name, sizeof name, "files[%zu].%s", index, member);
    expect(r, path, name, value, "string");
}

static void check_files(struct reader *r) {
    size_t index;
    json_t *file;

    json_array_foreach(r->files, index, file) {
        char path[64], name[64];
        if (json_is_object(file)) {
            check_file_member(r, index, file, "filename");
            check_file_member(r, index, file, "b64_data");
            continue;
        }
        snprintf(path, sizeof path, "/files/%zu", index);
        snprintf(name, sizeof name, "files[%zu]", index);
        expect(r, path, name, file, "object");
    }
}

/* Fails with the first detail as its message. */
static int fail_with_details(const struct validation_details *details, enum viv_code code,
                             struct viv_error *err) {
    size_t more = details->count - 1 + details->untold;

    if (more == 0)
        return viv_fail(err, code, "%s", details->items[0].message);
    return viv_fail(err, code, "%s (and %zu more)", details->items[0].message, more);
}

static int check_form(struct reader *r, const json_t *document, struct viv_error *err) {
    if (!json_is_object(document)) {
        expect(r, "", "body", document, "object");
        return fail_with_details(r->details, VIV_VALIDATION, err);
    }
    read_members(r, document);
    size_t own = r->details->count;
    check_files(r);
    if (r->details->count == 0)
        return 0;
    return fail_with_details(r->details, own > 0 ? VIV_VALIDATION : VIV_PARSING, err);
}

static int check_text_size(const char *name, size_t size, uint64_t limit,
                           struct viv_error *err) {
    if (size <= limit)
        return 0;
    return viv_fail(err, VIV_RESOURCE_LIMIT,
                    "%s: %zu bytes, at most %" PRIu64 " are allowed", name, size, limit);
}

static int check_sizes(struct reader *r, struct viv_error *err) {
    const struct settings *settings = r->settings;
    struct exec_request *request = &r->request;
    size_t count = json_array_size(r->files);

    if (check_text_size("code", request->code.size, settings->max_code, err) ||
        check_text_size("stdin", request->input.size, settings->max_stdin, err))
        return -1;
    if (count > settings->max_files)
        return viv_fail(err, VIV_RESOURCE_LIMIT,
                        "files: %zu files, at most %" PRIu64 " are allowed", count,
                        settings->max_files);
    if (count == 0)
        return 0;
    request->files = viv_xcalloc(count, sizeof *request->files);
    request->file_count = count;
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(r->files, i);
        struct exec_file *file = &request->files[i];
        char name[64];
        file->index = i;
        file->name = text_of(r, json_object_get(object, "filename"));
        file->base64 = text_of(r, json_object_get(object, "b64_data"));
        if (file->base64.size / 4 * 3 <= settings->max_file_size)
            continue; /* with line breaks it is even less */
        snprintf(name, sizeof name, "files[%zu].b64_data, decoded", i);
        if (check_text_size(name, base64_decoded_size(file->base64),
                            settings->max_file_size, err))
            return -1;
    }
    return 0;
}

static bool same_name(const struct exec_file *a, const struct exec_file *b) {
    return a->name.size == b->name.size &&
           memcmp(a->name.data, b->name.data, a->name.size) == 0;
}

static int check_names(const struct exec_request *request, struct viv_error *err) {
    const struct exec_file *files = request->files;

    for (size_t i = 0; i < request->file_count; i++) {
        const char *refusal = filename_refusal(files[i].name);
        if (refusal)
            return viv_fail(err, VIV_PARSING, "files[%zu].filename is refused: %s", i,
                            refusal);
    }
    for (size_t i = 0; i < request->file_count; i++)
        for (size_t k = 0; k < request->file_count; k++)
            if (filename_is_folder_of(files[i].name, files[k].name))
                return viv_fail(err, VIV_PARSING,
                                "files[%zu].filename is a folder of files[%zu].filename",
                                i, k);
    return 0;
}

static int check_base64(struct exec_request *request, struct viv_error *err) {
    for (size_t i = 0; i < request->file_count; i++) {
        struct exec_file *file = &request->files[i];
        size_t offset;
        if (base64_check(file->base64, &file->size, &offset) == 0)
            continue;
        const char *fault =
            offset < file->base64.size ? "not base64" : "base64 that ends too early";
        return viv_fail(err, VIV_PARSING, "files[%zu].b64_data: %s at offset %zu", i,
                        fault, offset);
    }
    return 0;
}

/* Of files with the same name the last stays. */
static void drop_repeated(struct exec_request *request) {
    size_t kept = 0;

    for (size_t i = 0; i < request->file_count; i++) {
        size_t later = i + 1;
        while (later < request->file_count &&
               !same_name(&request->files[i], &request->files[later]))
            later++;
        if (later == request->file_count)
            request->files[kept++] = request->files[i];
    }
    request->file_count = kept;
}

int exec_request_parse(char *body, size_t size, const struct settings *settings,
                       struct exec_request *request, struct validation_details *details,
                       struct viv_error *err) {
    CLEANUP(body_scan_clear) struct body_scan scan = {0};

    if (body_scan(body, size, &scan, err))
        return -1;
    CLEANUP(json_decref) json_t *document = parse(&scan, err);
    if (!document)
        return -1;
    struct reader reader = {.scan = &scan, .settings = settings, .details = details};
    if (check_form(&reader, document, err))
        return -1;
    CLEANUP(exec_request_clear) struct exec_request checked = {0};
    int failed = check_sizes(&reader, err);
    checked = reader.request;
    if (failed || check_names(&checked, err) || check_base64(&checked, err))
        return -1;
    drop_repeated(&checked);
    *request = checked;
    checked = (struct exec_request){0};
    return 0;
}

void exec_request_clear(struct exec_request *request) {
    free(request->files);
    *request = (struct exec_request){0};
}
