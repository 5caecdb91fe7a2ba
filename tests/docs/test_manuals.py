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


def words(text):
    """Flags as a shell has them, of a manual's macros: `Fl Fl check` is --check."""
    text = re.sub(r"Fl Fl Ns Ar key.*", "", text).replace("Fl Fl ", "--").replace("Fl ", "-")
    return set(re.findall(r"(?<![\w-])(--[\w-]+|-\w\b)", text))


def helped(program):
    """The flags that a program's help names, without those that are settings."""
    said, status = sources.run(program, "--help")
    assert status == 0
    found = re.findall(r"^  (-\w\b)?(?:, )?(--[\w-]+)?", said, re.MULTILINE)
    keys = {f"--{setting.key}" for setting in sources.settings()}
    return {flag for flags in found for flag in flags if flag} - keys


@pytest.mark.parametrize("program", ["vivarium-fcgi", "vivarium-executor"])
def test_the_manual_has_all_flags_and_no_other(program):
    text = markdown.read(f"docs/{program}.8")
    options = text.split("The options are:")[1].split("\n.El")[0]
    items = "\n".join(re.findall(r"^\.It (Fl .*)$", options, re.MULTILINE))
    assert {"-f", "-t", "-V", "--version", "-h", "--help"} <= helped(program)
    assert words(items) == helped(program)
    synopsis = text.split(".Sh SYNOPSIS")[1].split(".Sh")[0]
    assert words(synopsis) == helped(program) - {"--version", "--help"}  # both by their letters


@pytest.mark.parametrize("program", ["vivarium-fcgi", "vivarium-executor"])
def test_the_usage_line_has_the_letters(program):
    said, _ = sources.run(program, "--help")
    usage = said.splitlines()[0]
    assert set(re.findall(r"(?<=\[)-\w", usage)) \
        == {flag for flag in helped(program) if len(flag) == 2}


@pytest.mark.parametrize("program", ["vivarium-fcgi", "vivarium-executor"])
def test_variables_in_the_manual_are_settings(program):
    found = re.findall(r"^\.Ev VIVARIUM_(\w+)", markdown.read(f"docs/{program}.8"), re.MULTILINE)
    keys = {setting.key.upper() for setting in sources.settings()}
    assert found and set(found) <= keys


@pytest.mark.parametrize("manual", MANUALS)
def test_settings_in_the_manual_are_settings(manual):
    named = re.findall(r"^\.(?:It )?Ic (\w+)", markdown.read(manual), re.MULTILINE)
    keys = {setting.key for setting in sources.settings()}
    assert set(named) - {"key"} <= keys


@pytest.mark.parametrize("manual", MANUALS)
def test_paths_in_the_manual_are_the_defaults(manual):
    defaults = {setting.key: setting.default for setting in sources.settings()}
    run = defaults["run_directory"]
    known = {f"{run}/executor.sock", f"{run}/executor.sock.lock",
             f"{run}/web/fcgi.sock", f"{run}/web/fcgi.sock.lock",
             defaults["slot_directory"], "/etc/vivarium/vivarium.conf",
             "/usr/libexec/vivarium/vivarium-zygote"}
    found = set(re.findall(r"^\.(?:It )?Pa (/\S+)", markdown.read(manual), re.MULTILINE))
    assert found and found <= known


def test_manuals_refer_to_each_other():
    for manual in MANUALS:
        own = manual.removeprefix("docs/").rpartition(".")
        others = re.findall(r"^\.Xr (vivarium\S*) (\d)", markdown.read(manual), re.MULTILINE)
        names = {f"docs/{name}.{section}" for name, section in others}
        assert names == set(MANUALS) - {"docs/" + "".join(own)}, manual


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
