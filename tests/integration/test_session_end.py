# SPDX-License-Identifier: MIT
"""DELETE /sessions/{id}: a session ends at once, and the next call begins another."""

import time

import pytest

from support.client import exec_target, fresh_id, session_target
from support.program import program
from support.together import at_once, eventually, in_background

SESSION_IDS = [
    "x", "a b", "a+b", "a&b=c", "a#b", "a?b", "a%b", "a/b", "a//b", "/", "//", "\\", "%2F", "%",
    "interrupt", "a/interrupt", "ü☕", "😀" * 20, "'; drop table --", '"', "<script>", "...", "-rf",
    "{}", "{id}", "a,b", "a;b", "*", "\u2028", "x" * 128, " ", "%2e%2e%2f", "a/../b", "./a",
]


def begun(session, code="import time; time.sleep(60)", **members):
    """A call that runs; the future of its answer."""
    call = in_background(lambda: session.exec(code, **members))
    eventually(lambda: session.state() == "busy")
    return call


def test_nothing_of_it_is_left(client, session):
    session.exec("x = 5\nopen('f', 'w').write('here')")
    assert session.end() is False
    assert session.name not in client.sessions()
    answer = session.exec("import os; ['x' in globals(), os.listdir()]")
    assert answer.value == [False, []]
    assert answer.session["created"] and answer.lost == "none"
    assert answer.session["execution_count"] == 1


def test_a_session_that_is_none(client, session):
    answer = client.end(fresh_id())
    assert (answer.status, answer.error_type) == (404, "not_found")
    session.exec("1")
    session.end()
    assert client.end(session.name).status == 404


@pytest.mark.parametrize("name", SESSION_IDS)
def test_ids_in_a_path(client, name):
    """Percent-encoded, any id gets there as it is."""
    client.exec("x = 1", name)
    assert client.interrupt(name).json == {"success": True, "interrupted": False}
    assert client.end(name).json == {"success": True, "interrupted": False}
    assert client.interrupt(name).status == 404
    assert name not in client.sessions()
    assert client.exec("'x' in globals()", name).value is False
    assert client.end(name).status == 200


REFUSED = {
    "129 bytes": "x" * 129,
    "129 bytes that are encoded": "%C3%A9" * 64 + "x",
    "newline": "a%0Ab",
    "tab": "a%09b",
    "delete": "a%7Fb",
    "bytes that are no text": "a%FF",
    "an overlong slash": "a%C0%AF",
    "a surrogate": "a%ED%A0%80",
}


@pytest.mark.parametrize("written", REFUSED.values(), ids=REFUSED)
def test_refused_ids(client, written):
    for method, tail in (("DELETE", ""), ("POST", "/interrupt")):
        answer = client.request(method, f"/sessions/{written}{tail}")
        assert (answer.status, answer.error_type) == (422, "validation")
        detail, = answer.error["details"]
        assert (detail["on"], detail["path"]) == ("path", "/sessionId")


def test_nul_in_an_id(client):
    """nginx refuses that itself."""
    assert client.request("DELETE", "/sessions/a%00b").status in (400, 422)


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "OPTIONS", "PATCH"])
def test_other_methods(client, session, method):
    session.exec("1")
    answer = client.request(method, session_target(session.name))
    assert (answer.status, answer.headers["Allow"]) == (405, "DELETE")
    assert session.name in client.sessions()


def test_a_running_call_is_ended(session):
    session.exec("x = 1")
    call = begun(session, "import time\nprint('so far', flush=True)\ntime.sleep(60)")
    time.sleep(0.5)
    began = time.monotonic()
    assert session.end() is True
    answer = call.result(30)
    assert time.monotonic() - began < 20
    assert (answer.status, answer.error_type, answer.lost) == (200, "interrupted", "all")
    assert answer.error["message"] == "The session was ended while the code ran"
    assert answer.std_out == "so far\n"
    answer = session.exec("'x' in globals()")
    assert answer.value is False and answer.session["created"]


