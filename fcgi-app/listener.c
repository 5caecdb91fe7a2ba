/* SPDX-License-Identifier: MIT */
#include "fcgi-app/listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/bytes.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/path_lock.h"

#define UNIX_SCHEME "unix:"
#define TCP_SCHEME  "tcp:"
#define BACKLOG     1024 /* net.core.somaxconn may be less */

union address {
    struct sockaddr any;
    struct sockaddr_un local;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

/* ---- a unix socket ---- */

/* A connection as the web server makes one: a descriptor, or -1 with the errno of
 * connect(2). */
static int try_connect(const struct sockaddr_un *address) {
    CLEANUP(close_fd)
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof *address))
        return -1;
    return steal_fd(&fd);
}

/* Removes the socket of one that has ended. The lock keeps out our own kind only,
 * so ask. */
static int remove_stale(const struct sockaddr_un *address, struct viv_error *err) {
    struct stat status;

    if (lstat(address->sun_path, &status))
        return errno == ENOENT ? 0
                               : viv_fail(err, VIV_SYSTEM, "%s: %m", address->sun_path);
    if (!S_ISSOCK(status.st_mode))
        return viv_fail(err, VIV_SYSTEM, "%s is there and no socket", address->sun_path);
    CLEANUP(close_fd) int connection = try_connect(address);
    if (connection >= 0 || errno == EAGAIN)
        return viv_fail(err, VIV_SYSTEM, "somebody listens at %s", address->sun_path);
    if (errno != ECONNREFUSED)
        return viv_fail(err, VIV_SYSTEM, "connect to %s: %m", address->sun_path);
    if (unlink(address->sun_path))
        return viv_fail(err, VIV_SYSTEM, "unlink %s: %m", address->sun_path);
    return 0;
}

static int listen_at(const struct sockaddr_un *address, struct viv_error *err) {
    CLEANUP(close_fd) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return viv_fail(err, VIV_SYSTEM, "socket: %m");
    /* bind(2) makes the socket with the mode that the umask leaves: so it is
     * never wider. */
    mode_t old = umask(0117);
    int failed = bind(fd, (const struct sockaddr *)address, sizeof *address);
    umask(old);
    if (failed)
        return viv_fail(err, VIV_SYSTEM, "bind %s: %m", address->sun_path);
    if (listen(fd, BACKLOG)) {
        unlink(address->sun_path);
        return viv_fail(err, VIV_SYSTEM, "listen %s: %m", address->sun_path);
    }
    return steal_fd(&fd);
}

static int parse_path(const char *path, struct sockaddr_un *address,
                      struct viv_error *err) {
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (*path == '\0' || strlen(path) >= sizeof address->sun_path)
        return viv_fail(err, VIV_CONFIG, "listen: a path of 1 to %zu bytes",
                        sizeof address->sun_path - 1);
    strcpy(address->sun_path, path);
    return 0;
}

static int option_of(int fd, int name) {
    int value = 0;
    socklen_t size = sizeof value;

    return getsockopt(fd, SOL_SOCKET, name, &value, &size) ? 0 : value;
}

/* Whether the same process has made both listen: a connection has the number of the one
 * that listens at its other end, unix(7). */
static bool has_listener_of(int connection, int listener) {
    struct ucred there, here;
    socklen_t there_size = sizeof there, here_size = sizeof here;

    return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &there, &there_size) == 0 &&
           getsockopt(listener, SOL_SOCKET, SO_PEERCRED, &here, &here_size) == 0 &&
           there.pid == here.pid;
}

/* A socket has its name for ever, though the path may be gone or another's by now. Who
 * connects there has to come to this one. */
static bool is_reached(int fd, const struct sockaddr_un *address) {
    struct pollfd waiting = {fd, POLLIN, 0};
    CLEANUP(close_fd) int connection = try_connect(address);

    if (connection < 0) /* too many wait; it is for others */
        return errno == EAGAIN || errno == EACCES;
    return has_listener_of(connection, fd) && poll(&waiting, 1, 0) == 1;
}

