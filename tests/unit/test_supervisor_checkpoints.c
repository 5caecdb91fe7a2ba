/* SPDX-License-Identifier: MIT */
/* Checkpoints as a supervisor makes them, of a worker that keeps to its protocol. */
#include "tests/unit/checkpoints_bench.h"

#define ROUNDS 200

static int body_goes_back(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, NULL);
    make_checkpoint(&bench);
    pid_t first = self->worker.pid, copy = self->checkpoints.parked.pid;
    REQUIRE(copy != first);
    /* What the session sends to the copy was meant for nobody. */
    REQUIRE(kill(copy, SIGTERM) == 0 && kill(copy, SIGUSR1) == 0);
    lose_worker(self);
    REQUIRE(supervisor_restore_worker(self));
    REQUIRE(self->worker.pid == copy && self->worker.state == WORKER_IDLE);
    REQUIRE(self->restored_to == 1 && !self->variables_lost);
    REQUIRE(self->checkpoints.parked.pid == 0);
    /* Ten times: the one that goes on is as good as the one before. */
    for (int generation = 0; generation < 10; generation++) {
        self->checkpoints.restores = 0; /* as a call does */
        make_checkpoint(&bench);
        lose_worker(self);
        REQUIRE(supervisor_restore_worker(self));
        REQUIRE(!self->variables_lost);
    }
    require_children(self, 1);
    return 0;
}

static void goes_back_to_the_copy(void **state) {
    (void)state;
    in_pid_namespace(body_goes_back);
}

static int body_without_calls(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, NULL);
    for (int restored = 0; restored < 5; restored++) {
        make_checkpoint(&bench);
        lose_worker(self);
        REQUIRE(supervisor_restore_worker(self));
    }
    make_checkpoint(&bench);
    lose_worker(self);
    REQUIRE(!supervisor_restore_worker(self));
    worker_process_end_all();
    require_children(self, 0);
    return 0;
}

static void one_that_always_ends_is_not_woken_for_ever(void **state) {
    (void)state;
    in_pid_namespace(body_without_calls);
}

static int body_older_copy(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, NULL);
    make_checkpoint(&bench);
    struct control_look looked = look(&bench);
    looked.verdict = LOOK_OPEN_FILES;
    supervisor_worker_was_looked_at(self, &looked);
    REQUIRE(self->worker.state == WORKER_IDLE);
    REQUIRE(self->checkpoints.skipped == SESSION_HAS_OPEN_FILES);
    looked = look(&bench);
    looked.own = 1001;
    supervisor_worker_was_looked_at(self, &looked);
    REQUIRE(self->checkpoints.skipped == SESSION_TOO_MUCH_MEMORY);
    /* It was told to give some back: once, and it is looked at once more. */
    REQUIRE(self->checkpoints.due != VIV_TIME_NEVER);
    supervisor_checkpoint_is_due(self);
    looked = answer_look(&bench);
    looked.own = 1001;
    supervisor_worker_was_looked_at(self, &looked);
    REQUIRE(self->checkpoints.skipped == SESSION_TOO_MUCH_MEMORY);
    REQUIRE(self->checkpoints.due == VIV_TIME_NEVER);
    lose_worker(self);
    REQUIRE(supervisor_restore_worker(self));
    REQUIRE(self->restored_to == 1 && self->variables_lost);
    return 0;
}

static void an_older_copy_is_told_as_a_loss(void **state) {
    (void)state;
    in_pid_namespace(body_older_copy);
}

static int body_old_answer(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, NULL);
    struct control_look first = look(&bench);
    supervisor_session_is_busy(self); /* a call, and another look after it */
    supervisor_worker_was_looked_at(self, &first);
    REQUIRE(self->worker.state == WORKER_IDLE);
    struct control_look second = look(&bench);
    supervisor_worker_was_looked_at(self, &first);
    REQUIRE(self->worker.state == WORKER_IDLE);
    supervisor_worker_was_looked_at(self, &second);
    REQUIRE(self->worker.state == WORKER_COPYING);
    return 0;
}

static void a_look_from_before_a_call_does_not_count(void **state) {
    (void)state;
    in_pid_namespace(body_old_answer);
}

static int body_worker_dies(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, NULL);
    make_checkpoint(&bench);
    kill(self->worker.pid, SIGSTOP);
    const struct control_look looked = look(&bench);
    supervisor_worker_was_looked_at(self, &looked);
    REQUIRE(self->worker.state == WORKER_COPYING);
    lose_worker(self);
    REQUIRE(supervisor_restore_worker(self));
    REQUIRE(self->restored_to == 1 && self->variables_lost);
    make_checkpoint(&bench);
    return 0;
}

static void a_worker_that_dies_meanwhile_is_restored_from_the_older_copy(void **state) {
    (void)state;
    in_pid_namespace(body_worker_dies);
}

static int body_copy_killed(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, NULL);
    make_checkpoint(&bench);
    kill(self->checkpoints.parked.pid, SIGKILL);
    wait_for(self->checkpoints.parked.pidfd);
    REQUIRE(!checkpoints_have(&self->checkpoints.parked));
    lose_worker(self);
    REQUIRE(!supervisor_restore_worker(self));
    REQUIRE(self->restored_to == 0 && self->checkpoints.parked.pid == 0);
    return 0;
}

static void a_copy_that_was_killed_is_none(void **state) {
    (void)state;
    in_pid_namespace(body_copy_killed);
}

static int body_spinner(void) {
    struct bench bench;
    struct supervisor *self = &bench.self;

    begin(&bench, &(struct behaviour){.spins = true});
    for (int round = 0; round < ROUNDS; round++)
        make_checkpoint(&bench);
    /* The worker, and the last of its copies. */
    require_children(self, 2);
    lose_worker(self);
    REQUIRE(supervisor_restore_worker(self));
    require_children(self, 1);
    return 0;
}

static void a_thread_that_asks_without_end_gets_nothing(void **state) {
    (void)state;
    in_pid_namespace(body_spinner);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_back_to_the_copy),
        cmocka_unit_test(one_that_always_ends_is_not_woken_for_ever),
        cmocka_unit_test(an_older_copy_is_told_as_a_loss),
        cmocka_unit_test(a_look_from_before_a_call_does_not_count),
        cmocka_unit_test(a_worker_that_dies_meanwhile_is_restored_from_the_older_copy),
        cmocka_unit_test(a_copy_that_was_killed_is_none),
        cmocka_unit_test(a_thread_that_asks_without_end_gets_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
