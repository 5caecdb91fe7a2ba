# SPDX-License-Identifier: MIT
"""Every attempt of the tables fails in a session, and works outside where that is harmless."""

import re
import shutil

import pytest

from support import outside
from support.must import cannot
from support.program import program

from . import test_hostile_answers
from .attempt import is_a, read, shown_outside

ATTEMPTS = read()
CONTROLS = [attempt for attempt in ATTEMPTS if attempt.control]
NUMBERS = program("""
    A01 A02 A03 A04 A05 A06 A07 A09 A11
    B01 B02 B03 B04 B05 B06 B09
    C01 C02 C03 C04 C05 C06 C07 C11 C13
    D01 D02 D03 D04 D05 D06 D07 D09 D10 D11 D13
    E01 E02 E03 E05 E06 E08
    F01 F02 F04 F05 F06 F08 F09 F10 F11 F12 F13 F15
    G01 G02 G03 G04 G05
    H01 H02 H04 H05 H06
    I01 I03 I04 I05 I06
""").split()
# what is less than that which an attempt of this number is stopped at
BELOW = {
    "F01": "len(bytearray(8 << 20))",
    "F02": "import numpy as np; len([np.ones(1 << 16) for _ in range(16)])",
    "F04": "import threading; t = [threading.Thread(target=int) for _ in range(10)]\n"
           "for one in t: one.start()\nfor one in t: one.join()\nlen(t)",
    "F05": "open('f', 'wb').write(b'0' * (2 << 20))",
    "F06": "sum(open(str(i), 'wb').write(b'0' * (1 << 20)) for i in range(4))",
    "F08": "len([open('/dev/null') for _ in range(50)])",
    "F09": "sum(1 for _ in range(10 ** 6))",
    "F12": "f = lambda n: n and 1 + f(n - 1)\nf(900)",
    "F15": "(9 ** 9 ** 4).bit_length()",
}


def name(attempt):
    """What pytest calls the test of an attempt."""
    return attempt.name


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=name)
def test_it_fails_inside(server, session, surroundings, attempt):
    path = session.value("import os; kept = 41; open('kept', 'w').write('kept')\n"
                         "os.path.abspath('kept')")
    surroundings.watch()
    answer = session.exec(attempt.code, timeout_ms=400 if attempt.endless else 20000)
    attempt.judge(answer, server.tier.isolation)
    after = session.exec(f"[globals().get('kept'), open({path!r}).read()]")
    if "all" in (answer.lost, after.lost):  # then, or after it was told what went wrong
        assert attempt.expected(server.tier.isolation).loses_all
    else:
        assert after.success, after
    if answer.lost == after.lost == "none":
        assert after.value == [41, "kept"]
    surroundings.judge(attempt.code)


@pytest.mark.parametrize("number, code", BELOW.items(), ids=BELOW)
def test_what_is_below_the_limit_works(session, number, code):
    assert number in {attempt.number for attempt in ATTEMPTS}
    assert session.value(code) > 9


@pytest.mark.parametrize("attempt", CONTROLS, ids=name)
def test_it_works_outside(tmp_path, attempt):
    copy = shutil.copy(shutil.__file__, tmp_path / "copy.py")
    result = outside.run(attempt.code, tmp_path, alone=attempt.control.endswith(" alone"),
                         COPY_OF_A_LIBRARY=str(copy))
    if "reached" not in result.stdout and "PermissionError" in result.stderr:
        cannot(f"this machine refuses it to everybody: {attempt.name}")
    assert shown_outside(attempt, result), result


def test_the_tables_are_read_as_they_are_meant():
    names = [attempt.name for attempt in ATTEMPTS]
    assert len(names) == len(set(names)) > 140
    for attempt in ATTEMPTS:
        for outcome in (attempt.outcome, *attempt.outcomes.values()):
            assert any(vars(outcome).values()), attempt.name
        compile(attempt.code, attempt.name, "exec")


def test_every_number_is_tried_once():
    numbers = [attempt.number for attempt in ATTEMPTS if attempt.number]
    for test in vars(test_hostile_answers):
        numbers += re.findall(r"^TEST_([A-Z]\d\d)_", test.upper())
    assert sorted(numbers) == NUMBERS


def test_exceptions_are_told_apart():
    assert is_a("PermissionError", ["OSError"]) and is_a("URLError", ["URLError", "OSError"])
    assert not is_a("OSError", ["PermissionError"]) and not is_a("URLError", ["OSError"])
    assert not is_a("KeyError", ["OSError"]) and not is_a("gaierror", ["PermissionError"])
