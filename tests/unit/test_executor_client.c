/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include <fcntl.h>

#include "fcgi-app/executor_client.h"
#include "tests/unit/fake_executor.h"

struct fixture {
    struct fake_executor fake;
    int stop;
    struct executor_client client;
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);

    fake_executor_start(&fixture->fake, &fixture->stop);
    executor_client_init(&fixture->client, fixture->fake.path);
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;

    executor_client_clear(&fixture->client);
    fake_executor_stop(&fixture->fake, fixture->stop);
    free(fixture);
    return 0;
}

static void a_sandbox_comes_with_its_channel(void **state) {
    struct fixture *fixture = *state;
    uint64_t sandbox;
    int channel;

    assert_int_equal(
        executor_acquire(&fixture->client, SLICE("r1"), &sandbox, &channel, NULL), 0);
    assert_int_equal(sandbox, 1);
    assert_true(fcntl(channel, F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(channel, F_GETFD) & FD_CLOEXEC);
    close(channel);
    assert_int_equal(
        executor_acquire(&fixture->client, SLICE("r2"), &sandbox, &channel, NULL), 0);
    assert_int_equal(sandbox, 2);
    close(channel);
}

static void what_is_refused_keeps_its_code(void **state) {
    struct fixture *fixture = *state;
    uint64_t sandbox;
    int channel;
    struct viv_error err;

    fixture->fake.refusal = VIV_CAPACITY;
    assert_fails(executor_acquire(&fixture->client, SLICE("r"), &sandbox, &channel, &err),
                 &err, VIV_CAPACITY, "vivarium-executor: no room");
}

static void a_channel_can_be_had_anew(void **state) {
    struct fixture *fixture = *state;
    uint64_t sandbox;
    int first, second;
    char byte;
    struct viv_error err;

    assert_int_equal(
        executor_acquire(&fixture->client, SLICE("r"), &sandbox, &first, NULL), 0);
    assert_int_equal(executor_attach(&fixture->client, sandbox, &second, NULL), 0);
    fcntl(first, F_SETFL, 0);
    assert_int_equal(read(first, &byte, 1), 0); /* the old one was closed */
    close(first);
    close(second);
    assert_fails(executor_attach(&fixture->client, 99, &second, &err), &err,
                 VIV_NOT_FOUND, "gone");
}

static void sandboxes_are_ended_once_or_twice(void **state) {
    struct fixture *fixture = *state;
    uint64_t sandbox;
    int channel;

    assert_int_equal(
        executor_acquire(&fixture->client, SLICE("r"), &sandbox, &channel, NULL), 0);
    assert_int_equal(executor_end(&fixture->client, sandbox, NULL), 0);
    assert_int_equal(executor_end(&fixture->client, sandbox, NULL), 0);
    assert_int_equal(fixture->fake.ended, 2);
    assert_false(fixture->fake.entries[0].alive);
    close(channel);
}

static void the_list_is_walked_from_number_to_number(void **state) {
    struct fixture *fixture = *state;
    struct executor_entry entry = {0};
    uint64_t sandbox;
    int channels[3];

    for (int i = 0; i < 3; i++)
        assert_int_equal(executor_acquire(&fixture->client, SLICE("abc"), &sandbox,
                                          &channels[i], NULL),
                         0);
    assert_int_equal(executor_end(&fixture->client, 2, NULL), 0);
    assert_int_equal(executor_next(&fixture->client, 0, &entry, NULL), 0);
    assert_int_equal(entry.sandbox, 1);
    assert_slice_equal((struct slice){entry.record, entry.record_size}, "abc");
    assert_int_equal(executor_next(&fixture->client, entry.sandbox, &entry, NULL), 0);
    assert_int_equal(entry.sandbox, 3);
    assert_int_equal(executor_next(&fixture->client, entry.sandbox, &entry, NULL), 0);
    assert_int_equal(entry.sandbox, 0);
    for (int i = 0; i < 3; i++)
        close(channels[i]);
}

static void the_status_is_read_by_its_keys(void **state) {
    struct fixture *fixture = *state;
    struct executor_status status;

    fixture->fake.status = "new=1\ntier=isolated\nreason=no user namespaces=here\n";
    assert_int_equal(
        executor_status(&fixture->client, viv_after_ms(20000), &status, NULL), 0);
    assert_string_equal(status.tier, "isolated");
    assert_string_equal(status.reason, "no user namespaces=here");
    fixture->fake.status = "tier=confined\nlandlock=7\nnetwork=seccomp\ndisk=watch\n"
                           "slots=32\ncontrollers=memory,cpu\nweaker=a; b\n";
    assert_int_equal(
        executor_status(&fixture->client, viv_after_ms(20000), &status, NULL), 0);
    assert_int_equal(status.landlock, 7);
    assert_int_equal(status.slots, 32);
    assert_string_equal(status.network, "seccomp");
    assert_string_equal(status.disk, "watch");
    assert_string_equal(status.controllers, "memory,cpu");
    assert_string_equal(status.weaker, "a; b");
    assert_string_equal(status.reason, "");
    fixture->fake.status = "tier=full";
    assert_int_equal(
        executor_status(&fixture->client, viv_after_ms(20000), &status, NULL), 0);
    assert_string_equal(status.tier, "full");
    assert_string_equal(status.reason, "");
    fixture->fake.status = "";
    assert_int_equal(
        executor_status(&fixture->client, viv_after_ms(20000), &status, NULL), 0);
    assert_string_equal(status.tier, "");
    assert_string_equal(status.controllers, "");
    assert_string_equal(status.weaker, "");
    assert_int_equal(status.slots, 0);
}

static void one_that_cannot_be_reached_is_unavailable(void **state) {
    struct executor_client client;
    struct executor_status status;
    struct viv_error err;
    viv_time begun = viv_now();

    (void)state;
    executor_client_init(&client, "/nonexistent/executor.sock");
    assert_fails(executor_status(&client, viv_after_ms(60000), &status, &err), &err,
                 VIV_UNAVAILABLE, "cannot be reached");
    assert_true(viv_now() - begun < 30 * VIV_SECOND);
    executor_client_clear(&client);
}

static void one_that_does_not_answer_is_unavailable(void **state) {
    struct fixture *fixture = *state;
    struct executor_status status;
    struct viv_error err;

    fixture->fake.silent = true;
    assert_fails(executor_status(&fixture->client, viv_after_ms(50), &status, &err), &err,
                 VIV_UNAVAILABLE, "did not answer");
}

static size_t source(void *context, char to[EXECUTOR_BYTES_MAX]) {
    size_t size = strlen(context);

    memcpy(to, context, size);
    return size;
}

static void wait_for_record(struct fake_executor *fake, const char *expected) {
    for (bool found = false; !found; usleep(1000)) {
        pthread_mutex_lock(&fake->lock);
        struct fake_entry *entry = &fake->entries[0];
        found = entry->record_size == strlen(expected) &&
                memcmp(entry->record, expected, entry->record_size) == 0;
        pthread_mutex_unlock(&fake->lock);
    }
}

static void records_are_replaced(void **state) {
    struct fixture *fixture = *state;
    uint64_t sandbox;
    int channel;

    assert_int_equal(
        executor_acquire(&fixture->client, SLICE("one"), &sandbox, &channel, NULL), 0);
    wait_for_record(&fixture->fake, "one");
    executor_record(&fixture->client, sandbox, source, "two");
    wait_for_record(&fixture->fake, "two");
    int kept = fixture->client.record_fd;
    executor_record(&fixture->client, sandbox, source, "");
    executor_record(&fixture->client, sandbox, source, "three");
    wait_for_record(&fixture->fake, "three");
    assert_int_equal(fixture->client.record_fd, kept);
    /* A connection that broke is made again. */
    shutdown(kept, SHUT_RDWR);
    executor_record(&fixture->client, sandbox, source, "four");
    wait_for_record(&fixture->fake, "four");
    assert_int_equal(fixture->fake.records, 3);
    close(channel);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_sandbox_comes_with_its_channel, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_is_refused_keeps_its_code, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_channel_can_be_had_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(sandboxes_are_ended_once_or_twice, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_list_is_walked_from_number_to_number, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_status_is_read_by_its_keys, set_up,
                                        tear_down),
        cmocka_unit_test(one_that_cannot_be_reached_is_unavailable),
        cmocka_unit_test_setup_teardown(one_that_does_not_answer_is_unavailable, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(records_are_replaced, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
