# SPDX-License-Identifier: MIT
"""The manual pages: well-formed, and with the flags that the programs have."""

import re
import shutil
import subprocess

import pytest

from docs import markdown, sources
from support.must import cannot

MANUALS = ["docs/vivarium-fcgi.8", "docs/vivarium-executor.8", "docs/vivarium.conf.5"]
# of the machine, not of the page
ELSEWHERE = re.compile(r"referenced manual not found|outdated mandoc\.db|operating system")


@pytest.mark.parametrize("manual", MANUALS)
def test_mandoc_finds_nothing(manual):
    if not shutil.which("mandoc"):
        cannot("mandoc is not there")
    done = subprocess.run(["mandoc", "-T", "lint", markdown.ROOT / manual], capture_output=True,
                          text=True)
    lines = (done.stdout + done.stderr).splitlines()
    assert [line for line in lines if not ELSEWHERE.search(line)] == []


@pytest.mark.parametrize("program", ["vivarium-fcgi", "vivarium-executor"])
def test_every_flag_stands_in_the_manual(program):
    text = markdown.read(f"docs/{program}.8")
    said, _ = sources.run(program, "--help")
    keys = {setting.key for setting in sources.settings()}
    own = set(re.findall(r"^ +(?:-\w, )?--(\w+)", said, re.MULTILINE)) - keys
    assert {"version", "help"} <= own
    for flag in own:
        assert f"Fl Fl {flag}" in text, flag
    for letter in "ftVh":
        assert re.search(rf"^\.It Fl {letter}\b", text, re.MULTILINE), letter


@pytest.mark.parametrize("program, arguments, status", [
    ("vivarium-fcgi", ["-t", "-f", "/dev/null"], 0),
    ("vivarium-fcgi", ["--nothing=1"], 78),
    ("vivarium-executor", ["--nothing=1"], 78),
    ("vivarium-executor", ["-f", "/dev/null", "--executor_client=nobody",
                           "--zygote=/nonexistent"], 69),
])
def test_exit_statuses(program, arguments, status):
    assert sources.run(program, *arguments)[1] == status
    assert re.search(rf"^\.It {status}$", markdown.read(f"docs/{program}.8"), re.MULTILINE)


@pytest.mark.parametrize("manual", MANUALS)
def test_manuals_that_are_referred_to_are_there(manual):
    ours = {tuple(name.removeprefix("docs/").rsplit(".", 1)) for name in MANUALS}
    for name, number in re.findall(r"^\.Xr (\S+) (\d)", markdown.read(manual), re.MULTILINE):
        assert not name.startswith("vivarium") or (name, number) in ours
