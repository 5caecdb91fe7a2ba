# SPDX-License-Identifier: MIT
"""SIGKILL, or half a second of SIGSTOP, for each process in each phase of a call.

docs/reliability.md has a row for each process and phase; what is seen here must be what it says.
The tables as they were seen go to tests/reliability*.md of the build, times included.
"""

import contextlib
import http.client
import os
import pathlib
import re
import signal
import time

import pytest

from docs import markdown
from support import tiers
from support.client import fresh_id
from support.must import not_with_slots
from support.server import running
from support.together import eventually

from .bystander import Bystander
from .phases import CUT, PATIENCE, PHASES, PROCESSES, SOON, Subject

PAGE = "docs/reliability.md"
SIGNALS = ("SIGKILL", "SIGSTOP")
ALL_END = ("keeper", "launcher")  # the processes that all sandboxes end with
STOPPED = 0.5  # seconds from SIGSTOP to SIGCONT
RECOVERY = 60  # seconds, very generous: what is later will not come by itself
CASES = [(process, phase, name) for process in PROCESSES for phase in PHASES for name in SIGNALS]
PROBE = "import os; ['x' in globals(), 'y' in globals(), os.path.exists('f')]"
KEPT = ("all", "restored", "one call back", "files", "nothing")


def table(heading, signals):
    """What the page says of each case: the texts that its cells allow for seen and kept."""
    found = {}
    text = markdown.section(markdown.read(PAGE), heading)
    for process, phase, *cells in markdown.rows(text):
        for name, (seen, kept, recovery) in zip(signals, zip(*[iter(cells)] * 3)):
            assert re.fullmatch(r"\d+\.\d s", recovery)
            found[process, phase, name] = seen.split(" or "), markdown.names(kept)
    return found


class Place:
    """An instance whose processes are struck, and what was seen of it."""

    def __init__(self, instance):
        self.instance = instance
        self.processes = len(instance.tree())
        self.rows = {}

    def lines(self):
        """The rows as the page has them."""
        for process in PROCESSES:
            for phase in PHASES:
                cells = [self.rows[process, phase, name] for name in SIGNALS
                         if (process, phase, name) in self.rows]
                if cells:
                    yield f"| {process} | {phase} | {' | '.join(cells)} |\n"


def place(**settings):
    """A Place; its table is written to a file in the build at its end."""
    not_with_slots("without a PID namespace no checkpoints are made")
    build = pathlib.Path(os.environ.get("VIVARIUM_BUILDDIR", tiers.ROOT), "tests")
    with running(rate_limit=0, **settings) as instance:
        made = Place(instance)
        yield made
    (build / "-".join(["reliability", *settings])).with_suffix(".md").write_text(
        "".join(made.lines()))


@pytest.fixture(scope="module", name="defaults")
def _defaults():
    yield from place()


@pytest.fixture(scope="module", name="without")
def _without():
    yield from place(checkpoint="off")


def wait_for_ends(members):
    """Wait for the end of processes, and for what comes of it."""
    eventually(lambda: not any(member.alive() for member in members))
    time.sleep(SOON)


def strike(members, name):
    """Send the signal. SIGSTOP lasts a while; the times of its begin and end."""
    begun = time.monotonic()
    for member in members:
        os.kill(member.pid, getattr(signal, name))
    if name == "SIGSTOP":
        time.sleep(STOPPED)
        for member in members:
            os.kill(member.pid, signal.SIGCONT)
    return begun, time.monotonic()


def first_answer(session):
    """The first execution of the probe that is answered with 200."""
    def probe():
        with contextlib.suppress(ConnectionError, http.client.HTTPException):
            answer = session.exec(PROBE, timeout=PATIENCE)
            return answer if answer.status == 200 else None
    return eventually(probe, within=RECOVERY, every=0.01)


