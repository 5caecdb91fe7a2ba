# SPDX-License-Identifier: MIT
"""Values, exceptions and code made to break whoever looks at them: all end in a plain answer."""

import pathlib
import time

import pytest

from support import table
from support.program import program

TROUBLE = {name: code for name, _, code in
           table.rows(pathlib.Path(__file__).with_name("troublesome.txt"))}
# where the contract does not say how a value looks; that it looks like JSON it does
VALUES = {name: code for name, code in TROUBLE.items() if name.startswith("value: ")}
OBJECTS = {name: code for name, code in TROUBLE.items() if name.startswith("object: ")}
STRAINING = {
    "many parentheses": "(" * 50_000 + ")" * 50_000,
    "many signs": "-" * 100_000 + "1",
    "a long sum": "+".join(["1"] * 100_000),
    "a long chain of attributes": "x" + ".a" * 100_000,
    "many indentations": "".join(" " * n + "if 1:\n" for n in range(150)) + " " * 150 + "pass",
    "many branches": "if 0: pass\n" + "elif 0: pass\n" * 20_000,
    "a long line": "x = '" + "y" * 900_000 + "'",
    "many lines": "\n" * 900_000 + "5",
    "many arguments": "print(" + "1," * 100_000 + ")",
    "a deep lambda": "lambda: " * 5000 + "1",
    "deep brackets of texts": "f'{" * 100 + "1" + "}'" * 100,
    "an f-string in an f-string": "f'{f\"{1}\"}'",
    "a power at compile time": "9**9**9**9",
    "a long text at compile time": "'a' * 10**9 * 10**9",
    "no end of a text": "'''" + "x\n" * 100_000,
    "a form feed and other blanks": "\f\n \t\n\v",
    "names that are equal after all": "ﬁ = 5\nfi",
}


def still_well(session):
    """Assert that the session runs code as ever."""
    answer = session.exec("6 * 7")
    assert answer.success and answer.value == 42, answer


@pytest.mark.parametrize("code", VALUES.values(), ids=VALUES.keys())
def test_values_of_all_kinds(shared, code):
    answer = shared.exec(code, timeout_ms=4000)
    assert answer.success or answer.error_type in ("ValueError", "MemoryError", "timeout"), answer
    assert len(answer.body) < 1 << 20
    still_well(shared)


@pytest.mark.parametrize("code", OBJECTS.values(), ids=OBJECTS.keys())
def test_objects_that_are_made_to_break_things(session, code):
    answer = session.exec("kept = 1\n" + code, timeout_ms=3000)
    assert answer.status == 200
    assert answer.error_type != "crash", answer
    assert len(answer.body) < 4 << 20
    if answer.lost == "none":
        assert session.value("kept") == 1
    still_well(session)


@pytest.mark.parametrize("code", STRAINING.values(), ids=STRAINING.keys())
def test_code_that_strains_the_compiler(session, code):
    answer = session.exec(code, timeout_ms=3000)
    assert answer.status == 200
    still_well(session)


def test_a_timer_that_never_stops(session):
    session.exec(program("""
        import signal
        def tick(*_): raise ValueError('tick')
        signal.signal(signal.SIGALRM, tick)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
    """))
    for _ in range(10):
        assert session.exec("sum(range(10_000))").status == 200
    session.exec(program("""
        import signal
        while True:
            try: signal.setitimer(signal.ITIMER_REAL, 0); break
            except ValueError: pass
    """), timeout_ms=5000)
    still_well(session)


def test_a_timer_that_ends_between_calls(session):
    session.exec("import signal; signal.setitimer(signal.ITIMER_REAL, 0.2)")
    time.sleep(1)
    answer = session.exec("6 * 7")
    assert answer.value == 42
    assert answer.lost in ("none", "variables")


def test_a_home_directory_without_permissions(session):
    session.exec("import os; open('f', 'w').write('f'); os.chmod('/home/earth', 0)")
    still_well(session)
    assert session.exec("1", files={"up": b"x"}).status in (200, 413, 422)
    session.exec("import os; os.chmod('/home/earth', 0o700)")
    assert session.value("open('g').read() + open('f').read()", files={"g": b"g"}) == "gf"


def test_a_home_directory_cannot_be_taken_away(session):
    session.exec("import os, shutil")
    for code in ("os.rename('/home/earth', '/home/moon')", "os.rmdir('/home/earth')",
                 "shutil.rmtree('/home/earth')"):
        assert session.exec(code).error_type in ("OSError", "PermissionError")
    assert session.exec("open('f', 'w').write('x')", files={"g": b"x"}).files == {"f": b"x"}


@pytest.mark.parametrize("code", [
    "import os; os.close(1); os.close(2)", "import os; os.close(0)",
    "import os; n = os.open('/dev/null', os.O_RDWR); os.dup2(n, 1); os.dup2(n, 2); os.dup2(n, 0)",
    "import os; r, w = os.pipe(); os.dup2(r, 1); os.dup2(r, 2)",
    "import os; os.set_blocking(1, False); os.set_blocking(2, False)",
])
def test_streams_taken_away_below_python(session, code):
    session.exec(code)
    still_well(session)
    assert session.exec("input()", stdin="x\n").status == 200
    still_well(session)
