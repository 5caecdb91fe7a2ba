# SPDX-License-Identifier: MIT
"""The tables of system calls in docs/security.md, read."""

from docs import markdown

PAGE = "docs/security.md"


def section():
    """The text that the tables stand in."""
    return markdown.section(markdown.read(PAGE), "The system calls")


def table(title):
    """The rows of one table: lists of cells."""
    return markdown.rows(section().split(f"**{title}**")[1].split("\n**")[0])


def words(lines, column):
    """The words of a column of rows."""
    return [word for cells in lines for word in cells[column].split()]


def allowed():
    """The calls of a worker that are allowed whatever their arguments are."""
    return words(table("Allowed"), 1)


def allowed_with_arguments():
    """The calls of a worker that are allowed with certain arguments."""
    return words(table("Allowed with certain arguments"), 0)


def refused_with_an_error():
    """The calls, or words for several, that do not fail with EPERM: name to the error's name."""
    lines = table("Refused with an error that libraries expect")
    return {name: cells[1] for cells in lines for name in cells[0].split()}


def refused_without_namespaces():
    """The calls that the tiers without namespaces refuse besides, some with certain arguments
    only: name to the error's name."""
    lines = table("Refused besides in the tiers confined and minimal")
    return {name: cells[1] for cells in lines for name in cells[0].split()}


def refused_by_path():
    """The calls that the tier minimal refuses, where they are given a path."""
    return words(table("Refused besides in the tier minimal"), 0)


def of_the_supervisor():
    """The calls of the supervisor: name to the arguments that they may have, or ""."""
    return {name: cells[2] for cells in table("Allowed to the supervisor")
            for name in cells[1].split()}