static bool listens_at(int fd, const struct sockaddr_un *address) {
    struct sockaddr_un there = {0};
    socklen_t size = sizeof there - 1;

    return fd >= 0 && getsockname(fd, (struct sockaddr *)&there, &size) == 0 &&
           there.sun_family == AF_UNIX &&
           strcmp(there.sun_path, address->sun_path) == 0 &&
           option_of(fd, SO_TYPE) == SOCK_STREAM && option_of(fd, SO_ACCEPTCONN) &&
           is_reached(fd, address);
}

static int open_unix(struct listener *listener, const struct sockaddr_un *address,
                     int *given, struct viv_error *err) {
    CLEANUP(close_fd) int lock = path_lock_take(address->sun_path, viv_now(), err);

    if (lock < 0)
        return -1;
    listener->kept = listens_at(*given, address);
    if (!listener->kept && remove_stale(address, err))
        return -1;
    listener->fd = listener->kept ? steal_fd(given) : listen_at(address, err);
    if (listener->fd < 0)
        return -1;
    listener->lock = steal_fd(&lock);
    listener->path = viv_xstrdup(address->sun_path);
    return 0;
}

/* ---- an address of TCP ---- */

/* Reads a number from 1 to 65535; 0 is none. */
static in_port_t parse_port(const char *text) {
    unsigned long value = 0;

    if (*text == '\0' || strlen(text) > 5 || text[strspn(text, "0123456789")])
        return 0;
    value = strtoul(text, NULL, 10);
    return value <= UINT16_MAX ? (in_port_t)value : 0;
}

/* Reads "127.0.0.1:9000" or "[::1]:9000". */
static int parse_tcp(const char *text, union address *address, struct viv_error *err) {
    char host[INET6_ADDRSTRLEN];
    bool is_ipv6 = *text == '[';
    const char *begin = text + is_ipv6;
    const char *end = strstr(begin, is_ipv6 ? "]:" : ":");
    in_port_t port = end ? parse_port(end + 1 + is_ipv6) : 0;
    bool read = false;

    *address = (union address){.any.sa_family = is_ipv6 ? AF_INET6 : AF_INET};
    if (end && (size_t)(end - begin) < sizeof host) {
        memcpy(host, begin, (size_t)(end - begin));
        host[end - begin] = '\0';
        void *to =
            is_ipv6 ? (void *)&address->ipv6.sin6_addr : (void *)&address->ipv4.sin_addr;
        read = inet_pton(address->any.sa_family, host, to) == 1;
    }
    if (!read || port == 0)
        return viv_fail(
            err, VIV_CONFIG,
            "listen: " TCP_SCHEME "ADDRESS:PORT is expected, with an address "
            "in numbers, one of IPv6 in brackets, and a port from 1 to 65535");
    if (is_ipv6)
        address->ipv6.sin6_port = htons(port);
    else
        address->ipv4.sin_port = htons(port);
    return 0;
}

/* The address alone, in the form of struct network. */
static struct in6_addr host_of(const union address *address) {
    struct in6_addr host = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

    if (address->any.sa_family == AF_INET6)
        return address->ipv6.sin6_addr;
    memcpy(host.s6_addr + 12, &address->ipv4.sin_addr, sizeof address->ipv4.sin_addr);
    return host;
}

static bool is_loopback(const struct in6_addr *host) {
    return IN6_IS_ADDR_LOOPBACK(host) ||
           (IN6_IS_ADDR_V4MAPPED(host) && host->s6_addr[12] == IN_LOOPBACKNET);
}

