# SPDX-License-Identifier: MIT
"""What prepare() and begin() make: the interpreter that a session finds."""

import json
import os
import subprocess

import pytest

from conftest import EXECUTOR, HERE, MODULES, PYTHON, Worker


def prepare_alone(modules, before=""):
    """Run prepare() in an interpreter of its own and return (status, standard error)."""
    code = (f"import sys; sys.path.insert(0, {str(HERE)!r})\n{before}\nimport worker_main\n"
            f"worker_main.load({str(EXECUTOR)!r}).prepare({modules!r})")
    child = subprocess.run([PYTHON, "-I", "-B", "-c", code], capture_output=True, text=True,
                           timeout=60, check=False)
    return child.returncode, child.stderr


def test_a_missing_module_is_an_import_error():
    status, errors = prepare_alone(["no_such_module"])
    assert status == 1 and "ModuleNotFoundError: No module named 'no_such_module'" in errors


def test_a_module_that_starts_a_thread_is_refused(tmp_path):
    (tmp_path / "busy.py").write_text("import threading, time\n"
                                      "threading.Thread(target=time.sleep, args=(1,)).start()")
    status, errors = prepare_alone(["busy"], f"sys.path.insert(0, {str(tmp_path)!r})")
    assert status == 1 and "RuntimeError: importing the modules has started 1 threads" in errors


def test_the_libraries_have_started_no_threads(full_zygote):
    """Numexpr and OpenBLAS would, and the variables that stop them are not set here."""
    assert len(os.listdir(f"/proc/{full_zygote.process.pid}/task")) == 1


@pytest.mark.parametrize("name", ["pip", "ensurepip", "setuptools", "pkg_resources", "wheel",
                                  "_distutils_hack", "pip._internal", "setuptools.command"])
def test_what_is_not_provided_cannot_be_imported(full_worker, name):
    assert full_worker.run(f"import {name}").error == "ModuleNotFoundError"
    assert full_worker.value("import importlib.util\n"
                             f"importlib.util.find_spec({name.partition('.')[0]!r})") is None


def test_no_finder_is_left_of_what_is_not_provided(worker):
    assert worker.value("import sys\n[f for f in sys.meta_path if 'distutils' in str(f)]") == []


def test_sys_is_that_of_an_interactive_interpreter(worker):
    assert worker.value("import sys\n[sys.argv, sys.path[0]]") == [[""], ""]


def test_temporary_files_go_where_the_session_has_room(worker):
    assert worker.value("import tempfile; tempfile.gettempdir()") == str(worker.home)


CHANCE = ("import random, uuid, tempfile, os\n"
          "[random.random(), str(uuid.uuid4()), tempfile.mktemp(), os.urandom(8).hex()]")


def test_chance_differs_between_sessions(full_zygote, tmp_path):
    seen = []
    for _ in range(2):
        worker = Worker(full_zygote, tmp_path)
        seen += worker.value(CHANCE)
        seen += worker.value("[float(np.random.rand()), float(np.random.normal()),"
                             " float(np.random.default_rng().random())]")
        worker.close()
    assert len(set(seen)) == len(seen) == 14


def test_a_seed_gives_what_it_gives_everywhere(full_worker):
    values = full_worker.value("import random\nnp.random.seed(0); random.seed(0)\n"
                               "[float(np.random.rand()), random.random()]")
    assert values == [0.5488135039273248, 0.8444218515250481]


def test_the_first_call_is_number_one_and_sees_nothing_of_a_trial(worker):
    result = worker.run("import linecache, inspect\n[inspect.currentframe().f_code.co_filename,"
                        " [n for n in linecache.cache if n.startswith('<exec')]]")
    assert result.value == ["<exec-1>", ["<exec-1>"]]
    assert (result.out, result.err) == ("", "")


STATE = """
import warnings, json, matplotlib, matplotlib.units, matplotlib.pyplot as plt, pandas as pd
print(json.dumps({
    'rcParams': {k: repr(v) for k, v in matplotlib.rcParams.items()},
    'backend': matplotlib.get_backend(),
    'figures': plt.get_fignums(),
    'units': sorted(map(repr, matplotlib.units.registry)),
    'filters': list(map(repr, warnings.filters)),
    'options': {k: repr(pd.get_option(k)) for k in pd._config.config._registered_options},
    'interactive': plt.isinteractive(),
}))"""


def test_the_warm_up_leaves_nothing_that_code_can_see(full_worker):
    plain = subprocess.run(
        [PYTHON, "-I", "-B", "-c", "import matplotlib; matplotlib.use('agg'); import numpy, pandas"
         + STATE], capture_output=True, text=True, timeout=60, check=True)
    assert json.loads(full_worker.run(STATE).out) == json.loads(plain.stdout)


def test_a_backend_of_the_environment_does_not_matter(full_worker):
    assert full_worker.value("plt.get_backend().lower()") == "agg"


def test_all_modules_are_loaded(full_worker):
    assert full_worker.value(f"import sys\n[m in sys.modules for m in {MODULES!r}]") == [True] * 3


def test_a_plain_call_imports_and_opens_nothing(worker):
    """Audit events are what a call does beside computing."""
    worker.run("import sys\nevents = []\n"
               "sys.addaudithook(lambda event, args: events.append(event))")
    worker.run("1 + 1")
    events = worker.value("[e for e in events if e not in ('compile', 'exec')]")
    assert [e for e in events if e.partition(".")[0] in ("import", "open", "socket", "os")] == []


def test_many_calls_take_little_time_and_leave_nothing(worker):
    worker.run("import gc; gc.collect(); before = len(gc.get_objects())")
    for _ in range(1000):
        assert worker.run("x = 1\nx + 1").json == b"2"
    # what stays is the source of each call, in the cache and in the runner
    assert worker.value("gc.collect(); (len(gc.get_objects()) - before) // 1000") <= 4
