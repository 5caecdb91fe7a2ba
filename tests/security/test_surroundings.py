# SPDX-License-Identifier: MIT
"""What is watched around the attempts is seen when it changes."""

import os
import subprocess
import sys
import types

import pytest

from support import processes

from . import surroundings
from .surroundings import Surroundings, differences, files, wrong_lines

GOOD = [
    b"level=info event=request req=10a status=200 out=1154\n",
    b'level=warning event=executor_not_reached reason="did \\"not\\" answer \\x0a"\n',
    b"2026-11-29 22:10:14: (server.c.1704) server started (lighttpd/1.4.69)\n",
]
WRONG = [
    b"2026-01-01 INFO admin login ok\n",
    b"level=info event=request req=1 \x1b]0;t\x07\n",
    b"level=info event=request req=\"open\n",
    b"level=info\n",
    b"\r\n",
    b"level=info event=request",
    b"level=info event=x a=\xff\n",
]


@pytest.fixture
def stand_in(tmp_path):
    """What looks like an instance: a folder, a log, the test's own processes."""
    (tmp_path / "scratch").mkdir()
    (tmp_path / "log").write_bytes(GOOD[0])
    return types.SimpleNamespace(
        scratch=tmp_path / "scratch", log=tmp_path / "log",
        tree=lambda: processes.tree(os.getpid()))


@pytest.fixture
def processes_of_a_session():
    """Two processes, which begin when it is called."""
    started = []
    yield lambda: started.extend(
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        for _ in range(2))
    for each in started:
        each.stdin.close()
        each.wait()


@pytest.mark.parametrize("line", GOOD)
def test_lines_of_the_log(line):
    assert wrong_lines(line) == []


@pytest.mark.parametrize("line", WRONG)
def test_lines_that_are_none(line):
    assert wrong_lines(GOOD[0] + line + GOOD[1]) != []


def test_files(stand_in):
    kept = stand_in.scratch / "kept"
    kept.write_text("1")
    (stand_in.scratch / "slots").mkdir()
    before = files(stand_in)
    assert os.__file__ in before and str(kept) in before
    assert differences(before, files(stand_in)) == []
    (stand_in.scratch / "slots" / "of-a-session").write_text("")
    assert differences(before, files(stand_in)) == []
    (stand_in.scratch / "new").write_text("")
    kept.write_text("22")
    assert differences(before, files(stand_in)) == [str(kept), str(stand_in.scratch / "new")]


CHANGES = {
    "a file": lambda one: (one.scratch / "planted").write_text(""),
    "a line": lambda one: one.log.write_bytes(GOOD[0] + GOOD[1] + WRONG[0]),
    "its code": lambda one: one.log.write_bytes(
        GOOD[0] + b'level=info event=x text="import os; os.fork()"\n'),
    "no line": lambda one: None,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change(stand_in, processes_of_a_session, change):
    watched = Surroundings(stand_in)
    processes_of_a_session()
    watched.watch()
    change(stand_in)
    with pytest.raises(AssertionError):
        watched.judge("import os; os.fork()")


def test_a_process(stand_in, processes_of_a_session, monkeypatch):
    monkeypatch.setattr(surroundings, "PATIENCE", 0.2)
    watched = Surroundings(stand_in)
    processes_of_a_session()
    watched.watch()
    stand_in.log.write_bytes(GOOD[0] + GOOD[1])
    watched.judge("import os; os.fork()")
    processes_of_a_session()
    with pytest.raises(AssertionError):
        watched.judge("import os; os.fork()")
