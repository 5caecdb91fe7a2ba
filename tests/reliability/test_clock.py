# SPDX-License-Identifier: MIT
"""The clock on the wall is set, days ahead and back: no deadline and no session moves.

The services see a wall clock of the test's own, by libfaketime(1); their monotonic clock, that of
the sandboxes and that of the machine are the true ones.
"""

import os
import pathlib
import signal
import time

import pytest

from support.client import fresh_id
from support.must import cannot
from support.processes import EXECUTOR, FCGI
from support.server import running
from support.tiers import build_file
from support.together import eventually, in_background

LIBRARY = "faketime/libfaketimeMT.so.1"
WRAPPER = """#!/bin/sh
FAKETIME_TIMESTAMP_FILE={clock} FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1 \\
DONT_FAKE_MONOTONIC=1 LD_PRELOAD='/usr/$LIB/{library}' exec {program} "$@"
"""
JUMPS = ("+400d", "-400d", "+0")
DAY_MS = 86400 * 1000


class Clock:
    """The wall clock of both services, and a build in which they have it."""

    def __init__(self, folder):
        self.file = folder / "clock"
        self.build = folder / "build"
        self.build.mkdir()
        for entry in build_file("vivarium-fcgi").parent.iterdir():
            (self.build / entry.name).symlink_to(entry)
        for name in ("vivarium-fcgi", "vivarium-executor"):
            place = self.build / name
            program = place.resolve()
            place.unlink()
            place.write_text(WRAPPER.format(clock=self.file, library=LIBRARY, program=program))
            place.chmod(0o755)
        self.set("+0")

    def set(self, offset):
        """Let it differ from the true one by so much."""
        new = self.file.with_suffix(".new")
        new.write_text(offset)
        new.chmod(0o644)
        new.rename(self.file)


@pytest.fixture(name="clock")
def _clock(tmp_path_factory):
    if not list(pathlib.Path("/usr/lib").glob(f"*/{LIBRARY}")):
        cannot("the library is not there; Debian package: libfaketime")
    folder = tmp_path_factory.mktemp("clock")
    for above in (folder, folder.parent, folder.parent.parent):
        above.chmod(0o711)  # for the parts that gave up root
    return Clock(folder)


def start(clock, **settings):
    """An instance whose services have this clock."""
    return running(rate_limit=0, under=("env", f"VIVARIUM_BUILDDIR={clock.build}"), **settings)


def listed(session):
    """The session as GET /sessions has it, or None."""
    return session.client.sessions().get(session.name)


@pytest.mark.parametrize("jump", JUMPS[:2])
def test_the_services_see_it(clock, jump):
    """Else the other tests would show nothing."""
    with start(clock) as instance:
        clock.set(jump)

        def is_seen():
            session = instance.client.session(fresh_id())
            session.exec("1")
            away = listed(session)["createdAt"] - time.time() * 1000
            return abs(away - int(jump[:-1]) * DAY_MS) < DAY_MS

        eventually(is_seen)
        assert all(b"libfaketime" in (part.path / "maps").read_bytes()
                   for part in (instance.part(FCGI), instance.part(EXECUTOR)))


def test_no_session_and_no_call_notices(clock):
    with start(clock) as instance:
        session = instance.client.session(fresh_id())
        session.exec("import time; n = 0; open('f', 'w').write('here')")
        for jump in JUMPS:
            call = in_background(lambda: session.exec("time.sleep(1); n += 1; n"))
            late = in_background(lambda: session.exec("n += 1; n", timeout_ms=20000))
            time.sleep(0.3)
            clock.set(jump)
            assert {call.result().status, late.result().status} == {200}
            answer = session.exec("open('f').read()")
            assert (answer.value, answer.lost) == ("here", "none")
            entry = listed(session)
            assert 0 <= entry["idleMinutes"] <= entry["ageMinutes"] < 60
            assert entry["lastAccessedAt"] >= entry["createdAt"]
        assert session.value("n") == 2 * len(JUMPS)


def test_a_deadline_stays_where_it_was(clock):
    with start(clock) as instance:
        session = instance.client.session(fresh_id())
        session.exec("import time; x = 5")
        for jump in JUMPS:
            call = in_background(lambda: session.exec("time.sleep(60)", timeout_ms=1500))
            time.sleep(0.3)
            clock.set(jump)
            answer = call.result()
            assert (answer.error_type, answer.lost) == ("timeout", "none")
            assert 1500 <= answer.outcome["code_runtime"] < 30000
            assert session.value("x") == 5


@pytest.mark.parametrize("jump", JUMPS[:2])
def test_a_session_ends_when_nobody_has_called_for_a_while(clock, jump):
    with start(clock, session_idle_timeout="6s") as instance:
        session = instance.client.session(fresh_id())
        session.exec("x = 5")
        clock.set(jump)
        for _ in range(16):  # longer than that, and never so long without a call
            time.sleep(0.5)
            assert session.value("x") == 5
        eventually(lambda: listed(session) is None, within=60)


@pytest.mark.parametrize("jump", JUMPS[:2])
def test_who_starts_anew_meanwhile_finds_its_sessions(clock, jump):
    with start(clock) as instance:
        session = instance.client.session(fresh_id())
        session.exec("x = 5")
        before = listed(session)
        clock.set(jump)
        old = instance.part(FCGI)
        os.kill(old.pid, signal.SIGKILL)
        eventually(lambda: not old.alive())
        answer = session.exec("x")
        assert (answer.value, answer.lost) == (5, "none")
        entry = listed(session)
        assert entry["createdAt"] == before["createdAt"]
        assert 0 <= entry["idleMinutes"] <= entry["ageMinutes"] < 60
