# SPDX-License-Identifier: MIT
"""The benchmark runs to its end and tells all that it promises. How fast anything is, it may say
and no test does."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from support.must import cannot

BENCH = pathlib.Path(__file__).with_name("bench.py")
ROWS = ["client", "floor", "live_1_plus_1", "live_print", "new_pool", "new_no_pool", "bwrap",
        "job", "file_in", "file_out", "body", "recovery", "row_on", "row_off", "pause_small_on",
        "pause_small_off", "pause_10_mb_on", "pause_10_mb_off", "crash_restored", "crash_fresh",
        "health_idle", "health_busy", "refused_busy"]
FIGURES = {"live_to_floor", "live_to_floor_without_client", "bwrap_to_new_pool",
           "bwrap_to_new_no_pool", "file_in_seconds", "body_memory", "session_available",
           "session_available_spread", "session_pss", "sessions_per_second_1",
           "sessions_per_second_4", "row_on_to_off", "pause_small_more", "pause_10_mb_more",
           "checkpoint_pss", "health_busy_p99", "recovery_seconds"}
GOALS = {"live_to_floor", "bwrap_to_new_no_pool", "file_in_seconds", "body_memory",
         "session_available", "row_on_to_off", "pause_small_more", "pause_10_mb_more",
         "checkpoint_pss", "health_busy_p99", "recovery_seconds"}
# what is less by chance in a quick run
SIGNED = {"session_available", "pause_small_more", "pause_10_mb_more", "checkpoint_pss"}
# only root may read how much memory the processes of a sandbox share
OPTIONAL = set() if os.geteuid() == 0 else {"session_pss", "checkpoint_pss"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A quick run: what it printed, and its JSON."""
    if not os.environ.get("VIVARIUM_BUILDDIR"):
        cannot("VIVARIUM_BUILDDIR does not say where null_fcgi is")
    path = tmp_path_factory.mktemp("bench") / "bench.json"
    done = subprocess.run([sys.executable, "-B", BENCH, "--quick", "--json", path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    results = json.loads(path.read_text())
    missing = {key: reason for key, reason in results["missing"].items() if key not in OPTIONAL}
    if missing:
        cannot(str(missing))
    return done.stdout, results


def test_all_rows_are_there(run):
    rows = run[1]["rows"]
    assert [row["key"] for row in rows] == ROWS
    for row in rows:
        assert row["n"] >= 1
        assert 0 < row["min"] <= row["median"] <= row["p99"], row


def test_all_figures_are_there(run):
    figures = {figure["key"]: figure for figure in run[1]["figures"]}
    assert FIGURES - OPTIONAL <= set(figures) <= FIGURES
    for figure in figures.values():
        # other processes may give back more memory than the sessions take
        assert figure["value"] > 0 or figure["key"] in SIGNED, figure


def test_goals_are_judged(run):
    judged = {figure["key"]: figure for figure in run[1]["figures"]
              if figure["reached"] is not None}
    assert GOALS - OPTIONAL <= set(judged) <= GOALS
    for figure in judged.values():
        value, goal = figure["value"], figure["goal"]
        assert figure["reached"] == (value >= goal if figure["at_least"] else value <= goal)


def test_the_table_has_all_of_it(run):
    printed, results = run
    for entry in results["rows"] + results["figures"]:
        assert entry["title"] in printed


def test_a_quick_run_says_that_it_is_one(run):
    assert run[1]["quick"] is True and "quick: True" in run[0]
