# SPDX-License-Identifier: MIT
"""The page of symptoms: the texts, events and settings that it names are those of the services."""

import re

import pytest

from docs import markdown, sources

PAGE = "docs/troubleshooting.md"
# what others say: the kernel, lighttpd, an engine
OF_OTHERS = {"Address already in use", "port is already allocated", "No space left on device"}


@pytest.fixture(scope="module")
def rows():
    """The rows of all tables."""
    found = markdown.rows(markdown.read(PAGE))
    assert len(found) > 50
    return found


def said():
    """All that the services and the web server's documents say, as one text."""
    paths = [*sources.sources("fcgi-app", "executor", "common"),
             *(markdown.ROOT / "www-conf/errors").iterdir()]
    text = " ".join(path.read_text("utf-8") for path in paths)
    return re.sub(r'"\s*"', "", text)


def test_texts_in_quotes_are_said(rows):
    everything = said()
    quoted = {text.strip() for cells in rows for text in re.findall(r'"([^"]+)"', cells[0])}
    assert len(quoted) > 10
    assert {text for text in quoted if text not in everything} == OF_OTHERS


def test_reasons_of_the_health_are_given():
    heading = "What `/health` gives as a reason"
    lines = markdown.rows(markdown.section(markdown.read(PAGE), heading))
    reasons = [cells[0].strip("`") for cells in lines if cells[0].startswith("`")]
    assert len(reasons) == 3
    assert all(reason in said() for reason in reasons)


def test_words_are_events_settings_and_error_types(rows):
    known = sources.events() | {setting.key for setting in sources.settings()} \
        | {kind for kind, _, _ in sources.error_rows()} \
        | set(re.findall(r'\] = "(\w+)"', sources.listing("executor/isolation.c", "names")))
    words = {name for cells in rows for cell in cells for name in markdown.names(cell)
             if re.fullmatch(r"[a-z]+(_[a-z]+)+", name)}
    others = {"client_max_body_size", "pids_limit", "timeout_ms"}  # nginx, Docker, a request
    assert words - known == others


def test_a_page_of_tables_has_no_empty_cell(rows):
    assert [cells for cells in rows if not all(cells)] == []


def test_the_page_for_operators_leads_to_it():
    assert "troubleshooting.md" in markdown.links(markdown.read("docs/operations.md"))
