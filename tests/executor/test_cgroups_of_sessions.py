# SPDX-License-Identifier: MIT
"""Limits by cgroups, where the cgroup that the tests run in gives its children the controllers.

A test lowers the limit of one session, so that code which its other limits let through meets it.
"""

import contextlib
import itertools
import os
import pathlib
import signal

import pytest

from support.executor import Executor
from support.must import few_can
from support.program import program
from support.together import eventually
from support.wires import CRASHED, OUT_OF_MEMORY, RAN

MEGABYTE = 1 << 20
CONTROLLERS = {"memory", "pids", "cpu"}
SETTINGS = {"min_isolation": "full", "pool_size": 1}

BIG = program(f"""
    kept = bytearray(40 * {MEGABYTE})
    for _at in range(0, len(kept), 4096):
        kept[_at] = 1
""")
BOMB = program("""
    import threading
    _go, _threads = threading.Event(), []
    try:
        while True:
            _threads.append(threading.Thread(target=_go.wait))
            _threads[-1].start()
    finally:
        _go.set()
""")

numbers = itertools.count()


def hierarchy():
    """Where cgroups of version 2 are mounted; None where they are not."""
    for line in pathlib.Path("/proc/mounts").read_text("ascii").splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            return pathlib.Path(place)
    return None


def cgroup_of(pid):
    """The cgroup of a process."""
    for line in pathlib.Path(f"/proc/{pid}/cgroup").read_text("utf-8").splitlines():
        if line.startswith("0::"):
            return pathlib.Path(f"{hierarchy()}{line[3:]}")
    raise AssertionError(f"no cgroup of process {pid}")


def below(group):
    """All groups below one, the innermost first."""
    return [pathlib.Path(place) for place, *_ in os.walk(group, topdown=False)][:-1]


class InGroup(Executor):
    """An executor that is started in a cgroup of its own."""

    def __init__(self, group, **settings):
        super().__init__(limits={None: None}, **settings)
        self.group = group

    def _limit(self):
        (self.group / "cgroup.procs").write_text("0", "ascii")


@pytest.fixture
def group():
    """A cgroup of the test's own with the controllers, without a process. It must end as such."""
    if hierarchy() is None:
        few_can("no cgroups of version 2")
    path = cgroup_of(os.getpid()) / f"viv-test-{os.getpid()}-{next(numbers)}"
    try:
        path.mkdir()
    except OSError as error:
        few_can(f"no cgroup can be made: {error}")
    try:
        if not CONTROLLERS <= set((path / "cgroup.controllers").read_text("ascii").split()):
            few_can("the cgroup of the tests gives no controllers on")
        yield path
        assert below(path) == []
    finally:
        for each in [*below(path), path]:
            each.rmdir()


@pytest.fixture
def start_full(group):
    """A function that starts an executor there."""
    with contextlib.ExitStack() as stack:
        def start(**settings):
            executor = InGroup(group, **{**SETTINGS, **settings})
            stack.callback(executor.discard)
            return executor.start()
        yield start


def limits_of(sandbox):
    """The cgroup with the limits of a sandbox, and no slowing down below that of memory."""
    worker = cgroup_of(sandbox.worker().pid)
    assert worker.name == "worker"
    (worker.parent / "memory.high").write_text("max", "ascii")
    return worker.parent


def lower(limits, resource, more):
    """Lower a limit to so much more than what is in use."""
    current = int((limits / f"{resource}.current").read_text("ascii"))
    (limits / f"{resource}.max").write_text(str(current + more), "ascii")


def test_who_is_killed_for_memory_hears_it_and_keeps_the_files(start_full):
    executor = start_full()
    sandbox, other = executor.acquire(), executor.acquire()
    other.call("x = 5")
    sandbox.call("x = 1\nopen('kept.txt', 'w').write('here')")
    lower(limits_of(sandbox), "memory", 16 * MEGABYTE)
    for _ in range(2):
        answer = sandbox.call("print('so far', flush=True)\n" + BIG)
        assert (answer.outcome, answer.signal) == (OUT_OF_MEMORY, signal.SIGKILL)
        assert answer.lost
        assert answer.out == "so far\n"
        answer = sandbox.call("(open('kept.txt').read(), 'x' in globals())")
        assert (answer.outcome, answer.value) == (RAN, '["here",false]')
    # What the kernel counted is not held against a worker that ends in another way.
    assert sandbox.call("import os; os._exit(3)").outcome == CRASHED
    assert other.call("x").value == "5"
    assert "event=worker_not_started" not in executor.messages()


def test_threads_beyond_the_limit_are_an_exception(start_full):
    sandbox = start_full().acquire()
    limits = limits_of(sandbox)
    lower(limits, "pids", 3)
    answer = sandbox.call(BOMB)
    assert (answer.outcome, answer.error) == (RAN, "RuntimeError")
    assert (limits / "pids.events").read_text("ascii") != "max 0\n"
    assert sandbox.call("2 + 2").value == "4"


def test_processor_time_is_limited_if_that_is_asked_for(start_full):
    executor = start_full(session_cpus=2)
    limits = limits_of(executor.acquire())
    assert (limits / "cpu.max").read_text("ascii") == "200000 100000\n"


def test_no_group_outlives_its_sandbox(start_full, group):
    executor = start_full()
    for _ in range(3):
        for sandbox in [executor.acquire() for _ in range(3)]:
            sandbox.call("open('f', 'w').write('x' * 1000)")
            sandbox.end()
    # The one that is kept ready stays.
    eventually(lambda: len([path for path in below(group) if path.name == "worker"]) == 1)
    assert executor.stop() == 0
    assert below(group) == []
    assert (group / "cgroup.subtree_control").read_text("ascii").split() == []


def test_nothing_runs_on_in_the_groups_of_a_keeper_that_was_killed(start_full, group):
    executor = start_full()
    executor.acquire().call("1")
    executor.stop(signal.SIGKILL)
    eventually(lambda: "populated 0" in (group / "cgroup.events").read_text("ascii"))
    for path in below(group):
        path.rmdir()
