# SPDX-License-Identifier: MIT
"""POST /sessions/{id}/interrupt: the running call of a session ends, and nothing else does."""

import time

import pytest

from support.client import fresh_id, session_target
from support.program import program
from support.together import at_once, eventually, in_background

STUBBORN = program("""
    while True:
        try:
            while True: sum(range(999))
        except KeyboardInterrupt:
            print("caught", flush=True)
""")


def begun(session, code="import time; time.sleep(60)", **members):
    """A call that runs; the future of its answer."""
    call = in_background(lambda: session.exec(code, **members))
    eventually(lambda: session.state() == "busy")
    return call


def test_the_code_raises_keyboard_interrupt(session):
    session.exec("import time; x = 5")
    call = begun(session, "print('begun')\nopen('f', 'w').write('here')\ntime.sleep(60)")
    time.sleep(0.3)
    assert session.interrupt()
    answer = call.result(30)
    assert (answer.status, answer.error_type) == (200, "KeyboardInterrupt")
    assert answer.error["message"].startswith("PythonError: Traceback")
    assert answer.error["line"] == 3
    assert (answer.std_out, answer.files, answer.lost) == ("begun\n", {"f": b"here"}, "none")
    assert answer.outcome["code_runtime"] < 30000
    assert session.value("x") == 5


def test_code_may_catch_it_and_end(session):
    call = begun(session, "import time\ntry:\n    time.sleep(60)\n"
                          "except KeyboardInterrupt: pass\n'tidy'")
    time.sleep(0.3)
    assert session.interrupt()
    assert call.result(30).value == "tidy"


def test_code_that_goes_on_is_killed(session):
    session.exec("x = 5\nopen('f', 'w').write('here')")
    call = begun(session, STUBBORN)
    time.sleep(0.3)
    for _ in range(5):
        assert session.interrupt()
    answer = call.result(30)
    assert (answer.status, answer.error_type) == (200, "interrupted")
    assert answer.std_out == "caught\n"
    assert session.value("open('f').read()") == "here"


def test_an_idle_session_is_left_alone(session):
    session.exec("import time; x = 5")
    before = session.client.sessions()[session.name]
    assert session.interrupt() is False
    after = session.client.sessions()[session.name]
    assert (before["lastAccessedAt"], before["execution_count"]) == \
        (after["lastAccessedAt"], after["execution_count"])
    assert session.value("time.sleep(0.5); x") == 5


def test_calls_that_wait_are_not_struck(session):
    session.exec("import time; ran = []")
    first = begun(session, "time.sleep(60)")
    waiting = [in_background(lambda: session.exec("ran.append(1); time.sleep(0.2)"))
               for _ in range(3)]
    time.sleep(0.5)
    assert session.interrupt()
    assert first.result(30).error_type == "KeyboardInterrupt"
    assert all(call.result(30).success for call in waiting)
    assert session.value("len(ran)") == 3


def test_it_is_for_one_session(new_session):
    first, second = new_session(), new_session()
    calls = [begun(each, "import time; time.sleep(3)") for each in (first, second)]
    assert first.interrupt()
    assert calls[0].result(30).error_type == "KeyboardInterrupt"
    assert calls[1].result(30).success


def test_a_session_that_is_none(client):
    answer = client.interrupt(fresh_id())
    assert (answer.status, answer.error_type) == (404, "not_found")


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods(client, session, method):
    session.exec("1")
    answer = client.request(method, session_target(session.name, "/interrupt"))
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize("body", [b"{}", b"not JSON", b"x" * 3_000_000])
@pytest.mark.parametrize("kind", ["application/json", "text/plain", None])
def test_a_body_is_not_read(client, session, body, kind):
    session.exec("1")
    answer = client.request("POST", session_target(session.name, "/interrupt"), body,
                            {"Content-Type": kind} if kind else {})
    assert (answer.status, answer.json) == (200, {"success": True, "interrupted": False})


