# SPDX-License-Identifier: MIT
"""Every process of the executor can be killed; what dies with it, and what does not."""

import contextlib
import os
import signal
import subprocess
import time

import pytest

from support import wires
from support.executor import AS_IT_IS, NOBODY, Refused
from support.must import only_root_can
from support.processes import all_gone, find
from support.together import at_once, eventually, in_background
from support.wires import ATTACH, CRASHED, RAN, TIMED_OUT

pytestmark = pytest.mark.tiers(AS_IT_IS, "confined")


def kill(process, number=signal.SIGKILL):
    """Send a signal to a process that is there."""
    os.kill(process.pid, number)


def works(executor):
    """A new sandbox runs code."""
    sandbox = executor.acquire()
    value = sandbox.call("6 * 7").value
    sandbox.end()
    return value == "42"


# ---- the zygote ----

def new_zygote(executor, old):
    """The zygote that came after `old`."""
    found = [each for each in executor.zygotes() if each.pid != old.pid]
    return found and found[0]


def test_sessions_outlive_the_zygote(start):
    executor = start()
    sandbox = executor.acquire()
    sandbox.call("x = 5")
    old = executor.zygote()
    kill(old)
    assert sandbox.call("x").value == "5"
    eventually(lambda: new_zygote(executor, old))
    assert sandbox.call("x").value == "5"
    assert works(executor)


def test_a_worker_comes_from_the_next_zygote(start):
    """Also when it is asked for while there is none; the call waits for it."""
    executor = start(pool_size=0)
    sandbox = executor.acquire()
    sandbox.call("open('kept', 'w').write('here')")
    kill(executor.zygote())
    assert sandbox.call("import os; os._exit(1)").outcome == CRASHED
    answer = sandbox.call("open('kept').read()")
    assert answer.value == '"here"' and answer.outcome == RAN


def test_zygotes_that_die_at_any_moment(start):
    """While workers are made: each sandbox has one worker in the end, and none is lost.

    Nor does a sandbox wait for somebody above to reap what a zygote has left in the middle of a
    fork: we are the parent of orphans here, and reap none.
    """
    executor = start(pool_size=3)
    for _ in range(6):
        pending = [in_background(executor.acquire) for _ in range(3)]
        time.sleep(0.02)
        for each in executor.zygotes():
            with contextlib.suppress(ProcessLookupError):  # what it forks for a moment
                kill(each)
        sandboxes = [each.result(60) for each in pending]
        for each in sandboxes:
            answers = [each.call("6 * 7", timeout_ms=60000) for _ in range(2)]
            # of two workers on one channel, where the first zygote died just after its fork,
            # both are replaced
            assert answers[1].value == "42" and not answers[1].lost
        for each in sandboxes:
            each.end()

    def one_worker_each():
        supervisors = executor.supervisors()
        workers = executor.workers()
        homes = {each.folder() if executor.has_slots() else each.parent
                 for each in workers if each.state not in "ZX"}
        return len(supervisors) == len(workers) == len(homes) == 3

    eventually(one_worker_each)


# ---- a sandbox ----

@pytest.mark.tiers(AS_IT_IS)
def test_orphans_in_a_sandbox_are_reaped_while_it_is_idle(sandbox):
    """As PID 1 of its namespace a supervisor has them, such as a worker whose zygote died."""
    only_root_can("start a process in a sandbox")
    supervisor = sandbox.supervisor()
    subprocess.run(["nsenter", f"--pid=/proc/{supervisor.pid}/ns/pid", "sh", "-c",
                    "sleep 1 & true"], check=True)
    orphan = eventually(lambda: next(
        (each for each in sandbox.executor.tree()
         if each.parent == supervisor.pid and each.program() == "sleep"), None))
    eventually(lambda: orphan.pid not in {each.pid for each in sandbox.executor.tree()})
    assert sandbox.call("6 * 7").value == "42"


def test_a_supervisor_that_dies_takes_its_sandbox_along(executor, canary):
    sandbox = executor.acquire()
    supervisor, worker = sandbox.supervisor(), sandbox.worker()
    kill(supervisor)
    assert sandbox.channel.is_closed()
    eventually(lambda: all_gone([supervisor, worker]))
    with pytest.raises(Refused) as refused:
        executor.ask(ATTACH, sandbox.number)
    assert refused.value.code == wires.NOT_FOUND
    assert sandbox.number not in executor.records()
    assert works(executor)


def test_a_ready_sandbox_that_dies_is_replaced(start):
    executor = start(pool_size=3)
    sandbox = executor.acquire()
    its = sandbox.supervisor().pid
    eventually(lambda: executor.status()["ready"] == "3" and len(executor.supervisors()) == 4)
    ready = [each for each in executor.supervisors() if each.pid != its]
    for each in ready:
        kill(each)
    eventually(lambda: all_gone(ready) and executor.status()["ready"] == "3")
    assert sandbox.call("1").value == "1"
    assert works(executor)


