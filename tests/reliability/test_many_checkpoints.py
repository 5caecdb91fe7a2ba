# SPDX-License-Identifier: MIT
"""Many sessions side by side, each with many checkpoints: what is told of each is so, and nothing
is left of them."""

import random
import time

from support.client import fresh_id
from support.must import not_with_slots
from support.server import running
from support.together import at_once, eventually

from .soak_figures import Record, settle

SESSIONS = 50
CALLS = 8
PAUSE = 0.3  # seconds at most, of 10 ms after which a checkpoint is due
CALL = "history = globals().get('history', []) + [{number}]; history"
DEATHS = ("import ctypes; ctypes.string_at(0)", "import os; os._exit(3)",
          "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")


class Checkpointed:
    """A session, and what each of its answers has to say."""

    def __init__(self, session):
        self.session = session
        self.number = 0       # of its last call
        self.state = 0        # of the call whose end is the worker's state; 0: it is fresh
        self.copied = 0       # the last checkpoint that was told
        self.ends = {0: []}   # the variable at the end of each call; 0: of a fresh worker
        self.restored = []    # whether a death was told to have lost nothing

    def _take(self, answer):
        """What is told of every call; the number of its checkpoint, or 0."""
        self.number += 1
        assert answer.status == 200, answer
        assert answer.session["execution_count"] == self.number
        copy = answer.session["checkpoint"] or 0
        assert copy in self.ends
        assert self.copied <= copy <= self.state  # a copy stays until there is a newer one
        self.copied = copy
        return copy

    def call(self):
        """A call that changes the variable."""
        answer = self.session.exec(CALL.format(number=self.number + 1))
        self._take(answer)
        assert "restored_to" not in answer.session and answer.lost == "none"
        assert answer.value == [*self.ends[self.state], self.number]
        self.state = self.number
        self.ends[self.state] = answer.value

    def die(self, code):
        """A call that is lost, after it has changed the variable."""
        answer = self.session.exec(CALL.format(number=0) + "\n" + code)
        copy = self._take(answer)
        assert answer.error_type == "crash", answer
        assert answer.session.get("restored_to", 0) == copy
        kept = copy != 0 and copy == self.state
        assert answer.lost == ("none" if kept else "variables")
        self.restored.append(kept)
        self.state, self.copied = copy, 0  # it is used up; the next one is made at once

    def _begins(self):
        """Whether there was a sandbox for it: fifty at once may be more than can be waited for."""
        answer = self.session.exec("0")
        if answer.status == 503:
            return False
        self._take(answer)
        self.state = self.number
        self.ends[self.state] = []
        return True

    def live(self, seed):
        """Calls with pauses in between; two deaths, the second one right behind the first."""
        rng = random.Random(seed)
        eventually(self._begins, within=60)
        for _ in range(CALLS):
            self.call()
            time.sleep(rng.uniform(0, PAUSE))
        time.sleep(4 * PAUSE)
        self.die(rng.choice(DEATHS))
        self.die(rng.choice(DEATHS))
        self.call()
        return self


def live(instance, count, seed):
    """Let so many sessions live at once, and end; whether each death has lost nothing."""
    sessions = [Checkpointed(instance.client.session(fresh_id())) for _ in range(count)]
    at_once([lambda one=one, n=n: one.live(seed + n) for n, one in enumerate(sessions)])
    for one in sessions:
        one.session.end()
    return [kept for one in sessions for kept in one.restored]


def test_fifty_sessions_side_by_side():
    not_with_slots("without a PID namespace no checkpoints are made")
    record = Record()
    with running(rate_limit=0, checkpoint_delay="10ms") as instance:
        live(instance, SESSIONS // 2, seed=1)
        record.take("before", instance, settle(instance))
        restored = live(instance, SESSIONS, seed=2)
        record.take("after", instance, settle(instance))
    assert not record.faults(), record.table()
    assert len(restored) == 2 * SESSIONS
    # on a machine that is busy a copy may be late, which was told then
    assert sum(restored) > SESSIONS
