/* SPDX-License-Identifier: MIT */
/* What of before is taken over, and what is left behind is ended; see test_exec_route.c
 * for sessions that go on. */
#include "tests/unit/unit.h"

#include "common/log.h"
#include "fcgi-app/adoption.h"
#include "tests/unit/fake_executor.h"

struct fixture {
    struct fake_executor fake;
    int stop;
    struct settings settings;
    struct app app;
    struct adoption adoption;
    viv_time now;
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);

    viv_log_set_level(VIV_LOG_ERROR);
    fake_executor_start(&fixture->fake, &fixture->stop);
    settings_init(&fixture->settings);
    free(fixture->settings.executor_socket);
    fixture->settings.executor_socket = strdup(fixture->fake.path);
    assert_int_equal(app_init(&fixture->app, &fixture->settings, NULL), 0);
    fixture->now = viv_now();
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;

    app_clear(&fixture->app);
    fake_executor_stop(&fixture->fake, fixture->stop);
    settings_clear(&fixture->settings);
    free(fixture);
    return 0;
}

static size_t tick(struct fixture *fixture) {
    return adoption_tick(&fixture->adoption, &fixture->app, fixture->now);
}

/* A sandbox in the executor that no session here has. */
static void acquire(struct fixture *fixture, const char *id) {
    struct session_record record = {.execution_count = 1};
    char bytes[SESSION_RECORD_MAX];
    uint64_t sandbox;
    int channel;

    snprintf(record.id, sizeof record.id, "%s", id);
    struct slice slice = {bytes, session_record_put(bytes, &record)};
    assert_int_equal(
        executor_acquire(&fixture->app.executor, slice, &sandbox, &channel, NULL), 0);
    close(channel);
}

static void nothing_to_take_over_is_fine(void **state) {
    struct fixture *fixture = *state;

    assert_int_equal(tick(fixture), 0);
    assert_true(fixture->adoption.done);
}

static void an_executor_that_comes_late_is_asked_again(void **state) {
    struct fixture *fixture = *state;

    acquire(fixture, "a");
    fixture->app.adopting = true;
    fixture->app.executor.path = "/nonexistent";
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tick(fixture), 0);
        assert_false(fixture->adoption.done);
        assert_true(fixture->app.adopting);
    }
    fixture->app.executor.path = fixture->fake.path;
    assert_int_equal(tick(fixture), 1);
    assert_false(fixture->app.adopting);
    assert_int_equal(tick(fixture), 0);
}

static void what_cannot_be_read_is_ended_at_the_second_walk(void **state) {
    struct fixture *fixture = *state;
    uint64_t sandbox;
    int channel;

    acquire(fixture, "a");
    assert_int_equal(executor_acquire(&fixture->app.executor, SLICE("nonsense"), &sandbox,
                                      &channel, NULL),
                     0);
    close(channel);
    assert_int_equal(tick(fixture), 1);
    assert_int_equal(fixture->fake.ended, 0);
    fixture->now += (ADOPTION_INTERVAL_MS - 1) * VIV_MS;
    tick(fixture);
    assert_int_equal(fixture->fake.ended, 0); /* not due yet */
    fixture->now += VIV_MS;
    tick(fixture);
    assert_int_equal(fixture->fake.ended, 1);
    assert_true(fixture->fake.entries[0].alive);
    assert_false(fixture->fake.entries[1].alive);
}

static void a_sandbox_that_gets_its_session_meanwhile_stays(void **state) {
    struct fixture *fixture = *state;
    const struct session_visit visit = {.id = "a", .client = "c"};

    tick(fixture);
    acquire(fixture, "a");
    for (int i = 0; i < 3; i++) {
        fixture->now += ADOPTION_INTERVAL_MS * VIV_MS;
        tick(fixture);
        assert_int_equal(fixture->fake.ended, 0);
        if (i > 0)
            continue;
        struct session *session = sessions_enter(fixture->app.sessions, &visit, NULL);
        sessions_set_sandbox(fixture->app.sessions, session, 1, -1);
        sessions_begin_execution(fixture->app.sessions, session);
        sessions_leave(fixture->app.sessions, session);
    }
}

static void sandboxes_that_nobody_knows_are_ended(void **state) {
    struct fixture *fixture = *state;

    tick(fixture);
    acquire(fixture, "a");
    acquire(fixture, "b");
    fixture->app.executor.path = "/nonexistent";
    fixture->now += ADOPTION_INTERVAL_MS * VIV_MS;
    assert_int_equal(tick(fixture), 0);
    assert_false(fixture->app.adopting); /* what is known stays known */
    fixture->app.executor.path = fixture->fake.path;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fixture->fake.ended, 0);
        fixture->now += ADOPTION_INTERVAL_MS * VIV_MS;
        assert_int_equal(tick(fixture), 0);
    }
    assert_int_equal(fixture->fake.ended, 2);
    assert_int_equal(sessions_count(fixture->app.sessions), 0);
}

#define with_fixture(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        with_fixture(nothing_to_take_over_is_fine),
        with_fixture(an_executor_that_comes_late_is_asked_again),
        with_fixture(what_cannot_be_read_is_ended_at_the_second_walk),
        with_fixture(a_sandbox_that_gets_its_session_meanwhile_stays),
        with_fixture(sandboxes_that_nobody_knows_are_ended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
