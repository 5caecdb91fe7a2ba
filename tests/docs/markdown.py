# SPDX-License-Identifier: MIT
"""Reading the pages of the documentation: sections, tables, code blocks, links."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted(page for places in ("*.md", "docs/*.md", "*/README.md", "contrib/*/*.md")
               for page in ROOT.glob(places))

_HEADING = re.compile(r"(#+) +(.*)")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def read(name):
    """The text of a page, a path below the root of the sources."""
    return (ROOT / name).read_text("utf-8")


def prose(text):
    """A text without its code blocks."""
    return _FENCE.sub("", text)


def blocks(text):
    """The code blocks of a text, in order: pairs of language and content."""
    return _FENCE.findall(text)


def headings(text):
    """The headings of a text."""
    return [match[2] for match in map(_HEADING.fullmatch, prose(text).splitlines()) if match]


def anchor(heading):
    """The name by which a link reaches a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def section(text, heading):
    """What stands below a heading, up to the next one of the same level or above."""
    lines, level = [], None
    for line in text.splitlines():
        match = _HEADING.fullmatch(line)
        if level is not None and match and len(match[1]) <= level:
            break
        if level is not None:
            lines.append(line)
        elif match and match[2] == heading:
            level = len(match[1])
    assert level is not None, f"there is no heading {heading!r}"
    return "\n".join(lines)


def rows(text):
    """The rows of all tables of a text, heads and rules left out: lists of cells."""
    found = []
    previous = ""
    for line in text.splitlines():
        if line.startswith("|") and not line.startswith("|---"):
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if previous.startswith("|"):
                found.append(cells)
        previous = line
    return found


def names(cell):
    """What stands in a cell between backquotes."""
    return re.findall(r"`([^`]*)`", cell)


def links(text):
    """The targets of the links of a text."""
    return re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", prose(text))
