# SPDX-License-Identifier: MIT
"""Thousands of calls in sessions that come and go, with faults: nothing is left of them.

SOAK_CALLS and SOAK_SESSIONS say how many there are, SOAK_SEED which; without them it is a short
form of what `make soak` runs. The figures go to soak.txt in the build's directory, the log to
soak.log.
"""

import collections
import concurrent.futures
import contextlib
import os
import pathlib
import queue
import random
import re
import sys
import time

from support.must import not_with_slots
from support.server import running
from support.tiers import ROOT

from .soak_calls import draw_lives
from .soak_figures import Record, count_table, settle
from .soak_kills import Killer
from .soak_lives import LongSession, Stage, live
from .soak_log import EXPLAINED, GOOD, unexplained

CALLS = int(os.environ.get("SOAK_CALLS", 1500))
SESSIONS = int(os.environ.get("SOAK_SESSIONS", 150))
SEED = int(os.environ.get("SOAK_SEED", random.SystemRandom().randrange(1 << 32)))
BUILD = pathlib.Path(os.environ.get("VIVARIUM_BUILDDIR", ROOT))
CLIENTS = 8
IDLE = 3  # seconds after which a session ends
# part of the run that is over at each moment
STAGES = {"after 10 %": 0.1, "after 55 %": 0.55, "end": 1.0}


def run_stage(instance, lives, rng, last):
    """Let so many sessions live, some at a time, while processes are killed."""
    waiting = queue.SimpleQueue()
    for life in lives:
        waiting.put(life)
    stage = Stage(instance, IDLE)
    killer = Killer(instance, rng, sum(life.count for life in lives), spare_services=last)

    def client():
        with contextlib.suppress(queue.Empty):
            while True:
                live(stage, waiting.get_nowait())

    with LongSession(stage, killer, rng.getrandbits(64)) as long_session, \
            concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool, killer.at_work(stage):
        for done in [pool.submit(client) for _ in range(CLIENTS)]:
            done.result()
    return stage, killer, long_session


def report(record, seed, counts, wrong):
    """The text of all figures."""
    return "\n".join([
        f"seed {seed}, {CALLS} calls, {SESSIONS} sessions, {CLIENTS} clients", "",
        record.table(), "",
        *(f"{title}\n{count_table(counter)}\n" for title, counter in counts.items()),
        "wrong: " + ("nothing" if not wrong else "\n" + "\n".join(wrong)), ""])


def test_the_lines_that_are_explained_are_documented():
    of_others = {"request", "start", "web server", "part_ended"}  # requests have a chapter
    documented = set(re.findall(r"`(\w+)`", (ROOT / "docs/logging.md").read_text("utf-8")))
    assert ({*GOOD, *EXPLAINED} - of_others) <= documented


def test_lines_and_figures_that_nothing_explains_are_seen():
    strange, _ = unexplained("level=warning event=sandbox_died sandbox=3 state=taken\n" * 2
                             + "level=error event=accept_failed\nmalloc(): corrupted\n",
                             collections.Counter(supervisor=1))
    assert len(strange) == 3
    record = Record()
    record.held = {"start": {"zombies": 0, "mounts": 1}, "end": {"zombies": 1, "mounts": 1}}
    record.sized = {"start": {"vivarium-fcgi": (0, 1 << 20)},
                    "end": {"vivarium-fcgi": (0, 60 << 20)}}
    assert len(record.faults()) == 2


def test_nothing_is_left_of_thousands_of_calls():
    not_with_slots("each slot that was used once keeps its descriptor")
    rng = random.Random(SEED)
    lives = draw_lives(rng, SESSIONS, CALLS)
    record = Record()
    counts = {title: collections.Counter() for title in
              ("Calls", "Outcomes", "Sessions", "Killed", "Log")}
    wrong = []
    began = time.monotonic()
    with running(rate_limit=0, max_sessions=128, session_idle_timeout=f"{IDLE}s") as instance, \
            contextlib.ExitStack() as whatever_happens:
        whatever_happens.callback(lambda: (BUILD / "soak.log").write_text(instance.messages()))
        first = 0
        for moment, part in STAGES.items():
            stage, killer, long_session = run_stage(
                instance, lives[first:int(SESSIONS * part)], rng, part == 1.0)
            first = int(SESSIONS * part)
            record.take(moment, instance, settle(instance, within=IDLE + 60))
            record.supervisors.append(long_session.seen)
            counts["Calls"] += stage.kinds
            counts["Outcomes"] += stage.outcomes
            counts["Sessions"] += stage.sessions
            counts["Killed"] += killer.killed
            wrong += stage.wrong(killer)
        strange, counts["Log"] = unexplained(instance.messages(), counts["Killed"])
    wrong += record.faults() + strange
    counts["Sessions"]["seconds"] = int(time.monotonic() - began)
    text = report(record, SEED, counts, wrong)
    (BUILD / "soak.txt").write_text(text)
    print(text, file=sys.stderr)
    assert not wrong, text
    assert sum(counts["Calls"].values()) >= CALLS
