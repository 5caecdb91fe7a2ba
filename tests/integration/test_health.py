# SPDX-License-Identifier: MIT
"""GET /health: always, at once, of the whole chain."""

import re
import time

import pytest

from support.tiers import TIERS
from support.together import at_once, eventually, in_background

IN_NAMESPACES = ("full", "isolated")


def test_what_it_says(client, session):
    session.exec("1")
    answer = client.health()
    assert answer.status == 200
    assert answer.json["status"] == "healthy"
    assert answer.json["active_sessions"] == len(client.sessions())
    assert re.fullmatch(r"\d+\.\d+\.\d+[-+.\w]*", answer.json["version"])


@pytest.mark.parametrize("tier", TIERS)
def test_how_sessions_are_kept_apart(start, tier):
    instance = start(tier=tier, pool_size=1, preload="none")
    told = instance.client.health().json["isolation"]
    assert told["tier"] == instance.tier.isolation or (told["tier"], tier) == ("full", "isolated")
    if told["tier"] in IN_NAMESPACES:
        assert (told["network"], told["disk"]) == ("namespace", "quota")
        assert "slots" not in told
    else:
        assert (told["network"], told["disk"]) == ("seccomp", "watch")
        assert told["slots"] >= 1
    # Every tier but the best one says why it is not a better one.
    assert (told["reasons"] == []) == (told["tier"] == "full")
    assert (set(told["controllers"]) == {"memory", "pids", "cpu"}) == (told["tier"] == "full")


def test_it_counts_sessions(brief):
    eventually(lambda: brief.client.health().json["active_sessions"] == 0)
    for number in (1, 2):
        brief.client.exec("1", f"counted-{number}")
    assert brief.client.health().json["active_sessions"] == 2
    eventually(lambda: brief.client.health().json["active_sessions"] == 0)


def test_it_never_waits_for_running_code(client, new_session):
    calls = [in_background(lambda s=new_session(): s.exec("while True: pass", timeout_ms=3000))
             for _ in range(8)]
    time.sleep(0.5)
    for _ in range(5):
        assert client.health().status == 200
    assert not any(call.done() for call in calls)
    for call in calls:
        call.result(60)


def test_it_answers_while_more_calls_run_than_there_are_threads_for(start):
    instance = start(rate_limit=0, threads=20, pool_size=0)
    calls = [in_background(lambda n=n: instance.client.exec("import time; time.sleep(4)", f"s{n}"))
             for n in range(12)]
    eventually(lambda: any(call.done() and call.result().status == 503 for call in calls)
               or all(call.done() for call in calls))
    assert instance.client.health().status == 200
    assert instance.client.get("/sessions").status == 200
    answers = [call.result(90) for call in calls]
    ran = [answer for answer in answers if answer.status == 200]
    refused = [answer for answer in answers if answer.status == 503]
    assert len(ran) == 20 - 16
    assert len(ran) + len(refused) == len(answers)
    assert {answer.error_type for answer in refused} == {"capacity"}


def test_many_ask_at_once(client):
    assert {answer.status for answer in at_once([client.health] * 50)} == {200}
