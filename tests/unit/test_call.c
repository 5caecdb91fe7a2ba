/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "common/cleanup.h"
#include "executor/supervisor/call.h"
#include "tests/unit/scratch.h"

/* A call of which the EXEC frame is at hand. */
struct bench {
    struct scratch home;
    struct call call;
    char payload[SESSION_EXEC_SIZE + 16];
    struct frame exec;
};

static struct bench *bench_new(void) {
    struct bench *bench = viv_xcalloc(1, sizeof *bench);
    const struct session_exec exec = {
        .nonce = "0123456789abcde",
        .number = 4,
        .max_output = 10,
        .code_size = 4,
        .has_stdin = true,
        .stdin_size = 5,
    };

    bench->home = scratch_new();
    session_exec_put(bench->payload, &exec);
    memcpy(bench->payload + SESSION_EXEC_SIZE, "codeinput", 9);
    bench->exec = (struct frame){
        SESSION_EXEC, 7, {bench->payload, SESSION_EXEC_SIZE + strlen("codeinput")}};
    return bench;
}

static void bench_cleanup(struct bench **bench) {
    call_end(&(*bench)->call);
    scratch_remove(&(*bench)->home);
    free(*bench);
}

static int begin(struct bench *bench) {
    return call_begin(&bench->call, bench->home.fd, &bench->exec, NULL);
}

static int receive(struct bench *bench, uint8_t type, uint32_t sequence, const char *text,
                   struct viv_error *err) {
    const struct frame frame = {type, sequence, slice_of(text)};

    return call_receive_file(&bench->call, &frame, err);
}

static void begins_with_an_exec_frame(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    assert_int_equal(begin(bench), 0);
    assert_int_equal(bench->call.phase, CALL_RECEIVING);
    assert_int_equal(bench->call.sequence, 7);
    assert_int_equal(bench->call.exec.number, 4);
    assert_memory_equal(bench->call.text.data, "codeinput", 9);
    assert_int_equal(bench->call.text.size, 9);
    assert_false(bench->call.client_gone);
}

static void forgets_what_was_before(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    bench->call.client_gone = true;
    assert_int_equal(begin(bench), 0);
    assert_false(bench->call.client_gone);
}

static void does_not_begin_with_another_frame(void **state) {
    static const uint8_t types[] = {SESSION_FILE, SESSION_DATA, SESSION_RUN};
    struct viv_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        CLEANUP(bench) struct bench *bench = bench_new();
        bench->exec.type = types[i];
        assert_fails(call_begin(&bench->call, bench->home.fd, &bench->exec, &err), &err,
                     VIV_BAD_GATEWAY, "without a call");
        assert_int_equal(bench->call.phase, CALL_NONE);
    }
}

static void does_not_begin_twice(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();
    struct viv_error err;

    (void)state;
    assert_int_equal(begin(bench), 0);
    assert_fails(call_begin(&bench->call, bench->home.fd, &bench->exec, &err), &err,
                 VIV_BAD_GATEWAY, "");
    assert_int_equal(bench->call.phase, CALL_RECEIVING);
    assert_int_equal(receive(bench, SESSION_FILE, 7, "a", NULL), 0);
}

static void a_malformed_exec_begins_nothing(void **state) {
    struct viv_error err;

    (void)state;
    for (size_t size = 0; size < SESSION_EXEC_SIZE + 9; size++) {
        CLEANUP(bench) struct bench *bench = bench_new();
        bench->exec.payload.size = size;
        assert_fails(call_begin(&bench->call, bench->home.fd, &bench->exec, &err), &err,
                     VIV_BAD_GATEWAY, "");
        assert_int_equal(bench->call.phase, CALL_NONE);
        assert_null(bench->call.text.data);
    }
}

