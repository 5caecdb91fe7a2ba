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


def test_the_readme_is_short():
    assert len(markdown.read("README.md").splitlines()) <= README_LINES


def test_the_readme_leads_to_every_page():
    linked = set(markdown.links(markdown.read("README.md")))
    assert {name_of(page) for page in markdown.ROOT.glob("docs/*.md")} <= linked
