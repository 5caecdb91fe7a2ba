/* SPDX-License-Identifier: MIT */
#include "fcgi-app/adoption.h"

#include <inttypes.h>

#include "common/log.h"

static bool was_suspect(const struct adoption *adoption, uint64_t sandbox) {
    for (size_t i = 0; i < adoption->suspect_count; i++)
        if (adoption->suspects[i] == sandbox)
            return true;
    return false;
}

static bool adopt(struct app *app, const struct executor_entry *entry) {
    struct slice bytes = {entry->record, entry->record_size};
    struct session_record record;

    return session_record_get(bytes, &record, NULL) == 0 &&
           sessions_adopt(app->sessions, &record, entry->sandbox, NULL) == 0;
}

static void suspect(const struct adoption *adoption, struct adoption *next,
                    struct app *app, uint64_t sandbox) {
    struct viv_error err;

    if (!was_suspect(adoption, sandbox)) {
        if (next->suspect_count < ADOPTION_SUSPECTS_MAX)
            next->suspects[next->suspect_count++] = sandbox;
        return;
    }
    viv_log(VIV_LOG_WARNING, "sandbox_without_session", "sandbox=%" PRIu64, sandbox);
    executor_end(&app->executor, sandbox, &err);
}

/* One walk over the executor's sandboxes. */
static int walk(const struct adoption *adoption, struct adoption *next, struct app *app,
                size_t *adopted, struct viv_error *err) {
    struct executor_entry entry = {.sandbox = 0};

    for (;;) {
        if (executor_next(&app->executor, entry.sandbox, &entry, err))
            return -1;
        if (entry.sandbox == 0)
            return 0;
        if (sessions_have_sandbox(app->sessions, entry.sandbox))
            continue;
        if (!adoption->done && adopt(app, &entry))
            ++*adopted;
        else
            suspect(adoption, next, app, entry.sandbox);
    }
}

size_t adoption_tick(struct adoption *adoption, struct app *app, viv_time now) {
    struct adoption next = {.done = true, .next = now + ADOPTION_INTERVAL_MS * VIV_MS};
    struct viv_error err;
    size_t adopted = 0;

    if (now < adoption->next)
        return 0;
    if (walk(adoption, &next, app, &adopted, &err) == 0) {
        *adoption = next;
        app->adopting = false;
    } else if (app->adopting && !adoption->failed) {
        adoption->failed = true;
        viv_log_failure(VIV_LOG_WARNING, "sessions_not_known", err.message, NULL);
    }
    if (adopted > 0)
        viv_log(VIV_LOG_INFO, "sessions_taken_over", "count=%zu", adopted);
    return adopted;
}