def kept(subject, front, own, after):
    """What the answers say that the session kept, after the last has been held against it.

    A loss is told once; what is told, and what the probe has found, must be the same.
    """
    word, x, y, f = "all", True, False, True
    for answer in (front, own, after):
        if answer is None or answer.status != 200:
            y = None if answer is own else y  # it may have run
            continue
        told = answer.session
        if told["lost"] != "none" or "restored_to" in told:
            assert word == "all", "a loss is told twice"
            before = told["execution_count"] - 1
            if "restored_to" in told:
                back = before - told["restored_to"]
                assert back == (told["lost"] == "variables"), answer
                word = KEPT[1 + back]
                y = y and back == 0
            else:
                word = {"variables": "files", "all": "nothing"}[told["lost"]]
                x, y, f = False, False, word == "files"
            assert told.get("checkpoint") == told.get("restored_to")
        y = True if answer is own and answer.success else y
    assert after.value == [x, after.value[1] if y is None else y, f], (front, own, after)
    return word


def begun_calls(process, phase, answers):
    """How many of the calls may have begun to run: those answered with 200 have."""
    answered = sum(answer is not None and answer.status == 200 for answer in answers)
    if process == "web server" and answered < len(answers):
        # what it has handed on runs, and nobody hears of it; one that is queued may be given up
        return {"body arriving": [0], "queued": [1, 2]}.get(phase, [1])
    if process == "vivarium-fcgi":
        return [max(answered, phase != "body arriving")]
    return [answered]


def show(place, process, phase, name):
    """Bring a call into the phase, strike the process, and see what comes of it."""
    eventually(place.instance.healthy, within=RECOVERY)
    struck, other = fresh_id(), fresh_id()
    try:
        return see(place, process, phase, name, Subject(place.instance, struck),
                   place.instance.client.session(other))
    finally:
        for each in (struck, other):
            place.instance.client.end(each)


def see(place, process, phase, name, subject, other):
    """What is seen of the call of `subject`, and the word for what it kept; `other` goes on."""
    if "checkpoint" not in place.instance.settings:
        subject.copied()
    members = eventually(lambda: subject.processes(process), within=RECOVERY)
    with Bystander(other) as bystander:
        with PHASES[phase](subject) as rest:
            begun, over = strike(members, name)
            if name == "SIGKILL":
                wait_for_ends([*members, *([subject.supervisor] if process in ALL_END else [])])
            seen, own = rest()
        after = first_answer(subject.session)
        recovery = time.monotonic() - over
    bystander.check(process, (begun, over) if name == "SIGSTOP" else None)
    front = subject.front[1] if subject.front else None
    word = kept(subject, front, own, after)
    answers = [front, own] if subject.front else [own]
    assert after.session["execution_count"] - subject.count - 1 in begun_calls(
        process, phase, answers), (answers, after)
    seen = f"`{subject.front[0]}`, `{seen}`" if subject.front else f"`{seen}`"
    place.rows[process, phase, name] = f"{seen} | `{word}` | {recovery:.1f} s"
    return seen, word


@pytest.mark.parametrize("process, phase, name", CASES)
def test_what_is_seen_and_kept(defaults, process, phase, name):
    seen, word = show(defaults, process, phase, name)
    says = table("Each process in each phase", SIGNALS)[process, phase, name]
    assert seen in says[0] and word in says[1], (seen, word)


def test_nothing_stays_behind(defaults):
    """After all of that: as many processes as at the start."""
    assert defaults.instance.client.sessions() == {}
    eventually(lambda: len(defaults.instance.tree()) == defaults.processes, within=RECOVERY)


@pytest.mark.parametrize("phase", PHASES)
def test_what_is_seen_and_kept_without_checkpoints(without, phase):
    seen, word = show(without, "worker", phase, "SIGKILL")
    says = table("Without checkpoints", SIGNALS[:1])["worker", phase, "SIGKILL"]
    assert seen in says[0] and word in says[1], (seen, word)


def test_the_page_has_no_other_rows():
    rows = table("Each process in each phase", SIGNALS)
    assert list(rows) == CASES
    others = table("Without checkpoints", SIGNALS[:1])
    assert list(others) == [("worker", phase, "SIGKILL") for phase in PHASES]
    for seen, words in (*rows.values(), *others.values()):
        assert words and set(words) <= set(KEPT)
        assert all(re.fullmatch(rf"`({CUT}|200|200 crash|503 system)`", each)
                   for each in " or ".join(seen).replace(", ", " or ").split(" or "))
