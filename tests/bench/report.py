# SPDX-License-Identifier: MIT
"""The results of a run: rows of times, figures held against a goal, a table and JSON."""

import dataclasses
import math
import statistics


@dataclasses.dataclass
class Row:
    """Times of one kind of call, in milliseconds."""

    key: str
    title: str
    n: int
    min: float
    median: float
    p99: float  # by nearest rank, so the maximum where n is below 100

    @classmethod
    def of(cls, key, title, samples):
        """The row of some samples."""
        ordered = sorted(samples)
        rank = math.ceil(0.99 * len(ordered)) - 1
        return cls(key, title, len(ordered), ordered[0], statistics.median(ordered),
                   ordered[rank])


@dataclasses.dataclass
class Figure:
    """One number. `goal` is the most that it should be, or with `at_least` the least."""

    key: str
    title: str
    unit: str
    value: float
    goal: float | None = None
    at_least: bool = False

    def reached(self):
        """Whether the goal is reached; None where there is none."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal


class Report:
    """All rows, figures and what could not be measured, in the order in which they came."""

    def __init__(self, about):
        self.about = about
        self.rows = {}
        self.figures = {}
        self.missing = {}

    def row(self, key, title, samples):
        """Add the times of one kind of call."""
        self.rows[key] = Row.of(key, title, samples)

    def figure(self, *arguments, **options):
        """Add a number; as Figure."""
        figure = Figure(*arguments, **options)
        self.figures[figure.key] = figure

    def ratio(self, key, title, above, below, **options):
        """Add the ratio of two rows' medians."""
        self.figure(key, title, "x", self.rows[above].median / self.rows[below].median, **options)

    def leave_out(self, key, reason):
        """Say that something cannot be measured here."""
        self.missing[key] = reason

    def json(self):
        """All of it, for json.dump."""
        return {
            **self.about,
            "rows": [dataclasses.asdict(row) for row in self.rows.values()],
            "figures": [{**dataclasses.asdict(figure), "reached": figure.reached()}
                        for figure in self.figures.values()],
            "missing": self.missing,
        }

    def table(self):
        """The text for a reader."""
        lines = [", ".join(f"{key}: {value}" for key, value in self.about.items()), "",
                 f"{'milliseconds':50} {'n':>6} {'min':>9} {'median':>9} {'p99':>9}"]
        for row in self.rows.values():
            lines.append(f"{row.title:50} {row.n:6} {row.min:9.3f} {row.median:9.3f}"
                         f" {row.p99:9.3f}")
        lines += ["", f"{'figures':64} {'value':>9}       goal"]
        for figure in self.figures.values():
            lines.append(f"{figure.title:64} {figure.value:9.2f} {figure.unit:4}"
                         f" {self._goal(figure)}".rstrip())
        lines += [f"{key}: not measured: {reason}" for key, reason in self.missing.items()]
        return "\n".join(lines)

    @staticmethod
    def _goal(figure):
        if figure.goal is None:
            return ""
        return (f"{'>=' if figure.at_least else '<='} {figure.goal:g}"
                f"{'' if figure.reached() else '  MISSED'}")
