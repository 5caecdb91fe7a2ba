# SPDX-License-Identifier: MIT
"""The examples: they are shell, and what they are said to be answered with is the answer."""

import re
import subprocess

import pytest

from docs import markdown
from support import examples, strict_json
from support.server import running

SKILL = "contrib/skill/SKILL.md"  # its examples are run by tests/integration/test_skill.py
RUN_HERE = ["README.md", "docs/api.md"]
PAGES = [*RUN_HERE, SKILL]


@pytest.mark.parametrize("page", markdown.PAGES, ids=lambda page: page.name)
def test_shell_is_well_formed(page):
    for language, text in markdown.blocks(page.read_text("utf-8")):
        if language == "sh":
            done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
            assert (done.returncode, done.stderr) == (0, ""), text


@pytest.mark.parametrize("page", PAGES)
def test_bodies_in_examples_are_json(page):
    for command, _, _ in examples.calls(page):
        body = re.search(r"-d '([^']*)'", command)
        assert body is None or isinstance(strict_json.loads(body[1].encode()), dict), command


@pytest.mark.parametrize("page", ["docs/api.md", SKILL])
def test_there_are_examples_of_everything(page):
    commands = " ".join(command for command, _, _ in examples.calls(page))
    for target in ("/exec?sessionId=", "/sessions", "/health"):
        assert examples.ADDRESS + target in commands


def test_the_readme_has_an_example():
    assert len(examples.calls("README.md")) == 1


@pytest.mark.parametrize("page", PAGES)
def test_no_curl_is_left_out(page):
    commands = [command for command, _, _ in examples.calls(page)]
    assert [text for _, text in markdown.blocks(markdown.read(page))
            if "curl" in text and text not in commands] == []


@pytest.mark.parametrize("page", RUN_HERE)
def test_examples_are_answered_as_shown(page, tmp_path):
    with running() as instance:
        for example in examples.calls(page):
            examples.check(example, f"http://127.0.0.1:{instance.port}", tmp_path)
