# SPDX-License-Identifier: MIT
"""Sandboxes without namespaces: their slots come back whatever happens, and are clean then."""

import os
import signal
import time

import pytest

from support import wires
from support.executor import Refused
from support.processes import all_gone, everything
from support.program import program
from support.together import at_once, eventually, in_background

pytestmark = pytest.mark.tiers("confined", "minimal")

WRITABLE = {"confined": ("home/earth", "tmp", "dev/shm"), "minimal": ("home", "tmp", "shm")}


def refusal(executor):
    """The code with which a sandbox is refused; None when it is not."""
    try:
        executor.acquire().end()
    except Refused as refused:
        return refused.code
    return None


def of_slots(executor):
    """The processes of all sessions; in `confined` whoever is one of their users, anywhere."""
    if executor.tier.isolation == "minimal":
        running = executor.process.poll() is None
        return executor.supervisors() + executor.workers() if running else []
    first = int(executor.settings["slot_uid_base"]) + 2
    users = range(first, first + 2 * int(executor.settings["slots"]))
    return [each for each in everything()
            if set(map(int, (each.status("Uid") or "0").split())) & set(users)]


def left(executor):
    """What is in the folders that sessions may write to."""
    return [name for slot in executor.slots.iterdir()
            for place in WRITABLE[executor.tier.isolation] if (slot / place).is_dir()
            for name in (slot / place).iterdir()]


# ---- as many as there are ----

def test_more_sessions_than_slots_is_capacity(start):
    executor = start(slots=3, pool_size=2)
    taken = [executor.acquire() for _ in range(3)]
    assert refusal(executor) == wires.CAPACITY
    taken.pop().end()
    taken.append(executor.acquire())
    assert refusal(executor) == wires.CAPACITY
    assert [each.call("6 * 7").value for each in taken] == ["42"] * 3


def test_sessions_that_come_and_go_share_few_slots(start):
    executor = start(slots=2, pool_size=0)

    def live():
        sandbox = eventually(lambda: acquired(executor), within=60)
        value = sandbox.call("open('file', 'w').write('x'); os = __import__('os'); "
                             "os.listdir()").value
        sandbox.end()
        return value

    assert at_once([live] * 12) == ['["file"]'] * 12


def acquired(executor):
    """A sandbox, or None where there is no room."""
    try:
        return executor.acquire()
    except Refused as refused:
        assert refused.code == wires.CAPACITY
        return None


# ---- clean ----

MANY_FILES = program("""
    import os
    for number in range(2500):
        open(f"file{number}", "w").close()
        open(f"/tmp/file{number}" if os.getcwd() == "/home/earth" else f"../tmp/file{number}",
             "w").close()
    here = os.getcwd()
    for _ in range(100):
        os.mkdir("deep")
        os.chdir("deep")
    open(".hidden", "w").close()
    os.chdir(here)
    os.mkdir("locked")
    open("locked/file", "w").close()
    os.symlink("/", "link")
    folder = os.open("locked", os.O_RDONLY)
    os.fchmod(folder, 0)
""")
LISTING = "import os; [os.listdir(), os.listdir(os.environ.get('TMPDIR', '/tmp'))]"


def test_what_a_session_left_is_gone(start):
    executor = start(slots=1, pool_size=0)
    sandbox = executor.acquire()
    assert sandbox.call(LISTING).value.replace(" ", "") == "[[],[]]"
    answer = sandbox.call(MANY_FILES)
    assert (answer.outcome, answer.error) == (wires.RAN, None)
    sandbox.end()
    again = eventually(lambda: acquired(executor), within=60)
    assert again.call(LISTING).value.replace(" ", "") == "[[],[]]"
    assert left(executor) == []


def test_when_it_stops_the_slots_are_empty(start):
    executor = start(pool_size=2)
    sandboxes = [executor.acquire() for _ in range(3)]
    for each in sandboxes:
        assert each.call("open('file', 'w').write('secret')").error is None
    sandboxes[0].channel.begin("while True: pass")
    assert len(left(executor)) == 3
    members = executor.tree()
    assert executor.stop(signal.SIGTERM) == 0
    assert all_gone(members) and not of_slots(executor)
    assert left(executor) == []


# ---- what dies ----

def test_a_supervisor_that_is_killed_takes_its_worker_along(start):
    executor = start(slots=1, pool_size=0)
    for _ in range(5):
        sandbox = eventually(lambda: acquired(executor))
        supervisor, worker = sandbox.supervisor(), sandbox.worker()
        sandbox.channel.begin("while True: pass")
        os.kill(supervisor.pid, signal.SIGKILL)
        eventually(lambda gone=(supervisor, worker): all_gone(gone))
        assert sandbox.channel.is_closed()
    assert eventually(lambda: acquired(executor)).call("6 * 7").value == "42"


