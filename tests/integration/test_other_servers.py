# SPDX-License-Identifier: MIT
"""Vivarium as a part of what a web server serves: below a prefix, and under a name of its own."""

import http.client
import os

import pytest

from support import strict_json
from support.client import Client, exec_target, fresh_id, session_target
from support.other_servers import INDEX, NAME, OTHER_SERVERS, PREFIX
from support.server import running
from support.together import eventually

JSON = {"Content-Type": "application/json"}
MEGABYTE = 1 << 20


@pytest.fixture(scope="module")
def instance():
    """An instance whose vivarium-fcgi the other web servers find."""
    with running(rate_limit=0) as started:
        yield started


@pytest.fixture(scope="module", params=OTHER_SERVERS)
def other(request, instance):
    """A web server with other duties."""
    with OTHER_SERVERS[request.param](str(instance.application_socket())) as server:
        yield server


@pytest.fixture
def below(other):
    """A client of the prefix."""
    return Client(other.port, prefix=PREFIX)


@pytest.fixture
def named(other):
    """A client of the name."""
    return Client(other.port, name=NAME)


def plain(other, method, target, body=None, headers=None):
    """An answer whatever its form: status, headers, body."""
    connection = http.client.HTTPConnection("127.0.0.1", other.port, timeout=60)
    try:
        connection.request(method, target, body, headers or {})
        response = connection.getresponse()
        return response.status, response.headers, response.read()
    finally:
        connection.close()


def test_all_is_there_below_the_prefix(below):
    name = fresh_id()
    assert below.health().status == 200
    assert below.exec("x = 6 * 7; x", name).value == 42
    assert name in below.sessions()
    assert below.request("HEAD", "/health").status == 200
    answer = below.request("OPTIONS", "/exec")
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


def test_all_is_there_under_a_name_of_its_own(named):
    name = fresh_id()
    assert named.health().status == 200
    assert named.exec("6 * 7", name).value == 42
    assert name in named.sessions()


@pytest.mark.parametrize("name", ["plain", "a b", "a/b", "a//b", "a%2Fb", "a?b", "a&b=c#d", "a+b",
                                  "\N{SNOWMAN}", "interrupt", "x" * 128])
def test_a_session_is_interrupted_and_ended_by_its_path(below, named, name):
    for client in (below, named):
        assert client.exec("1", name).success
        assert client.interrupt(name).json == {"success": True, "interrupted": False}
        assert client.end(name).json == {"success": True, "interrupted": False}
        assert client.end(name).status == 404
        answer = client.request("PUT", session_target(name))
        assert (answer.status, answer.headers["Allow"]) == (405, "DELETE")


def test_ids_that_lead_out_of_the_prefix_lead_nowhere(other, below):
    """The session of that id is ended, or nothing is."""
    for name in ("..", "../..", "../../..", "../../exec", "../../../index.html", "."):
        below.exec("1", name)
        status, _, body = plain(other, "DELETE", f"{PREFIX}{session_target(name)}")
        assert status in (200, 400, 403, 404, 405, 501)
        assert (body == b'{"success":true,"interrupted":false}') == (status == 200)
        assert (name in below.sessions()) == (status != 200)


def test_it_is_the_same_service(instance, below, named):
    name = "\N{SNOWMAN} a/b..%2f?&+"
    assert instance.client.exec("x = 1", name).success
    assert below.exec("x = x + 1; x", name).value == 2
    assert named.exec("x = x + 1; x", name).value == 3


def test_large_bodies_and_answers_pass(below):
    content = os.urandom(8 * MEGABYTE)
    answer = below.exec("import shutil; shutil.copy('in', 'out')", fresh_id(),
                        files={"in": content})
    assert answer.files == {"out": content}


@pytest.mark.parametrize("path", ["/exec/", "/Exec", "//exec", "/%65xec", "/python/exec", "/",
                                  "/x/../../python/exec"])
def test_paths_behind_the_prefix_are_taken_as_they_are_sent(below, path):
    answer = below.request("POST", path + "?sessionId=x", b'{"code": "1"}', JSON)
    assert (answer.status, answer.error_type) == (404, "not_found")


@pytest.mark.parametrize("target", ["/x/../python/health", "/./python/health"])
def test_another_way_to_the_prefix_is_none(other, target):
    status, headers, body = plain(other, "GET", target)
    assert (status, headers["Content-Type"]) == (404, "application/json")
    assert b"not_found" in body


def test_a_client_cannot_name_the_prefix(below, other):
    for header in ("Script-Name", "Script_Name", "X-Script-Name", "HTTP_SCRIPT_NAME"):
        answer = below.request("GET", "/x/health", headers={header: "/python/x"})
        assert (answer.status, answer.error_type) == (404, "not_found")


def test_other_paths_are_served_as_ever(other):
    assert plain(other, "GET", "/")[::2] == (200, INDEX)
    for target in ("/health", "/none", "/pythonic/health", "/python-health", "/pyth"):
        status, headers, _ = plain(other, "GET", target)
        assert status == 404
        assert headers["Content-Type"].startswith("text/html"), target
        assert "X-Content-Type-Options" not in headers
    status, headers, _ = plain(other, "POST", exec_target("x"), b'{"code": "1"}', JSON)
    assert status in (404, 405)
    assert headers["Content-Type"].startswith("text/html")


def test_the_limit_of_bodies_is_that_of_the_part(other):
    # what is above it the web server refuses without having read it
    headers = {**JSON, "Content-Length": str(160_000 * 1024 + 1)}
    status, _, body = plain(other, "POST", PREFIX + exec_target("x"), None, headers)
    assert (status, strict_json.loads(body)["error"]["type"]) == (413, "resource_limit")
    status, headers, _ = plain(other, "POST", "/", bytes(2 * MEGABYTE))
    assert status == {"lighttpd": 200, "nginx": 413}[other.program]
    assert headers["Content-Type"].startswith("text/html")


def test_a_dead_backend_is_told_in_json(instance, other, below, named):
    with instance.without_application():
        for client in (below, named):
            answer = client.get("/health")
            assert answer.status == {"lighttpd": 503, "nginx": 502}[other.program]
            assert answer.error_type == "system"
            assert client.exec("1", "x", files={"a": bytes(5 * MEGABYTE)}).error_type == "system"
        assert plain(other, "GET", "/")[::2] == (200, INDEX)
    eventually(lambda: below.get("/health").status == 200)
