# SPDX-License-Identifier: MIT
"""The examples: they are shell, and what they are said to be answered with is the answer."""

import json
import re
import subprocess

import pytest

from docs import markdown
from support import strict_json
from support.server import running

ADDRESS = "http://127.0.0.1:3080"
PAGES = ["README.md", "docs/api.md"]

# What is not the same from one run or machine to the next: only its kind is compared.
VOLATILE = {"code_runtime", "createdAt", "lastAccessedAt", "ageMinutes", "idleMinutes", "version",
            "isolation"}


def calls(page):
    """The examples of a page: pairs of a command and the answer that is shown behind it."""
    found = markdown.blocks(markdown.read(page))
    return [(command, json.loads(found[number + 1][1]))
            for number, (language, command) in enumerate(found)
            if language == "sh" and "curl" in command]


def kind(value):
    """The JSON type of a value."""
    return "number" if type(value) in (int, float) else type(value).__name__


def compare(shown, got, place="$"):
    """Hold an answer against the one that is shown."""
    if isinstance(shown, dict) and isinstance(got, dict):
        assert list(got) == list(shown), place
        for name, value in shown.items():
            if name in VOLATILE:
                assert kind(got[name]) == kind(value), f"{place}.{name}"
            else:
                compare(value, got[name], f"{place}.{name}")
    elif isinstance(shown, list) and isinstance(got, list):
        assert len(got) == len(shown), place
        for number, value in enumerate(shown):
            compare(value, got[number], f"{place}[{number}]")
    else:
        assert (kind(got), got) == (kind(shown), shown), place


@pytest.mark.parametrize("page", markdown.PAGES, ids=lambda page: page.name)
def test_shell_is_well_formed(page):
    for language, text in markdown.blocks(page.read_text("utf-8")):
        if language == "sh":
            done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
            assert (done.returncode, done.stderr) == (0, ""), text


@pytest.mark.parametrize("page", PAGES)
def test_bodies_in_examples_are_json(page):
    for command, _ in calls(page):
        body = re.search(r"-d '([^']*)'", command)
        assert body is None or isinstance(strict_json.loads(body[1].encode()), dict), command


def test_there_are_examples_of_everything():
    commands = " ".join(command for command, _ in calls("docs/api.md"))
    for target in ("/exec?sessionId=", "/sessions", "/health"):
        assert ADDRESS + target in commands
    assert len(calls("README.md")) == 1


@pytest.mark.parametrize("page", PAGES)
def test_examples_are_answered_as_shown(page):
    with running() as instance:
        for command, shown in calls(page):
            assert ADDRESS in command
            done = subprocess.run(
                ["bash", "-c", command.replace(ADDRESS, f"http://127.0.0.1:{instance.port}")],
                capture_output=True, timeout=60)
            assert done.returncode == 0, command
            compare(shown, strict_json.loads(done.stdout))
