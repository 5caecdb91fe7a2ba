# SPDX-License-Identifier: MIT
"""What the web server itself refuses is answered in JSON like everything else."""

import os
import signal
import socket
import time

import pytest

from support import strict_json
from support.client import fresh_id
from support.limits import without_processes
from support.must import only_root_can
from support.processes import FCGI, WEB_SERVER
from support.server import running
from support.together import eventually, in_background

JSON = b"Content-Type: application/json\r\n"
BODY = b'{"code": "1"}'

GET = b"GET /health HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /exec?sessionId=x HTTP/1.1\r\nHost: x\r\n" + JSON

LATER = (505, 400)  # lighttpd 1.4.69, 1.4.79

# the status of lighttpd's answer, that of nginx's, and to what
MALFORMED = {
    "a header field too large": (431, 431, GET + b"X: " + b"y" * 100_000 + b"\r\n\r\n"),
    "very many header fields": (431, 431, GET + b"X: y\r\n" * 20_000 + b"\r\n"),
    "a request line too long": (431, 414, b"GET /" + b"x" * 100_000
                                + b" HTTP/1.1\r\nHost: x\r\n\r\n"),
    "an unknown method": (501, 405, b"BREW /exec HTTP/1.1\r\nHost: x\r\n\r\n"),
    "a method in small letters": (501, 400, b"get /health HTTP/1.1\r\nHost: x\r\n\r\n"),
    "a version that is none": (400, 400, b"GET /health HTTX/1.1\r\nHost: x\r\n\r\n"),
    "a version to come": (LATER, 505, b"GET /health HTTP/3.7\r\nHost: x\r\n\r\n"),
    "no host": (400, 400, b"GET /health HTTP/1.1\r\n\r\n"),
    "two hosts": (400, 400, GET + b"Host: y\r\n\r\n"),
    "a host that is none": (400, 400, b"GET /health HTTP/1.1\r\nHost: x/y@z\r\n\r\n"),
    "a header line without a colon": (400, 200, GET + b"nonsense\r\n\r\n"),
    "a blank before the colon": (400, 400, b"GET /health HTTP/1.1\r\nHost : x\r\n\r\n"),
    "NUL in a header field": (400, 400, GET + b"X: a\0b\r\n\r\n"),
    "no path": (400, 400, b"GET  HTTP/1.1\r\nHost: x\r\n\r\n"),
    "a length that is no number": (400, 400, POST + b"Content-Length: ten\r\n\r\n" + BODY),
    "a negative length": (400, 400, POST + b"Content-Length: -1\r\n\r\n" + BODY),
    "a length beyond all numbers": (400, 400, POST + b"Content-Length: " + b"9" * 25
                                    + b"\r\n\r\n" + BODY),
    "two lengths": (400, 400, POST + b"Content-Length: 13\r\nContent-Length: 5\r\n\r\n" + BODY),
    "no length": (411, 400, POST + b"\r\n"),
    "chunks and a length": (400, 400, POST + b"Transfer-Encoding: chunked\r\n"
                            b"Content-Length: 3\r\n\r\n0\r\n\r\n"),
    "a coding that is none": (501, 501, POST + b"Transfer-Encoding: gzip\r\n\r\n" + BODY),
    "a chunk that is none": (400, 400, POST + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n"),
    "an expectation that is none": (200, 200, POST + b"Expect: miracles\r\n"
                                    b"Content-Length: 13\r\n\r\n" + BODY),
    "a body too large": (413, 413, POST + b"Content-Length: 999999999\r\n\r\n"),
    "a body too large where none belongs": (413, 413, b"POST /health HTTP/1.1\r\nHost: x\r\n"
                                            b"Content-Length: 999999999\r\n\r\n"),
}


@pytest.mark.parametrize("lighttpd, nginx, request_bytes", MALFORMED.values(),
                         ids=MALFORMED.keys())
def test_malformed_requests(client, lighttpd, nginx, request_bytes):
    method, target = request_bytes.decode("latin-1").split(" ")[:2]
    answer = client.raw(request_bytes, method, target[:20], parsed=False)
    expected = {"lighttpd": lighttpd, "nginx": nginx}[WEB_SERVER]
    assert answer.status in (expected if isinstance(expected, tuple) else (expected,)), answer


def test_a_request_without_a_version(client):
    if WEB_SERVER == "lighttpd":
        answer = client.raw(b"GET /health\r\n\r\n", "GET", "/health", parsed=False)
        assert (answer.status, answer.error_type) == (400, "validation")
    else:  # nginx takes it as of HTTP/0.9, in which an answer has no head
        with client.connect() as connection:
            connection.sendall(b"GET /health\r\n\r\n")
            answer = strict_json.loads(connection.makefile("rb").read())
        assert (answer["success"], answer["error"]["type"]) == (False, "validation")


@pytest.mark.parametrize("request_bytes", [GET + b"\r\n", GET + b"X: a\0b\r\n\r\n"],
                         ids=["served", "refused"])
def test_no_version_of_the_web_server_is_told(client, request_bytes):
    answer = client.raw(request_bytes, "GET", "/health", parsed=False)
    assert answer.headers.get_all("Server") == {"lighttpd": None, "nginx": ["nginx"]}[WEB_SERVER]


def test_expecting_to_go_on_is_fine(client):
    with client.connect() as connection:
        connection.sendall(
            b"POST /exec?sessionId=" + fresh_id().encode() + b" HTTP/1.1\r\nHost: x\r\n" + JSON
            + b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: 13\r\n\r\n")
        time.sleep(0.2)
        connection.sendall(BODY)
        data = b""
        while piece := connection.recv(65536):
            data += piece
    assert b"HTTP/1.1 200 OK" in data
    assert b'"success":true' in data.replace(b" ", b"")


def test_an_old_client_without_a_host_is_served(client):
    answer = client.raw(b"GET /health HTTP/1.0\r\n\r\n", "GET", "/health")
    assert answer.status == 200


def test_clients_that_leave_in_the_middle_hurt_nobody(client, session):
    session.exec("x = 1")
    head = f"POST {session.target} HTTP/1.1\r\nHost: x\r\n".encode() + JSON
    for sent in (b"P", head, head + b"Content-Length: 1000\r\n\r\n{", head
                 + b"Content-Length: 13\r\n\r\n" + BODY):
        for _ in range(5):
            with client.connect() as connection:
                connection.sendall(sent)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    assert session.value("x") == 1
    assert client.health().status == 200


def test_slow_clients_hold_nobody(client, session):
    slow = [client.connect() for _ in range(150)]
    try:
        for connection in slow:
            connection.sendall(f"POST {session.target} HTTP/1.1\r\nHost: x\r\n".encode() + JSON
                               + b"Content-Length: 13\r\n\r\n{")
        assert session.value("6 * 7") == 42
        assert client.health().status == 200
    finally:
        for connection in slow:
            connection.close()


def test_no_file_of_the_web_server_is_served(client):
    for path in ("/", "/index.html", "/errors/404.html", "/404.html", "/vivarium-error/404",
                 "/vivarium-error", "/errors/vivarium-error"):
        answer = client.get(path)
        assert (answer.status, answer.error_type) == (404, "not_found")


@pytest.fixture(scope="module")
def held():
    """An instance whose parts stay dead while dev-server, which restarts them, is stopped."""
    with running(rate_limit=0) as instance:
        yield instance


@pytest.fixture
def without_backend(held):
    """That instance without vivarium-fcgi; afterwards it must come back by itself."""
    part = held.part(FCGI)
    with held.without_application():
        yield held
    assert held.part(FCGI).pid != part.pid
    assert held.client.exec("6 * 7", fresh_id()).value == 42


# the status where nobody takes a connection, or the one who took it has gone
DEAD = {"lighttpd": 503, "nginx": 502}


def test_a_dead_backend(without_backend):
    answers = [without_backend.client.get(target) for target in ("/health", "/sessions", "/none")]
    answers += [without_backend.client.exec("1", fresh_id(), files={"a": bytes(size)})
                for size in (1, 5_000_000)]
    assert {answer.status for answer in answers} == {DEAD[WEB_SERVER]}
    assert {answer.error_type for answer in answers} == {"system"}
    assert {answer.headers["Retry-After"] for answer in answers} == {"2"}


def test_a_dead_backend_where_no_process_can_be_started(without_backend):
    only_root_can("give the web server a user of its own")
    with without_processes(without_backend.part(WEB_SERVER)):
        answer = without_backend.client.get("/health")
    assert (answer.status, answer.error_type) == (DEAD[WEB_SERVER], "system")


def test_a_backend_that_dies_during_a_call(held):
    call = in_background(lambda: held.client.exec("import time; time.sleep(20)", fresh_id()))
    eventually(lambda: any(entry["state"] == "busy" for entry in held.client.sessions().values()))
    os.kill(held.part(FCGI).pid, signal.SIGKILL)
    answer = call.result(60)
    assert (answer.status, answer.error_type) == (DEAD[WEB_SERVER], "system")
    assert answer.headers["Retry-After"] == "2"
    held.wait_until_healthy()
