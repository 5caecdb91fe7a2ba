/* SPDX-License-Identifier: MIT */
#include "fcgi-app/client_address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"

/* What one client has at least (RFC 6177): it may take any address in it. */
#define IPV6_NETWORK_BYTES 8

#define IPV4_PREFIX_BITS 96 /* of ::ffff:0:0/96, RFC 4291, 2.5.5.2 */

/* Cuts white space off both ends. */
static struct slice trim(struct slice text) {
    while (text.size > 0 && strchr(" \t", text.data[0]))
        text = (struct slice){text.data + 1, text.size - 1};
    while (text.size > 0 && strchr(" \t", text.data[text.size - 1]))
        text.size--;
    return text;
}

/* Reads one address without anything around it. */
static bool parse_address(struct slice text, struct in6_addr *address, bool *is_ipv4) {
    char copy[CLIENT_ADDRESS_SIZE];
    unsigned char *mapped = address->s6_addr;

    if (text.size == 0 || text.size >= sizeof copy || memchr(text.data, '\0', text.size))
        return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    *is_ipv4 = inet_pton(AF_INET, copy, mapped + 12) == 1;
    if (!*is_ipv4)
        return inet_pton(AF_INET6, copy, address) == 1;
    memset(mapped, 0, 10);
    mapped[10] = mapped[11] = 0xff;
    return true;
}

/* Cuts brackets and a port off an entry as proxies write it: "[2001:db8::1]:4711". */
static struct slice without_port(struct slice entry) {
    if (entry.size > 0 && entry.data[0] == '[') {
        const char *end = memchr(entry.data, ']', entry.size);
        if (end)
            return (struct slice){entry.data + 1, (size_t)(end - entry.data) - 1};
        return entry;
    }
    const char *colon = memchr(entry.data, ':', entry.size);
    if (colon && !memchr(colon + 1, ':', entry.size - (size_t)(colon + 1 - entry.data)))
        entry.size = (size_t)(colon - entry.data);
    return entry;
}

static bool parse_prefix(struct slice text, unsigned most, unsigned *prefix) {
    unsigned value = 0;

    if (text.size == 0 || text.size > 3)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        value = value * 10 + (unsigned)(text.data[i] - '0');
    }
    *prefix = value;
    return value <= most;
}

static int parse_network(const char *key, struct slice text, struct network *network,
                         struct viv_error *err) {
    const char *slash = memchr(text.data, '/', text.size);
    struct slice address = {text.data, slash ? (size_t)(slash - text.data) : text.size};
    unsigned prefix;
    bool is_ipv4;

    if (!parse_address(address, &network->address, &is_ipv4))
        return viv_fail(err, VIV_CONFIG, "%s: not an address or a network", key);
    unsigned most = is_ipv4 ? 32 : 128;
    prefix = most;
    if (slash && !parse_prefix((struct slice){slash + 1, text.size - address.size - 1},
                               most, &prefix))
        return viv_fail(err, VIV_CONFIG, "%s: a prefix is 0 to %u bits", key, most);
    network->prefix = prefix + (is_ipv4 ? IPV4_PREFIX_BITS : 0);
    return 0;
}

int networks_parse(const char *key, const char *text, struct networks *networks,
                   struct viv_error *err) {
    size_t most = 1;

    *networks = (struct networks){0};
    for (const char *p = text; *p; p++)
        most += *p == ',';
    networks->items = viv_xcalloc(most, sizeof *networks->items);
    while (*text) {
        size_t length = strcspn(text, ",");
        struct slice entry = trim((struct slice){text, length});
        if (entry.size > 0 &&
            parse_network(key, entry, &networks->items[networks->count++], err)) {
            networks_clear(networks);
            return -1;
        }
        text += length + (text[length] == ',');
    }
    return 0;
}

void networks_clear(struct networks *networks) {
    free(networks->items);
    *networks = (struct networks){0};
}

static bool same_prefix(const unsigned char *a, const unsigned char *b, unsigned bits) {
    if (memcmp(a, b, bits / 8) != 0)
        return false;
    unsigned rest = bits % 8;
    return rest == 0 || (a[bits / 8] ^ b[bits / 8]) >> (8 - rest) == 0;
}

bool networks_contain(const struct networks *networks, const struct in6_addr *address) {
    for (size_t i = 0; i < networks->count; i++)
        if (same_prefix(networks->items[i].address.s6_addr, address->s6_addr,
                        networks->items[i].prefix))
            return true;
    return false;
}

const char *address_format(const struct in6_addr *address,
                           char text[CLIENT_ADDRESS_SIZE]) {
    if (IN6_IS_ADDR_V4MAPPED(address))
        return inet_ntop(AF_INET, address->s6_addr + 12, text, CLIENT_ADDRESS_SIZE);
    return inet_ntop(AF_INET6, address, text, CLIENT_ADDRESS_SIZE);
}

/* Takes the last entry off the list. */
static bool take_last(struct slice *list, struct slice *entry) {
    if (list->size == 0)
        return false;
    const char *comma = memrchr(list->data, ',', list->size);
    size_t start = comma ? (size_t)(comma - list->data) + 1 : 0;
    *entry = trim((struct slice){list->data + start, list->size - start});
    list->size = comma ? start - 1 : 0;
    return true;
}

void client_address(const struct networks *trusted, const char *peer,
                    const char *forwarded_for, char client[CLIENT_ADDRESS_SIZE]) {
    struct in6_addr current = {0}, next;
    struct slice list = {forwarded_for, forwarded_for ? strlen(forwarded_for) : 0}, entry;
    bool is_ipv4;

    if (!peer || !parse_address((struct slice){peer, strlen(peer)}, &current, &is_ipv4)) {
        snprintf(client, CLIENT_ADDRESS_SIZE, "unknown");
        return;
    }
    while (networks_contain(trusted, &current) && take_last(&list, &entry) &&
           parse_address(without_port(entry), &next, &is_ipv4))
        current = next;
    if (!IN6_IS_ADDR_V4MAPPED(&current))
        memset(current.s6_addr + IPV6_NETWORK_BYTES, 0,
               sizeof current.s6_addr - IPV6_NETWORK_BYTES);
    address_format(&current, client);
}
