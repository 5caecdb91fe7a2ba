# SPDX-License-Identifier: MIT
"""What the web server itself refuses is answered in JSON like everything else."""

import os
import signal
import socket
import time

import pytest

from support.client import fresh_id
from support.processes import FCGI
from support.server import running
from support.together import eventually, in_background

JSON = b"Content-Type: application/json\r\n"
BODY = b'{"code": "1"}'

# what is sent -> the statuses that may answer it
MALFORMED = {
    "a header field too large": (b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 100_000
                                 + b"\r\n\r\n", {400, 413, 431}),
    "very many header fields": (b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 20_000
                                + b"\r\n", {400, 413, 431}),
    "a request line too long": (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
                                {400, 413, 414, 431}),
    "an unknown method": (b"BREW /exec HTTP/1.1\r\nHost: x\r\n\r\n", {400, 405, 501}),
    "a method in small letters": (b"get /health HTTP/1.1\r\nHost: x\r\n\r\n", {400, 405, 501}),
    "no version": (b"GET /health\r\n\r\n", {400}),
    "a version that is none": (b"GET /health HTTX/1.1\r\nHost: x\r\n\r\n", {400, 505}),
    "a version to come": (b"GET /health HTTP/3.7\r\nHost: x\r\n\r\n", {400, 505}),
    "no host": (b"GET /health HTTP/1.1\r\n\r\n", {400}),
    "two hosts": (b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", {400}),
    "a host that is none": (b"GET /health HTTP/1.1\r\nHost: x/y@z\r\n\r\n", {400}),
    "a header line without a colon": (b"GET /health HTTP/1.1\r\nHost: x\r\nnonsense\r\n\r\n",
                                      {400}),
    "a blank before the colon": (b"GET /health HTTP/1.1\r\nHost : x\r\n\r\n", {400}),
    "NUL in a header field": (b"GET /health HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", {400}),
    "no path": (b"GET  HTTP/1.1\r\nHost: x\r\n\r\n", {400}),
    "a length that is no number": (b"POST /exec?sessionId=x HTTP/1.1\r\nHost: x\r\n" + JSON
                                   + b"Content-Length: ten\r\n\r\n" + BODY, {400}),
    "a negative length": (b"POST /exec?sessionId=x HTTP/1.1\r\nHost: x\r\n" + JSON
                          + b"Content-Length: -1\r\n\r\n" + BODY, {400, 413}),
    "a length beyond all numbers": (b"POST /exec?sessionId=x HTTP/1.1\r\nHost: x\r\n" + JSON
                                    + b"Content-Length: 99999999999999999999999\r\n\r\n" + BODY,
                                    {400, 413}),
    "two lengths": (b"POST /exec?sessionId=x HTTP/1.1\r\nHost: x\r\n" + JSON
                    + b"Content-Length: 13\r\nContent-Length: 5\r\n\r\n" + BODY, {400}),
    "no length": (b"POST /exec?sessionId=x HTTP/1.1\r\nHost: x\r\n" + JSON + b"\r\n",
                  {400, 411}),
    "chunks and a length": (b"POST /exec?sessionId=x HTTP/1.1\r\nHost: x\r\n" + JSON
                            + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
                            {400}),
    "a coding that is none": (b"POST /exec?sessionId=x HTTP/1.1\r\nHost: x\r\n" + JSON
                              + b"Transfer-Encoding: gzip\r\n\r\n" + BODY, {400, 411, 501}),
    "a chunk that is none": (b"POST /exec?sessionId=x HTTP/1.1\r\nHost: x\r\n" + JSON
                             + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", {400}),
    "an expectation that is none": (b"POST /exec?sessionId=x HTTP/1.1\r\nHost: x\r\n" + JSON
                                    + b"Expect: miracles\r\nContent-Length: 13\r\n\r\n" + BODY,
                                    {200, 400, 417}),
    "a body too large": (b"POST /exec?sessionId=x HTTP/1.1\r\nHost: x\r\n" + JSON
                         + b"Content-Length: 999999999\r\n\r\n", {413}),
    "a body too large where none belongs": (b"POST /health HTTP/1.1\r\nHost: x\r\n" + JSON
                                            + b"Content-Length: 999999999\r\n\r\n", {405, 413}),
}


@pytest.mark.parametrize("request_bytes, statuses", MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_requests(client, request_bytes, statuses):
    method = "POST" if request_bytes.startswith(b"POST") else "GET"
    answer = client.raw(request_bytes, method, "/exec", parsed=False)
    assert answer.status in statuses, answer


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
    for path in ("/", "/index.html", "/errors/404.json", "/404.json", "/status-404.json"):
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
    held.process.send_signal(signal.SIGSTOP)
    try:
        os.kill(part.pid, signal.SIGKILL)
        eventually(lambda: not part.alive())
        yield held
    finally:
        held.process.send_signal(signal.SIGCONT)
    held.wait_until_healthy()
    assert held.part(FCGI).pid != part.pid
    assert held.client.exec("6 * 7", fresh_id()).value == 42


def test_a_dead_backend(without_backend):
    for target in ("/health", "/sessions", "/none"):
        answer = without_backend.client.get(target)
        assert answer.status in (500, 502, 503)
        assert answer.error_type == "system"
    answer = without_backend.client.exec("1", fresh_id())
    assert answer.status in (500, 502, 503)
    assert answer.error_type == "system"


def test_a_backend_that_dies_during_a_call(held):
    call = in_background(lambda: held.client.exec("import time; time.sleep(20)", fresh_id()))
    eventually(lambda: any(entry["state"] == "busy" for entry in held.client.sessions().values()))
    os.kill(held.part(FCGI).pid, signal.SIGKILL)
    answer = call.result(60)
    assert answer.status in (500, 502, 503)
    assert answer.error_type == "system"
    held.wait_until_healthy()
