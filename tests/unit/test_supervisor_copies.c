/* SPDX-License-Identifier: MIT */
/* Workers that say what they should not while they are copied. */
#include "tests/unit/checkpoints_bench.h"

#define COPIED                                                                           \
    { WORKER_COPIED, 0, WORKER_COPIED_SIZE, 1 }
#define NOT_COPIED                                                                       \
    { WORKER_COPIED, 0, WORKER_COPIED_SIZE, 0 }
#define RESTORED                                                                         \
    { WORKER_RESTORED, 0, 0, 0 }

static const struct lie {
    const char *name;
    struct said before[2], after[2];
} lies[] = {
    {"COPIED twice at once", {}, {COPIED, COPIED}},
    {"COPIED before there is a copy, and when there is", {COPIED}, {COPIED}},
    {"COPIED, and then what is of a copy", {}, {COPIED, RESTORED}},
    {"only what is of a copy", {}, {RESTORED}},
    {"COPIED of the next CHECKPOINT", {}, {{WORKER_COPIED, 1, WORKER_COPIED_SIZE, 1}}},
    {"COPIED of the one before",
     {},
     {{WORKER_COPIED, UINT32_MAX, WORKER_COPIED_SIZE, 1}}},
    {"COPIED without its payload", {}, {{WORKER_COPIED, 0, 0, 0}}},
    {"COPIED with too much of it", {}, {{WORKER_COPIED, 0, WORKER_COPIED_SIZE + 1, 1}}},
    {"PONG", {}, {{WORKER_PONG, 0, 0, 0}}},
    {"COPIED, and that there is none", {}, {COPIED, NOT_COPIED}},
    {"RESULT", {}, {{WORKER_RESULT, 0, 16, 0}}},
    {"no frame of a worker's", {}, {{WORKER_CHECKPOINT, 0, 0, 0}}},
};

static const struct lie *lie; /* of the running test */

/* From the older copy, or from the one that was made meanwhile; and it says from
 * which. */
static int body_ends_in_a_restore(void) {
    struct behaviour behaviour = {.lies_from = 2};
    struct bench bench;
    struct supervisor *self = &bench.self;

    memcpy(behaviour.before, lie->before, sizeof behaviour.before);
    memcpy(behaviour.after, lie->after, sizeof behaviour.after);
    begin(&bench, &behaviour);
    make_checkpoint(&bench);
    const pid_t liar = self->worker.pid, older = self->checkpoints.parked.pid;
    struct control_look looked = look(&bench);
    supervisor_worker_was_looked_at(self, &looked);
    while (self->worker.pid == liar)
        turn(self);
    REQUIRE(kill(liar, 0) < 0 && errno == ESRCH);
    REQUIRE(self->restored_to == (self->worker.pid == older ? 1 : 2));
    REQUIRE(self->variables_lost == (self->restored_to != 2));
    REQUIRE(self->checkpoints.state == self->restored_to);
    /* No process is left but the one that goes on, which is copied at once. */
    require_children(self, 1);
    looked = answer_look(&bench);
    finish_checkpoint(&bench, &looked);
    require_children(self, 2);
    return 0;
}

static void a_lie_ends_in_a_restore(void **state) {
    (void)state;
    for (lie = lies; lie < lies + COUNT_OF(lies); lie++) {
        print_message("%s\n", lie->name);
        in_pid_namespace(body_ends_in_a_restore);
    }
}

static int body_first_copy(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;
    struct control_message message;
    int fds[SPAWN_FD_MAX];
    size_t count;

    begin(&bench, &(struct behaviour){.lies_from = 1, .before = {COPIED, COPIED}});
    const struct control_look looked = look(&bench);
    supervisor_worker_was_looked_at(self, &looked);
    while (self->worker.state == WORKER_COPYING)
        turn(self);
    REQUIRE(self->worker.state == WORKER_STARTING);
    REQUIRE(self->variables_lost && self->restored_to == 0);
    REQUIRE(!checkpoints_have(&self->checkpoints.parked));
    REQUIRE(io_receive_message(bench.launcher, &message, sizeof message, fds,
                               SPAWN_FD_MAX, &count, NULL) == sizeof message);
    REQUIRE(message.what == CONTROL_SPAWN);
    require_children(self, 0);
    return 0;
}

static void a_lie_without_a_copy_ends_in_a_fresh_worker(void **state) {
    (void)state;
    in_pid_namespace(body_first_copy);
}

/* A copy that the worker denies is none, whether it has parked by then or not. */
static int body_denied(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, &(struct behaviour){.lies_from = 2, .after = {NOT_COPIED}});
    make_checkpoint(&bench);
    const pid_t liar = self->worker.pid;
    const struct control_look looked = look(&bench);
    supervisor_worker_was_looked_at(self, &looked);
    while (self->worker.state == WORKER_COPYING)
        turn(self);
    REQUIRE(self->worker.state == WORKER_IDLE && self->worker.pid == liar);
    require_children(self, 2);
    REQUIRE(self->checkpoints.skipped == SESSION_NOT_COPIED);
    REQUIRE(self->checkpoints.parked.number == 1);
    lose_worker(self);
    REQUIRE(supervisor_restore_worker(self));
    REQUIRE(self->restored_to == 1 && self->variables_lost);
    return 0;
}

static void a_copy_that_is_denied_is_none(void **state) {
    (void)state;
    in_pid_namespace(body_denied);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lie_ends_in_a_restore),
        cmocka_unit_test(a_lie_without_a_copy_ends_in_a_fresh_worker),
        cmocka_unit_test(a_copy_that_is_denied_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