static int open_tcp(struct listener *listener, const union address *address,
                    const char *name, struct viv_error *err) {
    const int on = 1;
    bool is_ipv6 = address->any.sa_family == AF_INET6;
    socklen_t size = is_ipv6 ? sizeof address->ipv6 : sizeof address->ipv4;
    struct in6_addr host = host_of(address);
    CLEANUP(close_fd)
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    /* After a restart connections of the one before may still be about. All of IPv6 is
     * not IPv4 as well: that is another address to listen at. */
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
        (is_ipv6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on)))
        return viv_fail(err, VIV_SYSTEM, "socket: %m");
    if (bind(fd, &address->any, size) || listen(fd, BACKLOG))
        return viv_fail(err, VIV_SYSTEM, "listen at %s: %m", name);
    listener->fd = steal_fd(&fd);
    listener->exposed = !is_loopback(&host);
    return 0;
}

/* ---- either ---- */

/* Fills *address and `allowed`, which the caller clears in any case. */
static int parse(const char *text, const char *web_servers, union address *address,
                 struct networks *allowed, struct viv_error *err) {
    if (networks_parse("web_servers", web_servers, allowed, err))
        return -1;
    if (strncmp(text, TCP_SCHEME, sizeof TCP_SCHEME - 1) == 0)
        return parse_tcp(text + sizeof TCP_SCHEME - 1, address, err);
    if (strncmp(text, UNIX_SCHEME, sizeof UNIX_SCHEME - 1) == 0)
        return parse_path(text + sizeof UNIX_SCHEME - 1, &address->local, err);
    return viv_fail(err, VIV_CONFIG,
                    "listen: not of the form unix:PATH or tcp:ADDRESS:PORT");
}

int listener_check(const char *address, const char *web_servers, struct viv_error *err) {
    struct networks allowed;
    union address parsed;
    int failed = parse(address, web_servers, &parsed, &allowed, err);

    networks_clear(&allowed);
    return failed;
}

int listener_open(struct listener *listener, const char *address, const char *web_servers,
                  int given, struct viv_error *err) {
    CLEANUP(close_fd) int offered = given;
    union address parsed = {0};

    *listener = (struct listener){.fd = -1, .lock = -1};
    int failed = parse(address, web_servers, &parsed, &listener->allowed, err);
    if (!failed && parsed.any.sa_family == AF_UNIX)
        failed = open_unix(listener, &parsed.local, &offered, err);
    else if (!failed)
        failed = open_tcp(listener, &parsed, address, err);
    if (failed)
        networks_clear(&listener->allowed);
    return failed;
}

/* One line a second: anybody on the network may be behind it. */
static void log_refusal(struct listener *listener, const struct in6_addr *host) {
    char text[CLIENT_ADDRESS_SIZE];
    viv_time now = viv_now(), last = listener->complained;

    if (last != 0 && now - last < VIV_SECOND)
        return;
    if (atomic_compare_exchange_strong(&listener->complained, &last, now))
        viv_log_failure(VIV_LOG_WARNING, "web_server_refused",
                        "its address is not among web_servers", "peer=%s",
                        address_format(host, text));
}

int listener_accept(struct listener *listener) {
    const int on = 1;
    union address peer = {0};
    socklen_t size = sizeof peer;
    int connection = accept4(listener->fd, &peer.any, &size, SOCK_CLOEXEC);

    if (connection < 0 || listener->path)
        return connection;
    struct in6_addr host = host_of(&peer);
    if (!networks_contain(&listener->allowed, &host)) {
        close(connection);
        log_refusal(listener, &host);
        errno = ECONNABORTED;
        return -1;
    }
    /* The end of an answer is not to wait for the acknowledgement of what came before. */
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return connection;
}

void listener_unlink(const struct listener *listener) {
    if (listener->path && !listener->kept)
        unlink(listener->path);
}

void listener_close(struct listener *listener) {
    listener_unlink(listener);
    free(listener->path);
    listener->path = NULL;
    networks_clear(&listener->allowed);
    close_and_clear(&listener->fd);
    close_and_clear(&listener->lock);
}
