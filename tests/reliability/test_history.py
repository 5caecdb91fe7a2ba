# SPDX-License-Identifier: MIT
"""Twenty clients, each with a model of its session, while processes are killed at random."""

import contextlib
import copy
import os
import random
import signal
import threading
import time

from support.client import fresh_id
from support.must import not_with_slots
from support.processes import EXECUTOR, FCGI, WEB_SERVER, ZYGOTE
from support.server import running
from support.together import at_once, eventually

from .model import ENDS, Model, Step, Told, replay
from .phases import PATIENCE, label

CLIENTS = 20
SECONDS = float(os.environ.get("VIVARIUM_HISTORY_SECONDS", 30))
SEED = int(os.environ.get("VIVARIUM_SEED", time.time_ns() % 1000000))
# what is killed, and how often in proportion
VICTIMS = {"web server": 4, "vivarium-fcgi": 8, "launcher": 1, "zygote": 2, "supervisor": 5,
           "worker": 12}
SILENCING = ("web server", "vivarium-fcgi")  # with these the answers to all calls are lost
SILENCE = 2  # seconds from one of them to the next, so that clients hear something between


class Player:
    """A client that calls at random, and holds each answer against its model."""

    def __init__(self, instance, seed):
        self.chance = random.Random(seed)
        self.instance = instance
        self.histories = []
        self.begin()

    def begin(self):
        """Begin with a session of which everything is known."""
        self.session = self.instance.client.session(fresh_id())
        self.model = Model()
        self.histories.append(self.model.history)

    def play(self, until):
        """Call until then, and once more when the server is well again."""
        number = 1
        while time.monotonic() < until:
            self.call(number, self.chance.choices(list(ENDS), (24, 3, 3, 1, 1))[0])
            time.sleep(self.chance.choice((0, 0, 0.1, 0.3)))
            number += 1
        eventually(lambda: self.call(number, "success"))

    def call(self, number, end):
        """One call; true when its answer was one of status 200."""
        step = Step(f"k{self.chance.randrange(5)}", number, end)
        seen, answer = label(lambda: self.session.exec(
            step.code(), timeout_ms=ENDS[end][1], timeout=PATIENCE * 2))
        if answer is not None and answer.status == 200:
            self.model.answered(step, Told(
                answer.error_type, answer.value if answer.success else None, answer.session))
            return True
        if not surely_not_run(seen, answer):
            self.model.silent(step)
            if self.model.knows_too_little():
                self.begin()
            eventually(self.instance.healthy, within=60)
        else:
            time.sleep(0.2)
        return False


def surely_not_run(seen, answer):
    """True for what vivarium-fcgi has refused; what the web server says leaves it open."""
    return answer is not None and (
        seen in ("503 capacity", "409 busy", "409 interrupted")
        or answer.error_type == "system" and "(request " in answer.error["message"])


def victims(instance, kind):
    """The processes of a kind, of which a fault strikes one."""
    parts = {"web server": WEB_SERVER, "vivarium-fcgi": FCGI, "zygote": ZYGOTE}
    if kind in parts:
        return instance.parts(parts[kind])[:1]
    if kind == "launcher":
        return instance.parts(EXECUTOR)[1:2]
    program = {"supervisor": EXECUTOR, "worker": ZYGOTE}[kind]
    return [each for each in instance.tree() if each.nested() and each.program() == program]


def kill_at_random(instance, chance, over, done):
    """Kill one process after the other, until it is over."""
    silenced = 0
    while not over.wait(chance.uniform(0.1, 0.8)):
        kind = chance.choices(list(VICTIMS), VICTIMS.values())[0]
        which = chance.random()
        if kind in SILENCING:
            if time.monotonic() < silenced + SILENCE or not instance.healthy():
                continue
            silenced = time.monotonic()
        found = victims(instance, kind)
        if found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(found[int(which * len(found))].pid, signal.SIGKILL)
                done.append(kind)


def told_losses(history):
    """The places of the answers that tell of something lost."""
    return [place for place, (_, told) in enumerate(history)
            if told is not None and told.session["lost"] != "none"]


def without_loss(history, place):
    """The history in which the answer at that place does not tell what was lost."""
    changed = copy.deepcopy(history)
    changed[place][1].session.pop("restored_to", None)
    changed[place][1].session["lost"] = "none"
    return changed


def test_every_answer_agrees_with_what_went_before():
    not_with_slots("without a PID namespace no checkpoints are made")
    print(f"VIVARIUM_SEED={SEED}")
    over, done = threading.Event(), []
    with running(rate_limit=0, interrupt_grace="300ms") as instance:
        until = time.monotonic() + SECONDS
        players = [Player(instance, SEED + index) for index in range(CLIENTS)]
        killer = threading.Thread(
            target=kill_at_random, args=(instance, random.Random(SEED), over, done))
        killer.start()
        try:
            at_once([lambda player=player: player.play(until) for player in players])
        finally:
            over.set()
            killer.join()
    histories = [history for player in players for history in player.histories]
    losses = [(history, place) for history in histories for place in told_losses(history)]
    found = sum(not replay(without_loss(*loss)) for loss in losses)
    print(f"{sum(map(len, histories))} calls of {len(histories)} sessions, "
          f"{len(losses)} losses told, {found} of them not to be left out unseen; "
          f"killed: { {kind: done.count(kind) for kind in VICTIMS} }")
    assert len(set(done)) >= 4 and len(losses) > 5
    assert found > len(losses) / 2  # before others nobody answered, or nothing was there