static void receives_files(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    assert_int_equal(begin(bench), 0);
    assert_int_equal(receive(bench, SESSION_FILE, 7, "a", NULL), 0);
    assert_int_equal(receive(bench, SESSION_DATA, 7, "one ", NULL), 0);
    assert_int_equal(receive(bench, SESSION_DATA, 7, "two", NULL), 0);
    assert_int_equal(receive(bench, SESSION_FILE, 7, "b", NULL), 0);
    assert_int_equal(upload_commit(&bench->call.upload), 0);
    assert_content(bench->home.fd, "a", "one two");
    assert_content(bench->home.fd, "b", "");
}

static void files_out_of_order_are_refused(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();
    struct viv_error err;

    (void)state;
    assert_fails(receive(bench, SESSION_FILE, 7, "a", &err), &err, VIV_BAD_GATEWAY, "");
    assert_int_equal(begin(bench), 0);
    assert_fails(receive(bench, SESSION_DATA, 7, "x", &err), &err, VIV_BAD_GATEWAY,
                 "without a file");
    assert_fails(receive(bench, SESSION_FILE, 8, "a", &err), &err, VIV_BAD_GATEWAY,
                 "out of its call");
    assert_fails(receive(bench, SESSION_EXEC, 7, "a", &err), &err, VIV_BAD_GATEWAY, "");
    bench->call.phase = CALL_RUNNING;
    assert_fails(receive(bench, SESSION_FILE, 7, "a", &err), &err, VIV_BAD_GATEWAY,
                 "out of its call");
}

/* The client sends on what it began before it could know. */
static void content_of_a_refused_file_is_taken_and_dropped(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    assert_int_equal(begin(bench), 0);
    assert_int_equal(receive(bench, SESSION_FILE, 7, "..", NULL), 0);
    assert_true(bench->call.upload.failed);
    assert_int_equal(receive(bench, SESSION_DATA, 7, "x", NULL), 0);
    assert_int_equal(receive(bench, SESSION_FILE, 7, "a", NULL), 0);
    assert_int_equal(receive(bench, SESSION_DATA, 7, "x", NULL), 0);
    assert_false(is_there(bench->home.fd, "a"));
}

static void output_is_admitted_up_to_its_limit(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    assert_int_equal(begin(bench), 0);
    assert_int_equal(call_admit_output(&bench->call, 0, 6), 6);
    assert_int_equal(call_admit_output(&bench->call, 0, 4), 4);
    assert_false(bench->call.output[0].truncated);
    assert_int_equal(call_admit_output(&bench->call, 0, 0), 0);
    assert_false(bench->call.output[0].truncated);
    assert_int_equal(call_admit_output(&bench->call, 0, 1), 0);
    assert_true(bench->call.output[0].truncated);
    assert_int_equal(call_admit_output(&bench->call, 1, SIZE_MAX), 10);
    assert_true(bench->call.output[1].truncated);
}

static void tells_its_worker_what_it_needs(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    assert_int_equal(begin(bench), 0);
    const struct worker_call call = call_for_worker(&bench->call);
    assert_memory_equal(call.nonce, "0123456789abcde", SESSION_NONCE_SIZE);
    assert_int_equal(call.number, 4);
    assert_int_equal(call.code_size, 4);
    assert_true(call.has_stdin);
    assert_int_equal(call.stdin_size, 5);
}

static void an_interrupt_brings_the_deadline_forward(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();
    struct call *call = &bench->call;

    (void)state;
    assert_int_equal(begin(bench), 0);
    call_set_time(call, false);
    call->phase = CALL_RUNNING;
    viv_time deadline = call->deadline;
    assert_true(deadline > call->began);
    call_interrupt(call, 6);
    call_interrupt(call, 8);
    assert_false(call->unwanted);
    assert_true(call->deadline == deadline);
    call_interrupt(call, 7);
    assert_true(call->unwanted);
    assert_true(call->deadline <= viv_now());
}

