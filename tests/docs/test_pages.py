# SPDX-License-Identifier: MIT
"""The pages as pages: their links and the files that they name are there."""

import re

import pytest

from docs import markdown

FOLDERS = "common|contrib|docs|executor|fcgi-app|tests|www-conf"
README_LINES = 120


def name_of(page):
    """A page below the root of the sources."""
    return str(page.relative_to(markdown.ROOT))


@pytest.mark.parametrize("page", markdown.PAGES, ids=name_of)
def test_relative_links_lead_somewhere(page):
    for link in markdown.links(page.read_text("utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            anchors = map(markdown.anchor, markdown.headings(target.read_text("utf-8")))
            assert anchor in anchors, link


@pytest.mark.parametrize("page", markdown.PAGES, ids=name_of)
def test_files_that_are_named_are_there(page):
    for name in re.findall(rf"`((?:{FOLDERS})/[^`\s]*)`", page.read_text("utf-8")):
        assert list(markdown.ROOT.glob(name.rstrip("/"))), name


@pytest.mark.parametrize("page", markdown.PAGES, ids=name_of)
def test_tables_are_whole(page):
    lines = ["", *markdown.prose(page.read_text("utf-8")).splitlines(), ""]
    for before, line, after in zip(lines, lines[1:], lines[2:]):
        if line.startswith("|") and not before.startswith("|"):
            assert after.startswith("|---"), line
        if line.startswith("|") and before.startswith("|"):
            cells = [len(re.findall(r"(?<!\\)\|", each)) for each in (before, line)]
            assert cells[0] == cells[1], line


def test_the_readme_is_short():
    assert len(markdown.read("README.md").splitlines()) <= README_LINES


def test_the_readme_leads_to_every_page():
    linked = set(markdown.links(markdown.read("README.md")))
    assert {name_of(page) for page in markdown.ROOT.glob("docs/*.md")} <= linked