def test_code_cannot_resist(session):
    call = begun(session, program("""
        while True:
            try:
                while True: sum(range(999))
            except BaseException: pass
    """))
    assert session.end() is True
    assert call.result(20).error_type == "interrupted"


def test_calls_that_wait_are_answered_at_once(session):
    session.exec("import time")
    running = begun(session, "time.sleep(60)")
    waiting = [in_background(lambda: session.exec("ran = 1")) for _ in range(4)]
    time.sleep(1)
    assert session.end() is True
    for call in waiting:
        answer = call.result(20)
        assert (answer.status, answer.error_type) == (409, "interrupted")
        assert "Retry-After" not in answer.headers
    assert running.result(20).error_type == "interrupted"
    assert session.value("'ran' in globals()") is False


def test_it_ends_while_its_body_arrives(client, session):
    """The call comes later than the end, and begins a session."""
    session.exec("x = 1")
    body = b'{"code": "\'x\' in globals()"}'
    with client.connect() as connection:
        connection.sendall(
            f"POST {exec_target(session.name)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body[:10])
        time.sleep(0.3)
        assert session.end() is False
        connection.sendall(body[10:])
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    assert b'"created":true' in answer and b'"final_expression":false' in answer


def test_it_ends_while_files_are_collected(client, new_session):
    """The call has its answer or is said to be ended; nothing is in between."""
    for number in range(8):
        session = new_session()
        call = begun(session, "for n in range(90): open(str(n), 'wb').write(bytes(900_000))\n"
                              "'done'")
        time.sleep(0.05 * number)
        client.end(session.name)
        answer = call.result(60)
        if answer.success:
            assert answer.value == "done" and len(answer.files) == 90
        else:
            assert answer.error_type == "interrupted"
        assert session.exec("1").session["created"]


def test_it_ends_while_a_slow_reader_has_not_read_its_answer(client, session):
    """The answer is its own; the session is over."""
    body = b'{"code": "open(\'f\', \'wb\').write(bytes(9000000))"}'
    with client.connect() as connection:
        connection.sendall(
            f"POST {exec_target(session.name)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body)
        eventually(lambda: session.state() == "idle")
        assert session.end() is False
        size = 0
        while piece := connection.recv(1 << 20):
            size += len(piece)
    assert size > 12_000_000


def test_of_many_at_once_one_ends_it(client, session):
    session.exec("import time")
    call = begun(session, "time.sleep(60)")
    answers = at_once([lambda: client.end(session.name)] * 12)
    assert sorted(answer.status for answer in answers) == [200] + [404] * 11
    assert call.result(20).error_type == "interrupted"


def test_ends_and_calls_in_a_storm(client, session):
    """Each answer is one of those that the reference names, and a begun session is empty."""
    done = []

    def ends():
        while not done:
            assert client.end(session.name).status in (200, 404)
            assert client.interrupt(session.name).status in (200, 404)
            time.sleep(0.02)

    def calls():
        for _ in range(25):
            answer = session.exec("y = globals().get('y', 0) + 1\ny")
            if answer.status == 409:
                assert answer.error_type == "interrupted"
            elif answer.success:
                # a call that was interrupted may have counted itself or not
                assert 1 <= answer.value <= answer.session["execution_count"], answer
                assert answer.value == 1 or not answer.session["created"], answer
            else:
                assert answer.error_type in ("interrupted", "KeyboardInterrupt"), answer

    ending = [in_background(ends) for _ in range(2)]
    try:
        for call in [in_background(calls) for _ in range(4)]:
            call.result(120)
    finally:
        done.append(1)
    for each in ending:
        each.result(30)
    client.end(session.name)
    assert session.exec("1").session["created"]


def test_its_place_is_free_at_once(brief):
    client = brief.client
    names = [fresh_id() for _ in range(5)]

    def one_fits():
        return client.exec("1", names[0]).success

    eventually(one_fits)
    for _ in range(3):
        for name in names:
            assert client.exec("1", name).success
        assert client.exec("1", fresh_id()).error_type == "capacity"
        for name in names:
            assert client.end(name).status == 200
