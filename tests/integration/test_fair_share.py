# SPDX-License-Identifier: MIT
"""Processors that are short: sessions share them, and the services come before sessions."""

import os
import pathlib
import time

from support.must import few_can, not_with_slots, only_root_can
from support.processes import EXECUTOR, FCGI, WEB_SERVER
from support.together import in_background

GREEDY_THREADS = 30

# hashing lets other threads of Python run
SPIN = """
import hashlib, threading, time
block, end = bytes(1 << 20), time.monotonic() + 4
def spin():
    while time.monotonic() < end:
        hashlib.sha256(block).digest()
before = time.process_time()
threads = [threading.Thread(target=spin) for _ in range({threads})]
for thread in threads: thread.start()
for thread in threads: thread.join()
time.process_time() - before
"""


def grouped_by_session():
    """Whether the kernel's scheduler makes a group of each session by itself: sched(7)."""
    setting = pathlib.Path("/proc/sys/kernel/sched_autogroup_enabled")
    groups = pathlib.Path("/proc/self/cgroup").read_text().splitlines()
    of_cpu = [line.split(":", 2) for line in groups]
    own = [path for _, controllers, path in of_cpu if "cpu" in controllers.split(",")]
    return setting.exists() and setting.read_text().strip() == "1" and own in ([], ["/"])


def nice_value_of_group(process):
    return int((process.path / "autogroup").read_text().rpartition(" ")[2])


def test_threads_are_no_votes(new_session):
    if not grouped_by_session():
        few_can("the scheduler makes no groups by itself here")
    greedy, modest = new_session(), new_session()
    assert greedy.exec("1").success and modest.exec("1").success
    calls = [in_background(lambda: greedy.value(SPIN.format(threads=GREEDY_THREADS))),
             in_background(lambda: modest.value(SPIN.format(threads=1)))]
    most, least = (call.result(120) for call in calls)
    assert most < least * GREEDY_THREADS / 3


def test_health_and_other_calls_while_all_processors_are_busy(client, new_session):
    busy = [new_session() for _ in range(2 * os.cpu_count())]
    session = new_session()
    assert all(each.exec("1").success for each in [*busy, session])
    calls = [in_background(lambda s=each: s.exec(SPIN.format(threads=4))) for each in busy]
    time.sleep(0.5)
    for _ in range(10):
        began = time.monotonic()
        assert client.health().status == 200
        assert session.exec("1").success
        assert time.monotonic() - began < 3
    assert not any(call.done() for call in calls), "they were to be busy all the while"
    assert all(call.result(120).success for call in calls)


def test_the_services_come_first_where_nice_values_count_in_a_group_only(server, new_session):
    if not grouped_by_session():
        few_can("the scheduler makes no groups by itself here")
    only_root_can("have its group come first")
    not_with_slots("there root may not, either")
    worker = server.worker_of(new_session())
    assert nice_value_of_group(worker) == 0
    for program in (WEB_SERVER, FCGI, EXECUTOR):
        assert nice_value_of_group(server.part(program)) == -10


def test_workers_give_way(server, new_session):
    session = new_session()
    worker = server.worker_of(session)
    ours = os.getpriority(os.PRIO_PROCESS, server.part(FCGI).pid)
    assert os.getpriority(os.PRIO_PROCESS, worker.pid) == min(ours + 10, 19)
    for attempt in ("os.nice(-1)", "os.setpriority(os.PRIO_PROCESS, 0, 0)"):
        assert session.exec(f"import os\n{attempt}").error_type == "PermissionError"
    assert os.getpriority(os.PRIO_PROCESS, worker.pid) == min(ours + 10, 19)
