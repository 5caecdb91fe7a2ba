# SPDX-License-Identifier: MIT
"""The version stands in configure.ac, and everything that tells it tells the same."""

import re

import pytest

from docs import markdown, sources
from support.server import running

VERSION = re.search(r"^AC_INIT\(\[vivarium\], \[(.*)\]\)$", markdown.read("configure.ac"),
                    re.MULTILINE)[1]
PROGRAMS = ["vivarium-fcgi", "vivarium-executor", "vivarium-zygote"]


def test_it_has_three_numbers():
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_tell_it(program):
    assert sources.run(program, "--version") == (f"{program} {VERSION}\n", 0)


@pytest.mark.parametrize("program", PROGRAMS[:2])
def test_services_tell_it_for_a_letter_too(program):
    assert sources.run(program, "-V") == (f"{program} {VERSION}\n", 0)


def test_the_health_tells_it():
    with running() as instance:
        assert instance.client.health().json["version"] == VERSION


def test_the_news_are_of_it():
    assert markdown.read("NEWS").splitlines()[0] == f"Vivarium {VERSION}"


def test_no_source_has_it_besides():
    folders = ("common", "contrib", "executor", "fcgi-app", "www-conf")
    files = [path for folder in folders for path in (markdown.ROOT / folder).rglob("*")
             if path.is_file() and path.suffix in ("", ".c", ".h", ".py", ".in", ".conf", ".yaml")]
    assert len(files) > 200
    found = [path for path in [*files, markdown.ROOT / "Makefile.am"]
             if re.search(rf"(?<![\d.]){re.escape(VERSION)}(?![\d.])",
                          path.read_text("utf-8", "replace"))]
    assert found == []