def test_end_during_a_call(executor, canary):
    sandbox = executor.acquire()
    supervisor, worker = sandbox.supervisor(), sandbox.worker()
    sandbox.channel.begin("import time; time.sleep(60)")
    executor.ask(wires.END, sandbox.number)
    with pytest.raises(wires.Gone):
        sandbox.channel.finish()
    eventually(lambda: all_gone([supervisor, worker]))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_worker_that_dies_leaves_its_files(sandbox, canary, number):
    sandbox.call("x = 5; open('kept', 'w').write('here')")
    worker = sandbox.worker()
    sandbox.channel.begin("import time; time.sleep(60)", timeout_ms=60000)
    time.sleep(0.2)
    kill(worker, number)
    answer = sandbox.channel.finish()
    assert (answer.outcome, answer.signal, answer.lost) == (CRASHED, number, True)
    assert sandbox.call("open('kept').read()").value == '"here"'
    assert sandbox.call("x").error == "NameError"


def test_a_worker_that_dies_between_calls(sandbox, canary):
    sandbox.call("x = 5; open('kept', 'w').write('here')")
    worker = sandbox.worker()
    kill(worker)
    eventually(lambda: find(worker.pid) is None)  # its supervisor has noticed
    answer = sandbox.call("open('kept').read()")
    assert answer.value == '"here"' and answer.lost
    assert not sandbox.call("1").lost


def test_a_stopped_worker_is_killed_at_its_deadline(sandbox, canary):
    worker = sandbox.worker()
    kill(worker, signal.SIGSTOP)
    answer = sandbox.call("1", timeout_ms=500, grace_ms=300)
    assert answer.outcome == TIMED_OUT and answer.lost
    assert sandbox.call("1").value == "1"


# ---- launcher and keeper ----

@pytest.fixture(params=[None, NOBODY], ids=["as it is", "an ordinary user"])
def user(request):
    """Who the executor runs as."""
    if request.param is not None:
        only_root_can("be another user")
    return request.param


def busy(executor):
    """Sandboxes in every state; the connections that keep them so."""
    running, stopped, idle = (executor.acquire() for _ in range(3))
    running.channel.begin("while True:\n    try:\n        while True: sum(range(999))\n"
                          "    except BaseException: pass", timeout_ms=300000)
    idle.call("import threading, time\n"
              "for _ in range(5): threading.Thread(target=time.sleep, args=(300,)).start()")
    kill(stopped.worker(), signal.SIGSTOP)
    waiting = executor.connect()
    waiting.send(wires.request(wires.STATUS))
    return running, stopped, idle, waiting


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_it_is_asked_to(start, user, number):
    executor = start(user=user)
    held = busy(executor)
    members = executor.tree()
    assert executor.stop(number) == 0
    assert all_gone(members)
    assert held[0].channel.is_closed()
    assert not executor.path.exists()


@pytest.mark.parametrize("part", ["keeper", "launcher"])
def test_when_it_is_killed_nothing_is_left(start, user, part):
    executor = start(user=user)
    held = busy(executor)
    members = executor.tree()
    assert len(members) >= 2 + 1 + 3 * 2
    kill(getattr(executor, part)())
    assert executor.process.wait(60) != 0
    eventually(lambda: not any(each.alive() for each in members))
    assert held[0].channel.is_closed()
    # its socket may be there still; the next one takes its place
    executor.launch()
    eventually(executor.is_ready, within=120)
    assert works(executor)


def test_a_launcher_that_is_stopped_is_only_slow(start):
    executor = start()
    sandbox = executor.acquire()
    launcher = executor.launcher()
    kill(launcher, signal.SIGSTOP)
    assert sandbox.call("6 * 7").value == "42"  # what runs does not need it
    pending = in_background(executor.acquire)
    time.sleep(1)
    assert executor.process.poll() is None and not pending.done()
    kill(launcher, signal.SIGCONT)
    assert pending.result(60).call("1").value == "1"


def test_a_launcher_that_does_not_stop_is_killed(start):
    executor = start(stop_timeout="1s")
    members = executor.tree()
    kill(executor.launcher(), signal.SIGSTOP)
    executor.stop()
    eventually(lambda: not any(each.alive() for each in members))


def test_a_second_one_is_refused(executor, canary):
    command = list(executor.process.args)
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode != 0
    assert "another vivarium-executor serves" in second.stderr
    assert works(executor)


def test_many_ends_at_once(executor, canary):
    """Sandboxes that end in every way while others start."""
    sandboxes = at_once([executor.acquire] * 12)
    supervisors = [sandbox.supervisor() for sandbox in sandboxes]

    def end(sandbox, supervisor, how):
        if how == 0:
            sandbox.end()
        elif how == 1:
            kill(supervisor)
        else:
            sandbox.call("import os; os._exit(1)")
            sandbox.end()

    ways = zip(sandboxes, supervisors, [0, 1, 2] * 4)
    at_once([lambda way=way: end(*way) for way in ways] + [lambda: works(executor)] * 4)
    assert works(executor)
    eventually(lambda: executor.status()["ready"] == "4"
               and len(executor.supervisors()) == 4 + int(executor.status()["sandboxes"]))
