# SPDX-License-Identifier: MIT
"""Paths, methods and content types: what is no request for us at all."""

import pytest

from support.witness import CODE, Witness

JSON = "application/json"


@pytest.mark.parametrize("path", [
    "/", "/exe", "/exec/", "/exec/x", "/Exec", "/EXEC", "/exec.json", "/health/",
    "/healthz", "/sessions/", "/sessions/none/none", "/index.html", "/favicon.ico", "/robots.txt",
    "/.git/config", "/lighttpd.conf", "/%00", "/exec%00", "/exec%2f", "/%65xec%20", "/ü".encode(
    ).decode("latin-1"), "/~root", "/cgi-bin/x", "/status", "/server-status",
])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_unknown_paths(client, method, path):
    body = b'{"code": "1"}' if method == "POST" else None
    answer = client.raw(
        f"{method} {path}?sessionId=x HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\n"
        f"Content-Length: {len(body or b'')}\r\n\r\n".encode("latin-1") + (body or b""),
        method, path)
    assert answer.status in (404, 400) if "%00" in path else answer.status == 404, answer


@pytest.mark.parametrize("target", ["/../etc/passwd", "/..%2f..%2fetc/passwd", "/exec/../../etc",
                                    "/%2e%2e/%2e%2e/etc/passwd"])
def test_paths_that_climb_give_nothing_away(client, target):
    answer = client.raw(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), "GET", "/none")
    assert answer.status in (400, 404)
    assert b"root:" not in answer.body


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_wrong_methods_of_exec(client, shared, method):
    witness = Witness(shared)
    body = None if method in ("GET", "HEAD") else b'{"code": "ran = True"}'
    answer = client.request(method, shared.target, body, {"Content-Type": JSON})
    assert answer.status in ((405, 200, 204) if method == "OPTIONS" else (405,))
    assert "POST" in answer.headers["Allow"]
    if answer.json is not None:
        witness.refused(answer, 405, "method")
    assert shared.value("'ran' in globals()") is False


@pytest.mark.parametrize("path", ["/health", "/sessions"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_wrong_methods_of_what_is_read(client, path, method):
    answer = client.request(method, path, b"{}", {"Content-Type": JSON})
    assert (answer.status, answer.error_type) == (405, "method")
    assert "GET" in answer.headers["Allow"]


@pytest.mark.parametrize("path", ["/health", "/sessions"])
def test_head_of_what_is_read(client, path):
    answer = client.request("HEAD", path)
    assert answer.status == 200
    assert answer.body == b""


@pytest.mark.parametrize("content_type", [
    None, "", "text/plain", "text/json", "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x", "application/jsonp", "application/json-patch+json",
    "application/octet-stream", "json", "text/html; application/json", "application /json",
    "application/json, text/plain", "xapplication/json",
])
def test_wrong_content_types(client, shared, content_type):
    witness = Witness(shared)
    answer = shared.post({"code": CODE}, content_type=content_type)
    witness.refused(answer, 415, "validation")


@pytest.mark.parametrize("content_type", [
    "application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8",
    'application/json; charset="utf-8"', "Application/JSON", "application/json ; charset=utf-8",
])
def test_right_content_types(shared, content_type):
    assert shared.post({"code": "6 * 7"}, content_type=content_type).value == 42


def test_the_content_type_is_looked_at_before_the_session_id(client):
    assert client.post("/exec", {"code": "1"}, content_type="text/plain").status == 415


def test_what_is_read_needs_no_content_type_and_ignores_a_query(client):
    assert client.get("/health?verbose=1").status == 200
    assert client.get("/sessions?page=2").status == 200


def test_many_requests_on_one_connection(client, shared):
    body = b'{"code": "6 * 7"}'
    head = (f"POST {shared.target} HTTP/1.1\r\nHost: x\r\nContent-Type: {JSON}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n").encode()
    closing = head.replace(b"Host: x\r\n", b"Host: x\r\nConnection: close\r\n")
    with client.connect() as connection:
        connection.sendall(head + body + head + body + closing + body)
        data = b""
        while piece := connection.recv(65536):
            data += piece
    assert data.count(b"HTTP/1.1 200") == 3
    assert data.count(b'"final_expression":42') + data.count(b'"final_expression": 42') == 3
