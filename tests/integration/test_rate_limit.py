# SPDX-License-Identifier: MIT
"""Ten executions a minute for one address and session, by default."""

import pytest

from support.client import exec_target, fresh_id
from support.server import running

LIMIT = 10


def figures(answer):
    """Limit, remaining and reset of an answer."""
    names = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
    return tuple(int(answer.headers[name]) for name in names)


@pytest.fixture
def session(stock):
    """A session of its own at an instance with the default rate."""
    return stock.client.session(fresh_id())


@pytest.fixture(scope="module")
def spent(stock):
    """A session that has used up its rate."""
    session = stock.client.session(fresh_id())
    for _ in range(LIMIT):
        assert session.exec("count = globals().get('count', 0) + 1").status == 200
    return session


def test_the_eleventh_call_is_refused(session):
    for number in range(LIMIT):
        answer = session.exec("1")
        assert answer.status == 200
        limit, remaining, reset = figures(answer)
        assert (limit, remaining) == (LIMIT, LIMIT - 1 - number)
        assert 0 <= reset <= 60
    answer = session.exec("1")
    assert (answer.status, answer.error_type) == (429, "rate_limit")
    limit, remaining, reset = figures(answer)
    assert (limit, remaining) == (LIMIT, 0)
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert 1 <= reset <= 60


def test_a_refused_call_never_runs(stock, spent):
    before = stock.client.sessions()[spent.name]
    answer = spent.exec("open('ran', 'w').close()", files={"written": b"x"})
    assert answer.status == 429
    after = stock.client.sessions()[spent.name]
    assert after["execution_count"] == before["execution_count"] == LIMIT


def test_the_limit_is_for_one_session(spent, session):
    assert spent.exec("1").status == 429
    answer = session.exec("6 * 7")
    assert answer.value == 42
    assert figures(answer)[1] == LIMIT - 1


def test_health_and_the_list_of_sessions_are_not_limited(stock, spent):
    for _ in range(2 * LIMIT):
        assert stock.client.health().status == 200
        assert stock.client.get("/sessions").status == 200
    assert spent.exec("1").status == 429


def test_another_spelling_of_the_id_is_the_same_id(stock, spent):
    spelt = "/exec?sessionId=" + "".join(f"%{byte:02x}" for byte in spent.name.encode())
    assert stock.client.post(spelt, {"code": "1"}).status == 429


@pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Client-IP"])
def test_no_header_makes_another_client(stock, spent, header):
    value = "for=192.0.2.7" if header == "Forwarded" else "192.0.2.7"
    answer = stock.client.request(
        "POST", exec_target(spent.name), b'{"code": "1"}',
        {"Content-Type": "application/json", header: value})
    assert answer.status == 429


@pytest.mark.parametrize("body, content_type, status", [
    (b'{"code": ', "application/json", 429),
    (b'{"code": 1}', "application/json", 429),
    (b'{"code": "1"}', "text/plain", 415),
    (b'{"code": "1"}', None, 415),
])
def test_the_place_of_the_rate_in_the_order_of_checks(spent, body, content_type, status):
    assert spent.post(body, content_type=content_type).status == status


def test_an_id_that_is_refused_comes_before_the_rate(stock):
    for _ in range(LIMIT + 2):
        assert stock.client.post("/exec?sessionId=a%00", {"code": "1"}).status == 422


def test_a_rate_of_0_is_none(server):
    session = server.client.session(fresh_id())
    for _ in range(3 * LIMIT):
        assert session.exec("1").status == 200


@pytest.fixture(scope="module")
def proxied():
    """An instance that believes what a proxy on this machine says of its clients."""
    with running(rate_limit=3, trusted_proxies="127.0.0.1",
                 max_sessions_per_client=2) as instance:
        yield instance.client


def from_address(client, address, name):
    """Run code as the proxy of a client at `address`."""
    return client.request("POST", exec_target(name), b'{"code": "1"}',
                          {"Content-Type": "application/json", "X-Forwarded-For": address})


def test_the_rate_is_a_setting(proxied):
    session = proxied.session(fresh_id())
    statuses = [session.exec("1").status for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]
    assert figures(session.exec("1"))[0] == 3


def test_a_trusted_proxy_says_who_the_client_is(proxied):
    name = fresh_id()
    statuses = [from_address(proxied, "192.0.2.1", name).status for _ in range(4)]
    assert statuses == [200, 200, 200, 429]
    assert from_address(proxied, "192.0.2.2", name).status == 200
    # what the client itself says to the proxy does not count
    assert from_address(proxied, "192.0.2.77, 192.0.2.1", name).status == 429


def test_the_sessions_of_one_client_can_be_limited(proxied):
    statuses = [from_address(proxied, "192.0.2.3", fresh_id()).status for _ in range(3)]
    assert statuses == [200, 200, 503]
    refused = from_address(proxied, "192.0.2.3", fresh_id())
    assert refused.error_type == "capacity"
    assert from_address(proxied, "192.0.2.4", fresh_id()).status == 200


def test_what_a_client_says_of_itself_comes_before_what_the_proxy_adds(proxied):
    name, body, statuses = fresh_id(), b'{"code": "1"}', []
    for number in range(4):
        statuses.append(proxied.raw(
            f"POST {exec_target(name)} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"X-Forwarded-For: 198.51.100.{number}\r\nX-Forwarded-For: 192.0.2.77\r\n"
            f"Content-Length: {len(body)}\r\n\r\n".encode() + body, "POST", "/exec").status)
    assert statuses == [200, 200, 200, 429]


def test_no_other_spelling_takes_the_place_of_what_the_proxy_says(proxied):
    """Web servers make the same variable of all these headers."""
    name, body, statuses = fresh_id(), b'{"code": "1"}', []
    told, lies = "X-Forwarded-For: 192.0.2.78\r\n", (
        "X_Forwarded_For: 198.51.100.1\r\n", "X.Forwarded-For: 198.51.100.2\r\n")
    for lines in (told + lies[0], lies[0] + told, told + lies[1], lies[1] + told):
        statuses.append(proxied.raw(
            f"POST {exec_target(name)} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            f"{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body,
            "POST", "/exec").status)
    assert statuses == [200, 200, 200, 429]
