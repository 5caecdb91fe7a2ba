# SPDX-License-Identifier: MIT
"""Many sessions come and go beside many attempts: none notices, and nothing is left of them."""

import contextlib
import http.client
import itertools
import threading
import time

import pytest

from support.client import fresh_id
from support.holdings import holdings
from support.server import running
from support.tiers import TIERS
from support.together import at_once, eventually, unchanged

from .attempt import read
from .conftest import HEALTH_DEADLINE, WaitingClient

CANARIES = 200
AT_A_TIME = 10
ATTACKERS = 20
PAUSE = 0.1
SETTINGS = {
    "rate_limit": 0,
    "pool_size": 2,
    "max_sessions": 512,
    "session_idle_timeout": "6s",
    "interrupt_grace": "300ms",
    "session_memory": "96M",
    "session_disk": "4M",
    "session_inodes": 500,
    "slots": 36,
}


@pytest.fixture(params=[tier for tier in TIERS if tier in ("isolated", "confined")])
def instance(request):
    """An instance of the test's own, of root."""
    with running(tier=request.param, **SETTINGS) as one:
        one.client = WaitingClient(one.port)
        yield one


class Attackers:
    """Sessions that try one attempt after the other until they are told to stop.

    One of them alone fills disks where no quota but a watch stops it: in a moment it takes much.
    """

    def __init__(self, instance):
        self.instance = instance
        self.attempts = read()
        self.over = threading.Event()
        self.tried = itertools.count()
        self.threads = [threading.Thread(target=self._attack, args=(number,))
                        for number in range(ATTACKERS)]
        self.wrong = []

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def _attack(self, number):
        session = self.instance.client.session(fresh_id())
        for attempt in itertools.cycle(self.attempts[number:] + self.attempts[:number]):
            expected = attempt.expected(self.instance.tier.isolation)
            if self.over.is_set():
                return
            if number and expected.loses_all:
                continue
            try:
                answer = session.exec(attempt.code, timeout_ms=400)
                assert answer.status == 200, answer
                assert expected.harmless or "reached" not in answer.std_out, answer
            except (AssertionError, OSError, http.client.HTTPException) as error:
                self.wrong.append((attempt.name, error))
            next(self.tried)
            time.sleep(PAUSE)  # the canaries are to come to their turn on a small machine, too


class Pulse:
    """Asks for /health all the time; `late` counts how often it was late twice in a row."""

    def __init__(self, instance):
        self.client = instance.client
        self.over = threading.Event()
        self.asked = self.late = 0
        self.wrong = []
        self.thread = threading.Thread(target=self._ask)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def _ask(self):
        before = 0.0
        while not self.over.wait(0.1):
            began = time.monotonic()
            answer = self.client.health()
            took = time.monotonic() - began
            if answer.status != 200:
                self.wrong.append(answer)
            self.late += min(before, took) > HEALTH_DEADLINE
            self.asked += 1
            before = took


def live(instance, number):
    """The life of one canary: begins, is looked at a few times, ends, if by itself or not."""
    session = instance.client.session(fresh_id())
    assert session.exec(f"song = {number}\nopen('cage', 'w').write(str(song))").success
    for count in range(2, 5):
        time.sleep(0.1)
        answer = session.exec("import os; [song, open('cage').read(), os.listdir('.')]")
        assert answer.value == [number, str(number), ["cage"]], answer
        assert answer.session["execution_count"] == count and answer.lost == "none"
    if number % 2:
        instance.end_session(session.name)
    return True


def begin_as_many_as_there_will_be(instance):
    """What is made for a sandbox once, and then kept, is there afterwards."""
    sessions = [instance.client.session(fresh_id())
                for _ in range(SETTINGS["slots"] - SETTINGS["pool_size"])]
    for session in sessions:
        assert session.value("6 * 7") == 42
    for session in sessions:
        instance.end_session(session.name)


def settled(instance):
    """What the instance holds when no session is left and nothing changes any more."""
    eventually(lambda: not instance.client.sessions(), within=60)
    return unchanged(lambda: holdings(instance))


def test_nobody_notices_and_nothing_is_left(instance):
    begin_as_many_as_there_will_be(instance)
    before = settled(instance)
    with Attackers(instance) as attackers, Pulse(instance) as pulse:
        for first in range(0, CANARIES, AT_A_TIME):
            assert all(at_once(lambda number=number: live(instance, number)
                               for number in range(first, first + AT_A_TIME)))
    assert attackers.wrong == []
    assert next(attackers.tried) > 5 * ATTACKERS
    assert pulse.wrong == [] and pulse.late == 0 and pulse.asked > 20

    # What was seen last is what is judged: to look once more at once would find connections
    # that the last look has needed itself and that are just being closed.
    more, less = {}, {}

    def as_before():
        nonlocal more, less
        held = holdings(instance)
        more, less = held - before, before - held
        return held == before

    with contextlib.suppress(AssertionError):  # the difference says more
        eventually(as_before, within=60, every=1)
    assert not more and not less, f"more: {dict(more)}, less: {dict(less)}"
