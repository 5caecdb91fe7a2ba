/* SPDX-License-Identifier: MIT */
#include "fcgi-app/exec_reply.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "fcgi-app/error_type.h"
#include "fcgi-app/json_base64.h"

#define PYTHON_ERROR "PythonError: "

/* Why code did not run to its end. */
struct failure {
    const char *type; /* NULL: the exception that the worker claims */
    char message[128];
};

/* "segmentation fault (SIGSEGV)", as strsignal(3) has it but without a locale. */
static void name_signal(int number, char *name, size_t size) {
    const char *words = sigdescr_np(number), *abbreviation = sigabbrev_np(number);

    if (!words || !abbreviation)
        snprintf(name, size, "signal %d", number);
    else
        snprintf(name, size, "%c%s (SIG%s)", tolower((unsigned char)words[0]), words + 1,
                 abbreviation);
}

static void describe_crash(const struct session_done *done, struct failure *failure) {
    char name[64];

    failure->type = "crash";
    if (done->signal == 0) {
        snprintf(failure->message, sizeof failure->message,
                 "The interpreter exited with status %d", done->status);
        return;
    }
    name_signal(done->signal, name, sizeof name);
    snprintf(failure->message, sizeof failure->message, "The interpreter died: %s", name);
}

static void set_failure(struct failure *failure, const char *type, const char *message) {
    failure->type = type;
    snprintf(failure->message, sizeof failure->message, "%s", message);
}

/* Whether the code ran on after somebody had it interrupted. */
static bool was_stopped(const struct call_result *result) {
    return result->end == CALL_OVERDUE ? result->interrupted
                                       : result->done.outcome == SESSION_INTERRUPTED;
}

/*
 * A sandbox that is lost in a call is a crash to the client: the code did run, so the
 * answer has the fields of a failed execution, and the session block says that all is
 * lost.
 */
static void describe_failure(const struct exec_reply *reply, struct failure *failure) {
    const struct call_result *result = reply->result;

    if (result->end == CALL_BROKEN) {
        set_failure(failure, "crash", "The sandbox was lost while the code ran");
    } else if (result->end == CALL_ENDED) {
        set_failure(failure, "interrupted", "The session was ended while the code ran");
    } else if (was_stopped(result)) {
        set_failure(failure, "interrupted",
                    "The code was interrupted, went on, and was killed");
    } else if (result->end == CALL_OVERDUE || result->done.outcome == SESSION_TIMED_OUT) {
        failure->type = "timeout";
        snprintf(failure->message, sizeof failure->message,
                 "Execution exceeded the limit of %" PRIu32 " ms", reply->timeout_ms);
    } else if (result->done.outcome == SESSION_CRASHED) {
        describe_crash(&result->done, failure);
    } else if (result->done.outcome == SESSION_OUT_OF_MEMORY) {
        set_failure(failure, "resource_limit",
                    "The code was stopped for its use of memory");
    } else if (result->done.outcome == SESSION_OUT_OF_DISK) {
        set_failure(failure, "resource_limit", "The code was stopped for its files");
    } else if (result->done.outcome == SESSION_BROKE_PROTOCOL) {
        set_failure(failure, "crash", "The interpreter broke off its connection");
    } else {
        set_failure(failure, NULL, "");
    }
}

static bool is_success(const struct call_result *result) {
    return result->end == CALL_DONE && result->done.outcome == SESSION_RAN &&
           !result->raised;
}

const char *exec_reply_outcome(const struct call_result *result) {
    const struct exec_reply reply = {.result = result};
    struct failure failure;

    if (is_success(result))
        return "ok";
    describe_failure(&reply, &failure);
    return failure.type ? failure.type : "raised";
}

static struct slice slice_of(const struct buffer *buffer) {
    return (struct slice){buffer->data, buffer->size};
}

static void write_streams(struct json_out *out, const struct call_result *result) {
    json_out_raw(out, "\"std_out\":");
    json_out_string(out, slice_of(&result->streams[0].text));
    json_out_raw(out, ",\"std_err\":");
    json_out_string(out, slice_of(&result->streams[1].text));
}

static void write_files(struct json_out *out, const struct call_result *result) {
    json_out_raw(out, ",\"output_files\":[");
    for (size_t i = 0; i < result->file_count; i++) {
        json_out_raw(out, i > 0 ? ",{\"filename\":" : "{\"filename\":");
        json_out_text(out, result->files[i].name);
        json_out_raw(out, ",\"b64_data\":");
        json_out_base64(out, slice_of(&result->files[i].content));
        json_out_raw(out, "}");
    }
    json_out_raw(out, "],\"code_runtime\":");
    json_out_unsigned(out, result->runtime_ms);
}

static void write_truncated(struct json_out *out, const struct call_result *result,
                            bool value_truncated) {
    const struct call_stream *streams = result->streams;

    if (!streams[0].truncated && !streams[1].truncated && !value_truncated)
        return;
    json_out_raw(out, ",\"truncated\":{\"std_out\":");
    json_out_bool(out, streams[0].truncated);
    json_out_raw(out, ",\"std_err\":");
    json_out_bool(out, streams[1].truncated);
    if (value_truncated)
        json_out_raw(out, ",\"final_expression\":true");
    json_out_raw(out, "}");
}

static void write_left_out(struct json_out *out, const struct call_result *result) {
    if (result->left_out_count > 0) {
        json_out_raw(out, ",\"files_left_out\":[");
        for (size_t i = 0; i < result->left_out_count; i++) {
            const struct call_left_out *file = &result->left_out[i];
            json_out_raw(out, i > 0 ? ",{\"filename\":" : "{\"filename\":");
            json_out_text(out, file->name);
            json_out_raw(out, ",\"size\":");
            json_out_unsigned(out, file->size);
            json_out_raw(out, ",\"reason\":");
            json_out_text(out, file->reason);
            json_out_raw(out, "}");
        }
        json_out_raw(out, "]");
    }
    if (result->left_out_unnamed > 0) {
        json_out_raw(out, ",\"more_files_left_out\":");
        json_out_unsigned(out, result->left_out_unnamed);
    }
}

