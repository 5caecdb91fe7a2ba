# SPDX-License-Identifier: MIT
"""An attempt, what must become of it, and how both are shown."""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Refused:
    """The code ends with an exception of one of these types; the session lives on as it was."""

    types: tuple

    def judge(self, answer):
        """Assert that the answer is such a refusal."""
        assert not answer.success and answer.error_type in self.types, answer
        assert answer.lost == "none"
        assert "reached" not in answer.std_out


@dataclasses.dataclass(frozen=True)
class Prints:
    """The code runs to its end and prints what matches the pattern, from its beginning to its end."""

    pattern: str

    def judge(self, answer):
        """Assert that the answer is of that kind."""
        assert answer.success, answer
        assert re.fullmatch(self.pattern, answer.std_out, re.DOTALL), answer
        assert answer.lost == "none"


@dataclasses.dataclass(frozen=True)
class Dies:
    """The interpreter is lost, by its own doing or at the deadline; the files are not."""

    types: tuple = ("crash",)

    def judge(self, answer):
        """Assert that the answer says so."""
        assert answer.status == 200 and answer.error_type in self.types, answer
        assert answer.lost in ("variables", "all")


@dataclasses.dataclass(frozen=True)
class Harmless:
    """The code may do what it likes to its own session, however that ends."""

    def judge(self, answer):
        """Assert that it was answered as an execution."""
        assert answer.status == 200, answer


@dataclasses.dataclass(frozen=True)
class Attempt:
    """Code that must fail inside. Where `control` is set it prints "reached" outside.

    `control` is False where the code would do harm, or cannot work for any user, outside.
    """

    name: str
    code: str
    outcome: object
    control: bool = True


def refused(*types):
    """A refusal by PermissionError, or by one of the types given instead."""
    return Refused(types or ("PermissionError",))