def test_how_a_worker_ended_is_told_however_soon(start):
    """Its parent is the launcher, who may hear of its end before it hears whose it was."""
    executor = start(pool_size=0)
    sandbox = executor.acquire()
    for number in range(20):
        answer = sandbox.call(f"import os; os._exit({number})")
        assert (answer.outcome, answer.signal, answer.status) == (wires.CRASHED, 0, number)
        worker = sandbox.worker()
        assert not any(each.pid == worker.pid and each.state in "ZX" for each in everything())


def test_a_zygote_that_dies_leaves_no_process_behind(start):
    """At whatever moment: of a worker that it did not tell of, the launcher is the parent."""
    executor = start(pool_size=0, slots=4)
    for number in range(36):
        pending = [in_background(lambda: eventually(lambda: acquired(executor), within=60))
                   for _ in range(3)]
        time.sleep(number % 12 / 400)
        for each in executor.zygotes():
            os.kill(each.pid, signal.SIGKILL)
        sandboxes = [each.result(120) for each in pending]
        if number % 6 == 0:
            for each in sandboxes:
                # of two workers on one channel both are replaced, and the call is lost
                answers = [each.call("6 * 7", timeout_ms=60000) for _ in range(2)]
                assert answers[1].value == "42" and not answers[1].lost
        for each in sandboxes:
            each.end()
    eventually(lambda: not of_slots(executor))
    assert len(executor.zygotes()) <= 2


def test_without_its_janitor_it_ends(start):
    executor = start()
    sandbox = executor.acquire()
    members = executor.tree()
    os.kill(executor.janitor().pid, signal.SIGKILL)
    assert executor.process.wait(60) != 0
    assert "event=janitor_lost" in executor.messages()
    assert "event=executor_stops" in executor.messages()
    eventually(lambda: not any(each.alive() for each in members))
    assert not of_slots(executor)
    assert sandbox.channel.is_closed()


# ---- the disk ----

def test_who_fills_the_disk_is_stopped(start):
    executor = start(session_disk="4M", pool_size=1)
    sandbox = executor.acquire()
    sandbox.call("x = 5; open('kept', 'w').write('here')")
    answer = sandbox.call("import time\n"
                          "for number in range(6):\n"
                          "    open(f'f{number}', 'wb').write(bytes(1 << 20))\n"
                          "time.sleep(60)", timeout_ms=60000)
    assert (answer.outcome, answer.lost) == (wires.OUT_OF_DISK, True)
    assert sandbox.call("open('kept').read()").value == '"here"'
    # what was there at that stop is accepted, more is not
    assert sandbox.call("import os, time; time.sleep(1); os.path.getsize('f5')").value == "1048576"
    assert sandbox.call("open('more', 'wb').write(bytes(1 << 20))\n"
                        "time = __import__('time'); time.sleep(60)",
                        timeout_ms=60000).outcome == wires.OUT_OF_DISK


def test_files_that_cannot_be_looked_at_count(start):
    """Where the supervisor may not change that, they are as good as too many."""
    executor = start(session_disk="4M", pool_size=1)
    sandbox = executor.acquire()
    answer = sandbox.call("import os, time\n"
                          "os.mkdir('hidden')\n"
                          "os.fchmod(os.open('hidden', os.O_RDONLY), 0o300)\n"
                          "for number in range(3):\n"
                          "    open(f'hidden/f{number}', 'wb').write(bytes(2 << 20))\n"
                          "time.sleep(60)", timeout_ms=60000)
    assert answer.outcome == wires.OUT_OF_DISK
    if executor.tier.isolation == "minimal":
        eventually(sandbox.channel.is_closed)
    else:
        assert sandbox.call("import os; len(os.listdir('hidden'))").value == "3"


def test_who_goes_on_filling_it_is_ended(start):
    executor = start(session_disk="4M", pool_size=1)
    sandbox = executor.acquire()
    with pytest.raises((wires.Gone, BrokenPipeError)):
        sandbox.call("open('f', 'wb').write(bytes(4 << 20))")
        for number in range(10):
            answer = sandbox.call(f"open('f{number}', 'wb').write(bytes(2 << 20))\n"
                                  "__import__('time').sleep(60)", timeout_ms=60000)
            assert answer.outcome == wires.OUT_OF_DISK
    assert "fills the disk" in executor.messages()
