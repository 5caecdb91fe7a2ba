# SPDX-License-Identifier: MIT
"""Every attempt of the table fails in a session, and works outside where that is harmless."""

import pytest

from support import outside
from support.must import cannot

from .attempt import is_a, read

ATTEMPTS = read()
CONTROLS = [attempt for attempt in ATTEMPTS if attempt.works_outside]


def name(attempt):
    """What pytest calls the test of an attempt."""
    return attempt.name


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=name)
def test_it_fails_inside(session, attempt):
    session.exec("kept = 41; open('/home/earth/kept', 'w').write('kept')")
    answer = session.exec(attempt.code, timeout_ms=1000 if attempt.dies == ["timeout"] else 8000)
    attempt.judge(answer)
    after = session.exec("[globals().get('kept'), open('/home/earth/kept').read()]")
    assert after.success, after
    if answer.lost == after.lost == "none":
        assert after.value == [41, "kept"]


@pytest.mark.parametrize("attempt", CONTROLS, ids=name)
def test_it_works_outside(tmp_path, attempt):
    result = outside.run(attempt.code, tmp_path)
    if "reached" not in result.stdout and "PermissionError" in result.stderr:
        cannot(f"this machine refuses it to everybody: {attempt.name}")
    assert "reached" in result.stdout, result


def test_the_table_is_read_as_it_is_meant():
    names = [attempt.name for attempt in ATTEMPTS]
    assert len(names) == len(set(names)) > 100
    for attempt in ATTEMPTS:
        outcomes = (attempt.refused, attempt.prints, attempt.dies, attempt.harmless)
        assert sum(map(bool, outcomes)) == 1, attempt.name
        compile(attempt.code, attempt.name, "exec")


def test_exceptions_are_told_apart():
    assert is_a("PermissionError", ["OSError"]) and is_a("URLError", ["URLError", "OSError"])
    assert not is_a("OSError", ["PermissionError"]) and not is_a("URLError", ["OSError"])
    assert not is_a("KeyError", ["OSError"]) and not is_a("gaierror", ["PermissionError"])
