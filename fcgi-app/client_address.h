/* SPDX-License-Identifier: MIT */
/*
 * Who a request comes from: the peer of the web server, or what a trusted proxy says of
 * it in X-Forwarded-For. An entry of that header is believed only when the address that
 * added it is trusted, so the list is read from its right end. Any thread; networks are
 * read-only once parsed.
 */
#ifndef VIV_CLIENT_ADDRESS_H
#define VIV_CLIENT_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

struct network {
    struct in6_addr address; /* an IPv4 one as ::ffff:a.b.c.d (RFC 4291, 2.5.5.2) */
    unsigned prefix;         /* bits of it that count */
};

struct networks {
    struct network *items;
    size_t count;
};

/* Reads "10.0.0.0/8, ::1, 192.0.2.7": addresses and networks of IPv4 and IPv6, divided by
 * commas. Empty text is no network. Fails with VIV_CONFIG, and names the setting `key`;
 * `networks` is then empty. */
int networks_parse(const char *key, const char *text, struct networks *networks,
                   struct viv_error *err);

/* Whether the address, one of IPv4 as in struct network, is in one of them. */
bool networks_contain(const struct networks *networks, const struct in6_addr *address);

void networks_clear(struct networks *networks);

#define CLIENT_ADDRESS_SIZE INET6_ADDRSTRLEN

/* Writes an address in its usual form; returns `text`. */
const char *address_format(const struct in6_addr *address,
                           char text[CLIENT_ADDRESS_SIZE]);

/*
 * Writes the client's address in its usual form: that of `peer` unless it is trusted;
 * otherwise the rightmost entry of `forwarded_for` (may be NULL) that is not. An entry
 * that is no address ends the search at the address that sent it. "unknown" where not
 * even the peer has one. Of an IPv6 address only its network of 64 bits is written, as
 * "2001:db8::": whoever has one address of it has all.
 */
void client_address(const struct networks *trusted, const char *peer,
                    const char *forwarded_for, char client[CLIENT_ADDRESS_SIZE]);

#endif
