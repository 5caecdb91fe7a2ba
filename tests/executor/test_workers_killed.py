# SPDX-License-Identifier: MIT
"""Workers that are killed from outside: a call that one of them never got is not lost with it."""

import collections
import os
import signal
import threading
import time

import pytest

from support.executor import AS_IT_IS
from support.wires import CRASHED, RAN

pytestmark = pytest.mark.tiers(AS_IT_IS, "confined", "minimal")

KILLS = 10
RECORD = "open('ran', 'a').write('{number}\\n')"


@pytest.fixture(name="begin")
def _begin(start):
    """A function that makes a sandbox, with `find_worker` of it, under the settings given."""
    def begin(**settings):
        executor = start(pool_size=0, **settings)
        sandbox = executor.acquire()
        sandbox.pid1 = sandbox.supervisor()
        sandbox.find_worker = lambda: _live_worker(sandbox)
        return sandbox
    return begin


def _live_worker(sandbox):
    """The one that takes its calls; None at a moment when there is none."""
    workers = sandbox.executor.workers()
    if not sandbox.executor.has_slots():
        workers = [each for each in workers
                   if each.parent == sandbox.pid1.pid and not each.parked()]
    return next((each for each in workers if each.alive()), None)


def _records(sandbox):
    """How often the code of each call has run, by its number."""
    text = sandbox.call("open('ran').read()").value
    return collections.Counter(int(word) for word in text.strip('"').split("\\n") if word)


def _kill(sandbox):
    os.kill(sandbox.find_worker().pid, signal.SIGKILL)


@pytest.mark.parametrize("pause", (0, 0.01), ids=("at once", "later"))
def test_a_call_after_the_worker_was_killed_runs_in_the_next_one(begin, pause):
    """While the old one is dying, too, which takes it a while: so it has something to give back.

    Its variables are lost, and its answer says so.
    """
    sandbox = begin(checkpoint="off")
    for number in range(KILLS):
        sandbox.call("x = bytearray(20 << 20)")
        _kill(sandbox)
        time.sleep(pause)
        answer = sandbox.call(RECORD.format(number=number) + "; 'x' in globals()")
        assert (answer.outcome, answer.value) == (RAN, "false"), answer
        assert (answer.lost, answer.restored_to) == (True, 0)
        assert not sandbox.call("0").lost
    assert _records(sandbox) == dict.fromkeys(range(KILLS), 1)


@pytest.mark.parametrize("pause", (0, 0.01), ids=("at once", "later"))
def test_a_call_after_the_worker_was_killed_runs_in_its_copy(begin, pause):
    """With the variables, or said to be without them where there was no copy yet."""
    sandbox = begin(checkpoint_delay="0")
    restored = 0
    for number in range(KILLS):
        sandbox.call("x = bytearray(20 << 20)")
        kept = sandbox.channel.sequence
        time.sleep(0.1)
        _kill(sandbox)
        time.sleep(pause)
        answer = sandbox.call(RECORD.format(number=number) + "; 'x' in globals()")
        assert answer.outcome == RAN, answer
        assert (answer.restored_to == kept) == (answer.value == "true")
        assert answer.lost == (answer.restored_to != kept)
        restored += answer.restored_to == kept
    assert _records(sandbox) == dict.fromkeys(range(KILLS), 1)
    if not sandbox.executor.has_slots():
        assert restored > KILLS // 2


@pytest.mark.parametrize("checkpoint", ("on", "off"))
def test_no_call_runs_twice_whenever_its_worker_is_killed(begin, checkpoint):
    sandbox = begin(checkpoint=checkpoint, checkpoint_delay="0")
    over = threading.Event()

    def kill():
        while not over.wait(0.03):
            worker = sandbox.find_worker()
            if worker is not None:
                try:
                    os.kill(worker.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    outcomes = {}
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        until = time.monotonic() + 3
        while time.monotonic() < until or RAN not in outcomes.values():
            number = len(outcomes)
            outcomes[number] = sandbox.call(RECORD.format(number=number)).outcome
    finally:
        over.set()
        killer.join()
    ran = _records(sandbox)
    assert set(outcomes.values()) <= {RAN, CRASHED}
    assert all(ran[number] == 1 for number, outcome in outcomes.items() if outcome == RAN)
    assert max(ran.values()) == 1
