# SPDX-License-Identifier: MIT
"""Every attempt of the table fails inside of a session, and works outside where that is harmless."""

import pytest

from support import outside
from support.must import cannot

from .hostile import ATTEMPTS

ROWS = [(kind, attempt) for kind, attempts in ATTEMPTS.items() for attempt in attempts]
CONTROLLED = [(kind, attempt) for kind, attempt in ROWS if attempt.control]


def names(rows):
    """The rows' names, for pytest."""
    return [f"{kind}: {attempt.name}" for kind, attempt in rows]


@pytest.mark.parametrize("kind, attempt", ROWS, ids=names(ROWS))
def test_it_fails_inside(session, kind, attempt):
    session.exec("kept = 41; open('/home/earth/kept', 'w').write('kept')")
    answer = session.exec(attempt.code, timeout_ms=5000)
    attempt.outcome.judge(answer)
    after = session.exec("[globals().get('kept'), open('/home/earth/kept').read()]")
    assert after.success, after
    if answer.lost == after.lost == "none":
        assert after.value == [41, "kept"]


@pytest.mark.parametrize("kind, attempt", CONTROLLED, ids=names(CONTROLLED))
def test_it_works_outside(tmp_path, kind, attempt):
    result = outside.run(attempt.code, tmp_path)
    if "reached" not in result.stdout and "PermissionError" in result.stderr:
        cannot(f"this machine refuses it to everybody: {attempt.name}")
    assert "reached" in result.stdout, result


def test_names_are_unique():
    assert len(set(names(ROWS))) == len(ROWS)
