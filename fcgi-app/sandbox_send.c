/* SPDX-License-Identifier: MIT */
/* sandbox_call.h: sending a request. */
#include <string.h>
#include <sys/random.h>

#include "common/io.h"
#include "fcgi-app/base64.h"
#include "fcgi-app/sandbox_call.h"

struct sending {
    const struct sandbox_call *call;
    viv_time deadline;
};

static int send_data(void *context, const char *data, size_t size,
                     struct viv_error *err) {
    const struct sending *sending = context;
    struct iovec payload = {(void *)data, size};

    return frame_send(sending->call->channel, SESSION_DATA, sending->call->sequence,
                      &payload, 1, sending->deadline, err);
}

static int send_file(struct sending *sending, const struct exec_file *file,
                     struct viv_error *err) {
    struct iovec name = {(void *)file->name.data, file->name.size};

    if (frame_send(sending->call->channel, SESSION_FILE, sending->call->sequence, &name,
                   1, sending->deadline, err))
        return -1;
    return base64_decode(file->base64, send_data, sending, err);
}

static void fill_exec(const struct sandbox_call *call, const struct exec_request *request,
                      struct session_exec *exec) {
    const struct settings *settings = call->settings;

    *exec = (struct session_exec){
        .number = (uint32_t)call->number,
        .timeout_ms = call->timeout_ms,
        .grace_ms = (uint32_t)settings->interrupt_grace,
        .max_output = (uint32_t)settings->max_output,
        .max_result = (uint32_t)settings->max_result,
        .max_output_files = (uint32_t)settings->max_output_files,
        .max_file_size = settings->max_file_size,
        .max_output_total = SANDBOX_TOTAL_FILES * settings->max_file_size,
        .code_size = (uint32_t)request->code.size,
        .has_stdin = request->has_input,
        .stdin_size = (uint32_t)request->input.size,
    };
    memcpy(exec->nonce, call->nonce, sizeof exec->nonce);
}

/* Sends EXEC, and RUN with it where nothing comes between: the supervisor then wakes
 * once. */
static int send_exec(const struct sending *sending, const struct exec_request *request,
                     struct viv_error *err) {
    const struct sandbox_call *call = sending->call;
    char exec_header[FRAME_HEADER_SIZE], run_header[FRAME_HEADER_SIZE];
    char fixed[SESSION_EXEC_SIZE];
    struct session_exec exec;
    struct iovec vectors[] = {{exec_header, sizeof exec_header},
                              {fixed, sizeof fixed},
                              {(void *)request->code.data, request->code.size},
                              {(void *)request->input.data, request->input.size},
                              {run_header, sizeof run_header}};
    int count = request->file_count == 0 ? 5 : 4;

    fill_exec(call, request, &exec);
    session_exec_put(fixed, &exec);
    frame_put_header(exec_header, SESSION_EXEC, call->sequence,
                     (uint32_t)(sizeof fixed + request->code.size + request->input.size));
    frame_put_header(run_header, SESSION_RUN, call->sequence, 0);
    return io_write_full(call->channel, vectors, count, sending->deadline, err);
}

int sandbox_call_send(struct sandbox_call *call, const struct exec_request *request,
                      struct viv_error *err) {
    struct sending sending = {call, viv_after_ms(call->before_ms + SANDBOX_SEND_MS)};

    if (getrandom(call->nonce, sizeof call->nonce, 0) != (ssize_t)sizeof call->nonce)
        return viv_fail(err, VIV_SYSTEM, "getrandom: %m");
    if (send_exec(&sending, request, err))
        return -1;
    if (request->file_count == 0)
        return 0;
    for (size_t i = 0; i < request->file_count; i++)
        if (send_file(&sending, &request->files[i], err))
            return -1;
    return frame_send(call->channel, SESSION_RUN, call->sequence, NULL, 0,
                      sending.deadline, err);
}
