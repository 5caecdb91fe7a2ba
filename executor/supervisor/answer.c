/* SPDX-License-Identifier: MIT */
#include "executor/supervisor/answer.h"

#include "executor/supervisor/collect.h"

/* Sends one frame of the call; for collect_files(), too. */
static int send_parts(void *context, uint8_t type, struct slice first,
                      struct slice second) {
    struct answer *answer = context;

    if (answer->call->client_gone)
        return -1;
    return client_channel_send(answer->client, type, answer->call->sequence, first,
                               second);
}

static int send_frame(struct answer *answer, uint8_t type, const void *data,
                      size_t size) {
    return send_parts(answer, type, (struct slice){data, size}, (struct slice){0});
}

void answer_refuse(struct answer *answer) {
    char payload[SESSION_REFUSED_SIZE];

    session_refused_put(payload, &answer->call->upload.refused);
    send_frame(answer, SESSION_REFUSED, payload, sizeof payload);
    client_channel_flush(answer->client);
}

int answer_finish(struct answer *answer, int home, struct session_done *done,
                  struct slice claims) {
    const struct session_exec *exec = &answer->call->exec;
    char payload[SESSION_DONE_SIZE];
    const struct collection collection = {
        .home = home,
        .before = &answer->call->before,
        .max_files = exec->max_output_files,
        .max_file_size = exec->max_file_size,
        .max_total = exec->max_output_total,
        .send = send_parts,
        .context = answer,
    };

    if (claims.data && !answer->call->client_gone)
        send_frame(answer, SESSION_RESULT, claims.data, claims.size);
    if (!answer->call->client_gone)
        collect_files(&collection, &done->files_left_out, NULL);
    call_fill_done(answer->call, done);
    session_done_put(payload, done);
    if (send_frame(answer, SESSION_DONE, payload, sizeof payload))
        return -1;
    return client_channel_flush(answer->client);
}