@pytest.mark.parametrize("origin", ["http://example.org", "null", "http://127.0.0.1:3080"])
@pytest.mark.parametrize("kind", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_no_page_of_another_origin_can_interrupt_or_end(client, session, origin, kind):
    """What a browser sends for any page without asking first; JSON and DELETE it asks for."""
    session.exec("import time")
    call = begun(session, "time.sleep(3); 5")
    headers = {"Origin": origin, **({"Content-Type": kind} if kind else {})}
    answer = client.request("POST", session_target(session.name, "/interrupt"), b"", headers)
    assert (answer.status, answer.error_type) == (415, "validation")
    answer = client.request("DELETE", session_target(session.name), None, headers)
    assert answer.status == 415
    answer = client.request("OPTIONS", session_target(session.name), None, headers)
    assert answer.status == 405
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    assert call.result(30).value == 5


def test_what_has_an_origin_and_is_of_json_may(client, session):
    session.exec("1")
    headers = {"Origin": "http://example.org", "Content-Type": "application/json"}
    for answer in (client.interrupt(session.name, headers=headers),
                   client.end(session.name, headers=headers)):
        assert answer.status == 200


def test_a_query_is_ignored(client, session):
    session.exec("1")
    answer = client.request("POST", session_target(session.name, "/interrupt?sessionId=x&y"))
    assert answer.status == 200


@pytest.mark.parametrize("tail", ["/", "//", "/interrupt/", "/interrupted", "/Interrupt", "/x",
                                  "//interrupt", "/interrupt%2F", "/files"])
def test_paths_that_are_none(client, session, tail):
    session.exec("1")
    for method in ("POST", "DELETE"):
        answer = client.request(method, session_target(session.name, tail))
        assert (answer.status, answer.error_type) == (404, "not_found")


def test_a_flood_while_calls_come_and_go(session):
    """Each call ends as it should or by an interrupt, and the variables stay."""
    session.exec("import time; x = 5")
    done = []

    def flood():
        while not done:
            session.interrupt()

    floods = [in_background(flood) for _ in range(4)]
    try:
        for number in range(60):
            answer = session.exec(f"time.sleep({number % 5 / 1000}); x")
            assert answer.lost == "none", answer
            assert answer.error_type in (None, "KeyboardInterrupt"), answer
            assert answer.error_type or answer.value == 5
    finally:
        done.append(1)
    for each in floods:
        each.result(30)
    assert session.value("time.sleep(0.5); x") == 5


def test_many_at_once_strike_once(session):
    session.exec("import time; caught = 0")
    call = begun(session, program("""
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            caught += 1
            time.sleep(1)
        caught
    """))
    time.sleep(0.3)
    assert all(at_once([session.interrupt] * 20))
    assert call.result(30).value == 1


def test_it_does_not_count_against_the_rate(start):
    client = start(rate_limit=2, pool_size=1).client
    client.exec("1", "rated")
    for _ in range(10):
        answer = client.interrupt("rated")
        assert answer.status == 200 and not answer.headers.get("RateLimit-Limit")
    assert client.exec("1", "rated").status == 200


def test_it_is_answered_while_all_calls_that_may_run_do(start):
    """Interrupt and DELETE have threads that no call can take."""
    instance = start(rate_limit=0, threads=20, max_queued=64, pool_size=1)
    session = instance.client.session("taken")
    session.exec("import time; x = 5")

    def insist():
        while (answer := session.exec("time.sleep(60)")).error_type == "capacity":
            time.sleep(0.1)
        return answer

    calls = [in_background(insist) for _ in range(4)]
    eventually(lambda: instance.client.exec("1", "another").error_type == "capacity")
    assert session.interrupt()
    eventually(lambda: sum(call.done() for call in calls) == 1)
    assert session.end()
    answers = [call.result(30) for call in calls]
    assert sorted(answer.error_type for answer in answers) == \
        ["KeyboardInterrupt", "interrupted", "interrupted", "interrupted"]
    assert instance.client.exec("1", "another").success