static void write_checkpoint(struct json_out *out, const struct session_done *done) {
    static const char *const reasons[] = {
        [SESSION_HAS_THREADS] = "threads",
        [SESSION_HAS_OPEN_FILES] = "open_files",
        [SESSION_HAS_SHARED_MEMORY] = "shared_memory",
        [SESSION_TOO_MUCH_MEMORY] = "memory",
        [SESSION_NOT_COPIED] = "refused",
    };

    json_out_raw(out, ",\"checkpoint\":");
    if (done->checkpoint > 0)
        json_out_unsigned(out, done->checkpoint);
    else
        json_out_raw(out, "null");
    if (done->skipped != SESSION_NOT_SKIPPED) {
        json_out_raw(out, ",\"checkpoint_skipped\":");
        json_out_text(out, reasons[done->skipped]);
    }
    if (done->restored_to > 0) {
        json_out_raw(out, ",\"restored_to\":");
        json_out_unsigned(out, done->restored_to);
    }
}

static void write_session(struct json_out *out, const struct exec_reply *reply) {
    json_out_raw(out, ",\"session\":{\"id\":");
    json_out_text(out, reply->session_id);
    json_out_raw(out, ",\"created\":");
    json_out_bool(out, reply->created);
    json_out_raw(out, ",\"lost\":");
    json_out_text(out, reply->lost);
    json_out_raw(out, ",\"execution_count\":");
    json_out_unsigned(out, reply->execution_count);
    if (reply->result->end == CALL_DONE)
        write_checkpoint(out, &reply->result->done);
    else
        json_out_raw(out, ",\"checkpoint\":null");
    json_out_raw(out, "}}");
}

static void write_success(struct json_out *out, const struct exec_reply *reply) {
    const struct call_result *result = reply->result;

    json_out_raw(out, "{\"success\":true,\"result\":{\"success\":true,");
    write_streams(out, result);
    json_out_raw(out, ",\"final_expression\":");
    if (result->value.size == 0)
        json_out_raw(out, "null");
    else if (result->value_is_json)
        json_out_splice(out, slice_of(&result->value));
    else
        json_out_string(out, slice_of(&result->value));
    json_out_raw(out, ",\"final_expression_type\":");
    if (result->value_type.size == 0)
        json_out_raw(out, "null");
    else
        json_out_string(out, slice_of(&result->value_type));
    write_files(out, result);
    write_truncated(out, result, result->value_truncated);
    write_left_out(out, result);
    json_out_raw(out, "}");
}

/* The message of one string in JSON, made of two texts. */
static void write_message(struct json_out *out, const char *head, struct slice text) {
    struct buffer whole = {0};

    if (buffer_append(&whole, head, strlen(head), SIZE_MAX / 2, NULL) ||
        buffer_append(&whole, text.data, text.size, SIZE_MAX / 2, NULL))
        out->failed = true;
    json_out_string(out, slice_of(&whole));
    buffer_clear(&whole);
}

/* The worker says what was raised. Where the text does not begin as the contract has it,
 * it is made to; and no exception passes for an error of the service. */
static void write_exception(struct json_out *out, const struct call_result *result) {
    struct slice type = slice_of(&result->error_type),
                 text = slice_of(&result->error_text);
    size_t prefix = sizeof PYTHON_ERROR - 1;
    bool is_marked = text.size >= prefix && memcmp(text.data, PYTHON_ERROR, prefix) == 0;

    json_out_raw(out, "{\"type\":");
    write_message(out, error_type_is_ours(type) ? "__main__." : "", type);
    json_out_raw(out, ",\"message\":");
    write_message(out, is_marked ? "" : PYTHON_ERROR, text);
}

/* Whether the exception that the worker claims belongs to the answer: code that was
 * interrupted in time says where it was. */
static bool tells_where(const struct failure *failure, const struct call_result *result) {
    return result->raised && (!failure->type || strcmp(failure->type, "timeout") == 0);
}

static void write_own_error(struct json_out *out, const struct failure *failure,
                            const struct call_result *result) {
    char head[sizeof failure->message + 1];

    json_out_raw(out, "{\"type\":");
    json_out_text(out, failure->type);
    json_out_raw(out, ",\"message\":");
    if (!tells_where(failure, result)) {
        json_out_text(out, failure->message);
        return;
    }
    snprintf(head, sizeof head, "%s\n", failure->message);
    write_message(out, head, slice_of(&result->error_text));
}

static void write_failure(struct json_out *out, const struct exec_reply *reply) {
    const struct call_result *result = reply->result;
    struct failure failure;

    describe_failure(reply, &failure);
    json_out_raw(out, "{\"success\":false,\"error\":");
    if (!failure.type)
        write_exception(out, result);
    else
        write_own_error(out, &failure, result);
    if (tells_where(&failure, result) && result->error_line > 0) {
        json_out_raw(out, ",\"line\":");
        json_out_unsigned(out, result->error_line);
    }
    json_out_raw(out, "},");
    write_streams(out, result);
    write_files(out, result);
    write_truncated(out, result, false);
    write_left_out(out, result);
}

void exec_reply_write(struct json_out *out, const void *context) {
    const struct exec_reply *reply = context;

    if (is_success(reply->result))
        write_success(out, reply);
    else
        write_failure(out, reply);
    write_session(out, reply);
}
