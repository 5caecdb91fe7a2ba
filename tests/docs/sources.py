# SPDX-License-Identifier: MIT
"""What the code says of itself: its settings, tables and constants."""

import ast
import os
import pathlib
import re
import subprocess

from docs.markdown import ROOT, read
from support.must import cannot

KINDS = {"TEXT": "text", "LIST": "list", "NUMBER": "number", "SIZE": "size",
         "DURATION": "duration"}
TOO_MUCH = {"number": "9" * 17, "size": "9" * 17, "duration": "9999999h"}


def program(name):
    """The path of a program that was built."""
    path = pathlib.Path(os.environ.get("VIVARIUM_BUILDDIR", ROOT / "build")) / name
    if not path.is_file():
        cannot(f"{path} is not built")
    return path


def run(name, *arguments):
    """What a program writes, and its exit status."""
    done = subprocess.run([program(name), *arguments], capture_output=True, text=True, timeout=60,
                          env={"PATH": os.environ.get("PATH", "")})
    return done.stdout + done.stderr, done.returncode


class Setting:
    """One setting as vivarium-fcgi --help has it."""

    def __init__(self, key, form, text):
        help_text, default = re.fullmatch(r"(.*?)(?: \(([^()]*)\))?", text).groups()
        self.key = key
        self.help = help_text
        self.default = default or ""
        self.form = KINDS.get(form, "choice")
        self.choices = form.split(",") if self.form == "choice" else []

    def __repr__(self):
        return self.key

    def range(self):
        """The range of a number as the program says it, "1 to 5"; None for a text."""
        if self.form not in TOO_MUCH:
            return None
        said, status = run("vivarium-fcgi", "-f", os.devnull, "-t",
                           f"--{self.key}={TOO_MUCH[self.form]}")
        assert status == 78, said
        return re.search(rf"{self.key}: (.*) is expected", said)[1]


def settings():
    """All settings."""
    text, status = run("vivarium-fcgi", "--help")
    assert status == 0
    found = re.findall(r"^  --(\w+)=(\S+)\n +(.*)$", text, re.MULTILINE)
    return [Setting(*each) for each in found]


def listing(path, name):
    """What stands between the braces of a C array."""
    return re.search(rf"\b{name}\[[^\]]*\] = \{{(.*?)\n?\}};", read(path), re.DOTALL)[1]


def without_comments(text):
    """C without its comments."""
    return re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def error_rows():
    """The table of errors: type, HTTP status, seconds of Retry-After."""
    types = dict(re.findall(r'\[(\w+)\] = "(\w+)"', listing("fcgi-app/error_type.c", "types")))
    found = re.findall(r"\[(\w+)\] = \{(\d+), (\d+)\}",
                       listing("fcgi-app/error_reply.c", "table"))
    assert set(types) == {code for code, _, _ in found}
    return {(types[code], int(status), int(seconds)) for code, status, seconds in found}


def execution_types():
    """The error types of failed executions that no exception has."""
    return re.findall(r'"(\w+)"', listing("fcgi-app/error_type.c", "execution_types"))


def service_types():
    """The types that the Python side keeps for the service."""
    text = read("executor/runner_error.py")
    return set(ast.literal_eval(re.search(r"SERVICE_TYPES = frozenset\((\(.*?\))\)", text,
                                          re.DOTALL)[1]))


WORKER_FILTER = "executor/seccomp/worker_filter.c"
SUPERVISOR_FILTER = "executor/seccomp/supervisor_filter.c"


def calls_in(path, name):
    """The system calls that an array of a filter names."""
    return re.findall(r'"(\w+)"', without_comments(listing(path, name)))


def checked_calls(path):
    """The system calls that a filter allows with certain arguments."""
    return set(re.findall(r'(?:filter_builder_allow_if|allow_without)\(\s*builder, "(\w+)"',
                          read(path))) - {"open", "openat"}  # those in some tiers only


def allowed_calls(path):
    """All system calls that a filter allows, in any tier."""
    text = read(path)
    arrays = re.findall(r"filter_builder_allow\(&?builder, (\w+), err\)", text)
    return checked_calls(path).union(*(calls_in(path, name) for name in arrays))


def refused_calls():
    """The system calls that are refused with an error of their own: name to error."""
    return dict(re.findall(r'\{"(\w+)", (\w+)\}', listing(WORKER_FILTER, "refused")))


def refused_to_take_disk():
    """The same for those that are refused where a watch bounds the use of a disk."""
    text = re.search(r"^static int allow_taking_disk\(.*?^\}", read(WORKER_FILTER),
                     re.DOTALL | re.MULTILINE)[0]
    return dict(re.findall(r'filter_builder_answer_if\(builder, "(\w+)", (\w+),', text)) \
        | dict(re.findall(r'allow_without\(builder, "(\w+)"[^;]*?, (E\w+), err\)', text))


def names_in(path, name):
    """The constants in an array of a filter."""
    return set(re.findall(r"\b[A-Z]\w+", listing(path, name)))


def constant(path, pattern):
    """The number that a line of a source gives: digits, `a << b`, `a * b` and suffixes of C."""
    match = re.search(pattern, read(path))
    assert match, f"{path} has no {pattern}"
    text = re.sub(r"(?<=\d)[UL]+\b|\bUINT64_C", "", match[1])
    value = 1
    for factor in text.replace("(", "").replace(")", "").split("*"):
        base, _, shift = factor.partition("<<")
        value *= int(base) << int(shift or 0)
    return value


def sources(*folders):
    """The C files of folders."""
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.c"))]


def events():
    """The names of all events of the services' log."""
    text = "".join(path.read_text("utf-8") for path in sources("fcgi-app", "executor", "common"))
    # stop() of the launcher is given the event that it logs
    return set(re.findall(r'\b(?:viv_log(?:_failure)?|stop)\([^"]*?,\s*"(\w+)"', text))
