# SPDX-License-Identifier: MIT
"""The table of attempts in hostile.txt, read: its head says what the lines of a row mean."""

import builtins
import dataclasses
import pathlib
import re

from support import table

TABLE = pathlib.Path(__file__).with_name("hostile.txt")
REACHED = "print('reached')\n"


@dataclasses.dataclass
class Attempt:
    """One row. Of `refused`, `prints`, `dies` and `harmless` one says what must become of it."""

    name: str
    code: str
    refused: list = None
    prints: str = None
    dies: list = None
    harmless: bool = False
    works_outside: bool = False

    def judge(self, answer):
        """Assert that the answer of an execution is what must become of the attempt."""
        assert answer.status == 200
        assert "reached" not in answer.std_out, answer
        if self.refused:
            assert not answer.success and is_a(answer.error_type, self.refused), answer
            assert answer.lost == "none"
        elif self.prints:
            assert answer.success and answer.lost == "none", answer
            assert re.fullmatch(self.prints, answer.std_out), answer
        elif self.dies:
            assert answer.error_type in self.dies, answer
            assert answer.lost == "variables"
        else:
            assert self.harmless


def is_a(name, wanted):
    """True when `name` is one of the names of exceptions, or of a built-in one derived from it."""
    kind = getattr(builtins, name, None)
    return name in wanted or any(
        kind and issubclass(kind, getattr(builtins, other, ())) for other in wanted)


def read():
    """All attempts of the table."""
    fronts, attempts = {}, []
    for name, lines, code in table.rows(TABLE):
        kind, _, title = name.partition(": ")
        if kind == "with":
            fronts[title] = code
        else:
            attempts.append(_attempt(name, lines, code, fronts))
    return attempts


def _attempt(name, lines, code, fronts):
    attempt = Attempt(name, code)
    for line in lines:
        word, _, rest = line.partition(": ")
        if word == "with":
            attempt.code = fronts[rest] + attempt.code
        elif word == "prints":
            attempt.prints = rest
        elif word in ("refused", "dies"):
            setattr(attempt, word, rest.split())
        else:
            assert line in ("harmless", "works outside"), f"{name}: {line}"
            setattr(attempt, line.replace(" ", "_"), True)
    if attempt.refused:
        attempt.code += REACHED
    return attempt
