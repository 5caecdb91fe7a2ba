/* SPDX-License-Identifier: MIT */
#include "tests/unit/unit.h"

#include "fcgi-app/client_address.h"

static void assert_client(const char *trusted, const char *peer,
                          const char *forwarded_for, const char *expected) {
    struct networks networks;
    char client[CLIENT_ADDRESS_SIZE];

    assert_int_equal(networks_parse("key", trusted, &networks, NULL), 0);
    client_address(&networks, peer, forwarded_for, client);
    assert_string_equal(client, expected);
    networks_clear(&networks);
}

static void a_peer_that_is_not_trusted_is_the_client(void **state) {
    (void)state;
    assert_client("", "192.0.2.1", NULL, "192.0.2.1");
    assert_client("", "192.0.2.1", "198.51.100.7", "192.0.2.1");
    assert_client("10.0.0.0/8", "192.0.2.1", "198.51.100.7", "192.0.2.1");
    assert_client("", "2001:DB8:0:0::1", NULL, "2001:db8::");
    assert_client("", "::ffff:192.0.2.1", NULL, "192.0.2.1");
    assert_client("", NULL, "198.51.100.7", "unknown");
    assert_client("", "", NULL, "unknown");
    assert_client("", "unix:", NULL, "unknown");
}

static void of_ipv6_the_network_counts(void **state) {
    (void)state;
    assert_client("", "2001:db8:1:2:3:4:5:6", NULL, "2001:db8:1:2::");
    assert_client("", "2001:db8:1:2:ffff::", NULL, "2001:db8:1:2::");
    assert_client("", "2001:db8:1:3::6", NULL, "2001:db8:1:3::");
    /* Whom to believe is asked of whole addresses. */
    assert_client("2001:db8::1", "2001:db8::2", "198.51.100.7", "2001:db8::");
    assert_client("2001:db8::1", "2001:db8::1", "198.51.100.7", "198.51.100.7");
}

static void a_trusted_peer_says_who_is(void **state) {
    (void)state;
    assert_client("192.0.2.1", "192.0.2.1", "198.51.100.7", "198.51.100.7");
    assert_client("192.0.2.1", "192.0.2.1", NULL, "192.0.2.1");
    assert_client("192.0.2.1", "192.0.2.1", "", "192.0.2.1");
    assert_client("::1", "::1", "2001:db8::9", "2001:db8::");
    assert_client("192.0.2.0/24", "::ffff:192.0.2.200", "198.51.100.7", "198.51.100.7");
}

static void the_rightmost_entry_that_is_not_trusted_counts(void **state) {
    const char *trusted = "10.0.0.0/8, 192.0.2.1";

    (void)state;
    assert_client(trusted, "10.1.1.1", "203.0.113.66, 198.51.100.7", "198.51.100.7");
    assert_client(trusted, "10.1.1.1", "203.0.113.66, 198.51.100.7 ,10.2.3.4",
                  "198.51.100.7");
    assert_client(trusted, "10.1.1.1", "10.9.9.9,10.2.3.4", "10.9.9.9");
    /* An entry that is none ends the search at the proxy that sent it. */
    assert_client(trusted, "10.1.1.1", "198.51.100.7, nonsense", "10.1.1.1");
    assert_client(trusted, "10.1.1.1", "198.51.100.7,, 10.2.3.4", "10.2.3.4");
}

static void ports_and_brackets_are_no_part_of_an_address(void **state) {
    (void)state;
    assert_client("::1", "::1", "198.51.100.7:4711", "198.51.100.7");
    assert_client("::1", "::1", "[2001:db8::9]:4711", "2001:db8::");
    assert_client("::1", "::1", "[2001:db8::9]", "2001:db8::");
    assert_client("::1", "::1", "[2001:db8::9", "::");
}

static void prefixes_count_in_bits(void **state) {
    (void)state;
    assert_client("192.0.2.128/25", "192.0.2.127", "198.51.100.7", "192.0.2.127");
    assert_client("192.0.2.128/25", "192.0.2.129", "198.51.100.7", "198.51.100.7");
    assert_client("0.0.0.0/0", "203.0.113.1", "2001:db8::1", "2001:db8::");
    assert_client("2001:db8::/33", "2001:db8:7fff::1", "198.51.100.7", "198.51.100.7");
    assert_client("2001:db8::/33", "2001:db8:8000::1", "198.51.100.7", "2001:db8:8000::");
}

static void malformed_networks_are_refused(void **state) {
    static const char *const texts[] = {
        "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/",       "10.0.0.0/-1",
        "host",        "::1/1x", "::1/1000", "1.2.3.4 5.6.7.8", "/8"};
    struct networks networks;
    struct viv_error err;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_fails(networks_parse("key", texts[i], &networks, &err), &err, VIV_CONFIG,
                     "key: ");
        assert_int_equal(networks.count, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_that_is_not_trusted_is_the_client),
        cmocka_unit_test(of_ipv6_the_network_counts),
        cmocka_unit_test(a_trusted_peer_says_who_is),
        cmocka_unit_test(the_rightmost_entry_that_is_not_trusted_counts),
        cmocka_unit_test(ports_and_brackets_are_no_part_of_an_address),
        cmocka_unit_test(prefixes_count_in_bits),
        cmocka_unit_test(malformed_networks_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