static void an_interrupt_behind_the_deadline_changes_nothing(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();
    struct call *call = &bench->call;

    (void)state;
    assert_int_equal(begin(bench), 0);
    call->phase = CALL_RUNNING;
    call->interrupted = true;
    call->deadline = 5;
    call_interrupt(call, 7);
    assert_false(call->unwanted);
    assert_true(call->deadline == 5);
}

static void an_interrupt_before_the_code_begins_strikes_it_then(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();
    struct call *call = &bench->call;

    (void)state;
    call_interrupt(call, 0);
    assert_false(call->unwanted);
    assert_int_equal(begin(bench), 0);
    call->phase = CALL_WAITING;
    call_interrupt(call, 7);
    call_set_time(call, false);
    assert_true(call->deadline == call->began);
}

static void an_interrupt_waits_where_it_could_pass_for_one_that_is_late(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();
    struct call *call = &bench->call;

    (void)state;
    assert_int_equal(begin(bench), 0);
    call->exec.timeout_ms = 1;
    call_set_time(call, true);
    viv_time earliest = call->deadline;
    assert_true(earliest >= call->began + 100 * VIV_MS);
    call->phase = CALL_RUNNING;
    call_interrupt(call, 7);
    assert_true(call->unwanted && call->deadline == earliest);
    call->exec.timeout_ms = 60000;
    call->unwanted = false;
    call_set_time(call, true);
    assert_true(call->deadline >= call->began + 59000 * VIV_MS);
}

static void fills_its_part_of_the_verdict(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();
    struct session_done done = {.outcome = SESSION_CRASHED, .signal = 11};

    (void)state;
    assert_int_equal(begin(bench), 0);
    bench->call.output[1].truncated = true;
    bench->call.began = viv_now() - 1500 * VIV_MS;
    call_fill_done(&bench->call, &done);
    assert_memory_equal(done.nonce, "0123456789abcde", SESSION_NONCE_SIZE);
    assert_false(done.stdout_truncated);
    assert_true(done.stderr_truncated);
    assert_int_equal(done.outcome, SESSION_CRASHED);
    assert_int_equal(done.signal, 11);
    assert_in_range(call_runtime_ms(&bench->call), 1500, 60000);
}

static void its_end_leaves_nothing(void **state) {
    CLEANUP(bench) struct bench *bench = bench_new();

    (void)state;
    for (int round = 0; round < 3; round++) {
        assert_int_equal(begin(bench), 0);
        assert_int_equal(receive(bench, SESSION_FILE, 7, "a", NULL), 0);
        assert_int_equal(home_snapshot_take(&bench->call.before, bench->home.fd, NULL),
                         0);
        call_end(&bench->call);
        assert_int_equal(bench->call.phase, CALL_NONE);
        call_end(&bench->call);
    }
    /* The folder with what was written aside is gone with it. */
    assert_int_equal(unlinkat(AT_FDCWD, bench->home.path, AT_REMOVEDIR), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(begins_with_an_exec_frame),
        cmocka_unit_test(forgets_what_was_before),
        cmocka_unit_test(does_not_begin_with_another_frame),
        cmocka_unit_test(does_not_begin_twice),
        cmocka_unit_test(a_malformed_exec_begins_nothing),
        cmocka_unit_test(receives_files),
        cmocka_unit_test(files_out_of_order_are_refused),
        cmocka_unit_test(content_of_a_refused_file_is_taken_and_dropped),
        cmocka_unit_test(output_is_admitted_up_to_its_limit),
        cmocka_unit_test(tells_its_worker_what_it_needs),
        cmocka_unit_test(an_interrupt_brings_the_deadline_forward),
        cmocka_unit_test(an_interrupt_behind_the_deadline_changes_nothing),
        cmocka_unit_test(an_interrupt_before_the_code_begins_strikes_it_then),
        cmocka_unit_test(an_interrupt_waits_where_it_could_pass_for_one_that_is_late),
        cmocka_unit_test(fills_its_part_of_the_verdict),
        cmocka_unit_test(its_end_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
