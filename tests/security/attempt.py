# SPDX-License-Identifier: MIT
"""The tables of attempts in hostile/, read: the head of fronts.txt says what their lines mean."""

import builtins
import dataclasses
import pathlib
import re

from support import table

TABLES = pathlib.Path(__file__).with_name("hostile")
REACHED = "print('reached')\n"
CONTROLS = ("works outside", "works outside alone", "is not refused outside", "dies outside")


@dataclasses.dataclass
class Outcome:
    """What may become of an attempt: any of what is filled in here."""

    refused: list = None
    ends: list = None
    dies: list = None
    prints: str = None
    harmless: bool = False
    loses_all: bool = False

    def allows(self, answer):
        """True when the answer of an execution is one that the attempt may have."""
        if answer.success:
            return self.harmless or answer.lost == "none" and bool(
                self.prints and re.fullmatch(self.prints, answer.std_out))
        if answer.lost == "none" and "restored_to" not in answer.session:
            return self.harmless or answer.error_type in (self.ends or []) or is_a(
                answer.error_type, self.refused or [])
        if answer.lost == "all" and not self.loses_all:
            return False
        return self.harmless or answer.error_type in [*(self.ends or []), *(self.dies or [])]

    def set(self, line):
        """Take over a line of a table. False if it says something else."""
        word, _, rest = line.partition(": ")
        if word in ("refused", "ends", "dies"):
            setattr(self, word, rest.split())
        elif word == "prints":
            self.prints = rest
        elif line in ("harmless", "loses all"):
            setattr(self, line.replace(" ", "_"), True)
        else:
            return False
        return True


@dataclasses.dataclass
class Attempt:
    """One row."""

    name: str
    code: str
    outcome: Outcome
    outcomes: dict  # where it is another one: by name of the isolation
    control: str = None

    def judge(self, answer, isolation):
        """Assert that the answer of an execution is what must become of the attempt."""
        assert answer.status == 200
        expected = self.expected(isolation)
        assert expected.harmless or "reached" not in answer.std_out, answer
        assert expected.allows(answer), answer

    def expected(self, isolation):
        """What may become of it there."""
        return self.outcomes.get(isolation, self.outcome)

    @property
    def number(self):
        """The number at the front of the name, like A01; None if it has none."""
        match = re.match(r"[A-Z]\d\d(?= )", self.name)
        return match and match[0]

    @property
    def endless(self):
        """True for code that only its deadline ends."""
        return "timeout" in [*(self.outcome.ends or []), *(self.outcome.dies or [])]


def is_a(name, wanted):
    """True when `name` is one of the names of exceptions, or of a built-in one derived from it."""
    kind = getattr(builtins, name, None)
    return name in wanted or any(
        kind and issubclass(kind, getattr(builtins, other, ())) for other in wanted)


def read():
    """All attempts of the tables, which are in the order of their names."""
    fronts = {name.removeprefix("with: "): code
              for name, _, code in table.rows(TABLES / "fronts.txt")}
    return [_attempt(*row, fronts) for path in sorted(TABLES.glob("*.txt"))
            if path.name != "fronts.txt" for row in table.rows(path)]


def _attempt(name, lines, code, fronts):
    attempt = Attempt(name, code, Outcome(), {})
    for line in lines:
        word, _, rest = line.partition(": ")
        if word == "with":
            attempt.code = fronts[rest] + attempt.code
        elif word.startswith("in "):
            for isolation in word.split()[1:]:
                assert attempt.outcomes.setdefault(isolation, Outcome()).set(rest), name
        elif line in CONTROLS:
            attempt.control = line
        else:
            assert attempt.outcome.set(line), f"{name}: {line}"
    if attempt.outcome.refused:
        attempt.code += REACHED
    return attempt


def shown_outside(attempt, result):
    """True when the process that ran an attempt outside has shown what its control says."""
    if attempt.control == "is not refused outside":
        *_, last = result.stderr.splitlines() or [""]
        return not is_a(last.partition(":")[0].rpartition(".")[2], attempt.outcome.refused)
    if attempt.control == "dies outside":
        return result.returncode < 0
    return "reached" in result.stdout
