# SPDX-License-Identifier: MIT
"""What may name a session, and what is refused as a name."""

import json
import urllib.parse
import uuid

import pytest

from support.client import exec_target

REQUIRED = "sessionId query parameter is required"
BODY = json.dumps({"code": "1"}).encode()


def unique():
    """Ten characters that make an id of this run."""
    return uuid.uuid4().hex[:10]


@pytest.mark.parametrize("name", [
    "x", "Default", "a b", "a+b", "a&b=c", "a#b", "a?b", "a%b", "a/b", "../x", "../../etc/passwd",
    "/", "/etc/passwd", "\\", "..", ".", "ü☕", "😀" * 20, "'; drop table --", '"', "<script>",
    "\u2028", "\u00a0", "\ufeff", "-rf", "null", "undefined", "%2e%2e%2f", "{}", "a,b", "a;b",
])
def test_any_text_is_an_id(client, name):
    name += unique()
    answer = client.exec("x = 1", name)
    assert answer.status == 200, answer
    assert answer.session["id"] == name
    assert name in client.sessions()
    assert client.exec("x", name).value == 1


@pytest.mark.parametrize("name", [".", "..", "/", "../x", "/etc/passwd", "*", "%", "😀", " "])
def test_an_id_is_never_a_path_or_a_pattern(client, name):
    answer = client.exec("import os; x = 2; [os.getcwd(), os.listdir('.')]", name)
    assert answer.value == ["/home/earth", []]
    assert answer.session["id"] == name
    assert client.exec("x", name).value == 2


@pytest.mark.parametrize("length", [1, 127, 128])
def test_ids_up_to_128_bytes(client, length):
    name = (unique() * 13)[-length:]
    assert client.exec("1", name).session["id"] == name


def test_the_length_is_that_of_the_decoded_bytes(client):
    name = "é" * 59 + unique()  # 59 * 2 + 10 bytes, three times as many as they travel
    assert len(name.encode()) == 128
    assert client.exec("1", name).session["id"] == name
    assert client.exec("1", name + "x").status == 422


def test_the_decoded_text_is_the_id(client):
    tail = unique()
    client.exec("x = 7", f"aé+{tail}")
    answer = client.post(f"/exec?sessionId=%61%C3%A9%2B{tail}", {"code": "x"})
    assert answer.value == 7
    answer = client.post(f"/exec?sessionId=%61%c3%a9%2b{tail}", {"code": "x"})
    assert answer.value == 7


def test_case_and_space_tell_ids_apart(client):
    tail = unique()
    client.exec("x = 1", "id" + tail)
    for other in ("ID" + tail, "id" + tail + " ", " id" + tail, "id" + tail + "."):
        assert client.exec("'x' in globals()", other).value is False


@pytest.mark.parametrize("query", ["", "?", "?sessionId", "?sessionId=", "?sessionId=&x=1",
                                   "?session=x", "?sessionid=x", "?SESSIONID=x", "?sessionId%20=x",
                                   "?x=sessionId=y"])
def test_a_missing_or_empty_id(client, query):
    answer = client.post("/exec" + query, {"code": "1"})
    assert (answer.status, answer.error_type) == (422, "validation")
    assert answer.error["message"] == REQUIRED
    assert answer.error["details"][0]["on"] == "query"
    assert answer.error["details"][0]["path"] == "/sessionId"


REFUSED = {
    "129 bytes": "x" * 129,
    "129 bytes of two-byte characters": urllib.parse.quote("x" + "é" * 64),
    "a thousand bytes": "x" * 1000,
    "NUL": "a%00b",
    "only NUL": "%00",
    "newline": "a%0Ab",
    "carriage return": "a%0Db",
    "tab": "a%09b",
    "escape": "%1B[2J",
    "delete": "a%7Fb",
    "bytes that are no text": "a%FF",
    "an overlong slash": "a%C0%AF",
    "a surrogate": "a%ED%A0%80",
    "beyond Unicode": "%F4%90%80%80",
    "half a character": "a%C3",
}


@pytest.mark.parametrize("written", REFUSED.values(), ids=REFUSED.keys())
def test_refused_ids(client, written):
    before = set(client.sessions())
    answer = client.post(f"/exec?sessionId={written}", {"code": "1"})
    assert (answer.status, answer.error_type) == (422, "validation")
    assert answer.error["details"][0]["on"] == "query"
    assert answer.error["details"][0]["path"] == "/sessionId"
    assert set(client.sessions()) <= before


@pytest.mark.parametrize("query", ["sessionId=a&sessionId=b", "sessionId=a&sessionId=a",
                                   "sessionId=a&x=1&sessionId=", "sessionId=&sessionId=a"])
def test_an_id_that_stands_twice(client, query):
    before = set(client.sessions())
    answer = client.post("/exec?" + query, {"code": "1"})
    assert (answer.status, answer.error_type) == (422, "validation")
    assert set(client.sessions()) <= before


@pytest.mark.parametrize("written", ["a%", "a%4", "a%zz", "%"])
def test_percent_signs_that_encode_nothing(client, written):
    answer = client.raw(
        f"POST /exec?sessionId={written} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(BODY)}\r\nConnection: close\r\n\r\n".encode() + BODY,
        "POST", "/exec")
    assert answer.status in (200, 400, 422)
    assert answer.status != 200 or answer.session["id"] == written


def test_other_parameters_are_ignored(client, session):
    target = exec_target(session.name).replace("?", "?first=1&") + "&last=%00&empty"
    assert client.post(target, {"code": "6 * 7"}).value == 42


def test_an_id_of_ten_thousand_bytes(client):
    before = set(client.sessions())
    answer = client.raw(
        b"POST /exec?sessionId=" + b"x" * 10_000 + b" HTTP/1.1\r\nHost: x\r\nContent-Type: "
        b"application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY,
        "POST", "/exec", parsed=False)
    assert answer.status in (400, 414, 422, 431)
    assert set(client.sessions()) <= before


def test_raw_bytes_in_the_request_line(client):
    for raw in (b"\xff\xfe", b"\x01", "ü".encode()):
        answer = client.raw(
            b"POST /exec?sessionId=" + raw + b" HTTP/1.1\r\nHost: x\r\nContent-Type: "
            b"application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY, "POST", "/exec")
        assert answer.status in ((200, 400, 422) if raw == "ü".encode() else (400, 422)), answer
