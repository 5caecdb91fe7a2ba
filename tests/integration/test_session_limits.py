# SPDX-License-Identifier: MIT
"""How many sessions there are, how long they stay, and how many calls may wait in one."""

import time

import pytest

from support.client import fresh_id
from support.together import at_once, eventually, in_background

# the settings of the instance `brief`
IDLE = 2
ROOM = 5
SLEEP = "import time; time.sleep({}); x = 1"


@pytest.fixture
def few(brief):
    """A client of the instance that has room for few sessions."""
    return brief.client


@pytest.fixture
def free(few):
    """The same, when all of the room is free."""
    eventually(lambda: not few.sessions())
    return few


def begun(client, code="1"):
    """A session that has run `code`, as soon as those of earlier tests have made room."""
    session = client.session(fresh_id())
    eventually(lambda: session.exec(code).status == 200)
    return session


def busy(client, session):
    """True while a call runs in `session`."""
    return client.sessions().get(session.name, {}).get("state") == "busy"


def test_an_idle_session_ends_and_its_id_begins_anew(few):
    session = begun(few, "x = 1; open('f', 'w').close()")
    eventually(lambda: session.name not in few.sessions())
    answer = session.exec("import os; ['x' in globals(), os.listdir('.')]")
    assert answer.value == [False, []]
    assert answer.session == {
        "id": session.name, "created": True, "lost": "none", "execution_count": 1,
        "checkpoint": None}


def test_calls_keep_a_session(few):
    session = begun(few, "n = 0")
    for _ in range(6):
        time.sleep(IDLE / 4)
        session.exec("n += 1")
    assert session.value("n") == 6


def test_listing_and_health_do_not_keep_a_session(few):
    session = begun(few)

    def gone():
        few.health()
        return session.name not in few.sessions()

    eventually(gone)


def test_a_busy_session_is_never_ended(few):
    session = begun(few, "y = 1")
    answer = session.exec(SLEEP.format(2 * IDLE))
    assert answer.success
    assert answer.session["created"] is False
    assert session.value("[x, y]") == [1, 1]


def test_the_time_of_rest_begins_when_the_call_ends(few):
    session = begun(few)
    session.exec(SLEEP.format(1.5 * IDLE))
    time.sleep(IDLE / 4)
    assert session.exec("x").session["created"] is False


def test_a_session_too_many_is_refused_and_none_is_thrown_out(free):
    holders = [free.session(fresh_id()) for _ in range(ROOM)]
    calls = [in_background(lambda h=h: h.exec(SLEEP.format(4))) for h in holders]
    for holder in holders:
        eventually(lambda: busy(free, holder))
    late = free.session(fresh_id())
    answer = late.exec("1")
    assert (answer.status, answer.error_type) == (503, "capacity")
    assert late.name not in free.sessions()
    assert free.health().status == 200
    assert all(call.result(60).success for call in calls)
    assert free.health().json["active_sessions"] <= ROOM
    assert eventually(lambda: late.exec("1").status == 200)


def test_room_is_made_only_once_for_two_that_want_it(free):
    holders = [free.session(fresh_id()) for _ in range(ROOM - 1)]
    calls = [in_background(lambda h=h: h.exec(SLEEP.format(4))) for h in holders]
    for holder in holders:
        eventually(lambda: busy(free, holder))
    answers = at_once([lambda: free.exec(SLEEP.format(1), fresh_id())] * 4)
    assert sorted(answer.status for answer in answers) == [200, 503, 503, 503]
    assert all(call.result(60).success for call in calls)


def test_a_call_too_many_in_a_queue_is_refused_and_never_runs(few):
    session = begun(few, "import time; log = []")
    running = in_background(lambda: session.exec("time.sleep(1.5); log.append('running')"))
    eventually(lambda: busy(few, session))
    answers = at_once([lambda: session.exec("log.append('queued')")] * 6)
    refused = [answer for answer in answers if answer.status == 409]
    assert len(refused) == 4
    assert all(answer.error_type == "busy" for answer in refused)
    assert running.result(60).success
    assert session.value("log") == ["running", "queued", "queued"]


def test_a_call_that_waits_too_long_is_refused_and_never_runs(few):
    session = begun(few, "import time; log = []")
    running = in_background(lambda: session.exec("time.sleep(5); log.append('running')"))
    eventually(lambda: busy(few, session))
    began = time.monotonic()
    answer = session.exec("log.append('waited')")
    waited = time.monotonic() - began
    assert (answer.status, answer.error_type) == (409, "busy")
    assert waited >= 1.9
    assert not running.done(), "the refusal came only after the running call's end"
    assert running.result(60).success
    assert session.value("log") == ["running"]


def test_a_full_queue_of_one_session_is_no_matter_of_another(few):
    session, other = begun(few, "import time"), begun(few)
    running = in_background(lambda: session.exec("time.sleep(3)"))
    eventually(lambda: busy(few, session))
    waiting = [in_background(lambda: session.exec("1")) for _ in range(2)]
    assert other.value("6 * 7") == 42
    assert not running.done()
    for call in [running, *waiting]:
        call.result(60)
