# SPDX-License-Identifier: MIT
"""GET /sessions: what it tells, and that reading it touches nothing."""

import time

from support.together import eventually, in_background

ROUNDING = 0.01  # minutes


def test_what_is_listed(client, session):
    before = int(time.time() * 1000)
    session.exec("1")
    session.exec("1/0")
    after = int(time.time() * 1000)
    entry = client.sessions()[session.name]
    assert before - 1000 <= entry["createdAt"] <= entry["lastAccessedAt"] <= after + 1000
    assert entry["state"] == "idle"
    assert entry["execution_count"] == 2
    assert 0 <= entry["idleMinutes"] <= entry["ageMinutes"] + ROUNDING < 2


def test_the_clocks_count_on(client, session):
    session.exec("1")
    first = client.sessions()[session.name]
    time.sleep(2)
    session.exec("1")
    second = client.sessions()[session.name]
    assert second["createdAt"] == first["createdAt"]
    assert second["lastAccessedAt"] - first["lastAccessedAt"] >= 1900
    assert second["ageMinutes"] >= 1.9 / 60 - ROUNDING
    assert second["idleMinutes"] < second["ageMinutes"]


def test_reading_touches_nothing(client, session):
    session.exec("x = 1")
    first = client.sessions()[session.name]
    time.sleep(1.5)
    for _ in range(3):
        second = client.sessions()[session.name]
    for name in ("createdAt", "lastAccessedAt", "execution_count"):
        assert second[name] == first[name]
    assert second["idleMinutes"] >= 1.4 / 60 - ROUNDING
    assert session.exec("x").session["execution_count"] == 2


def test_a_running_call_is_busy_and_listing_does_not_wait_for_it(client, session):
    session.exec("import time")
    call = in_background(lambda: session.exec("time.sleep(2.5)"))

    def busy():
        return client.sessions()[session.name]["state"] == "busy"

    eventually(busy)
    assert not call.done(), "the listing waited for the call"
    assert call.result(60).success
    assert client.sessions()[session.name]["state"] == "idle"


def test_a_session_is_listed_while_its_first_call_runs(client, session):
    call = in_background(lambda: session.exec("import time; time.sleep(2)"))
    eventually(lambda: session.name in client.sessions())
    assert not call.done()
    assert client.sessions()[session.name]["state"] == "busy"
    assert call.result(60).success


def test_every_session_stands_once(client, new_session):
    names = {new_session().exec("1").session["id"] for _ in range(5)}
    listed = [entry["id"] for entry in client.get("/sessions").json["sessions"]]
    assert len(listed) == len(set(listed))
    assert names <= set(listed)
