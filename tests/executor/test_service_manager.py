# SPDX-License-Identifier: MIT
"""What the services tell the manager that started them."""

import contextlib
import os
import pathlib
import socket
import subprocess
import time

import pytest

from support.executor import AS_IT_IS, ROOT, Executor
from support.processes import stopped
from support.service_manager import ServiceManager
from support.together import eventually

pytestmark = pytest.mark.tiers(AS_IT_IS, "confined")
BEAT = 0.2  # seconds; three of them are the interval of the watchdog


@pytest.fixture
def manager(tmp_path):
    """One that wants to hear of services that work."""
    made = ServiceManager(tmp_path / "notify", 3 * BEAT)
    tmp_path.chmod(0o711)
    yield made
    made.close()


@pytest.fixture
def launch(tier, _slots, manager):
    """A function that starts an executor below the manager, and does not wait for it."""
    def begin(**settings):
        executor = Executor(tier=tier, environment=manager.environment(), **_slots, **settings)
        stack.callback(executor.discard)
        executor.launch()
        return executor

    with contextlib.ExitStack() as stack:
        yield begin


def beats_in(manager, seconds):
    """How many beats come in so many seconds."""
    before = manager.beats()
    time.sleep(seconds)
    return manager.beats() - before


def test_an_executor_is_ready_with_its_first_sandbox(launch, manager):
    executor = launch(pool_size=2)
    tier = manager.wait_for("READY=1").splitlines()[1].removeprefix("STATUS=isolation: ")
    status = executor.status()
    assert int(status["ready"]) >= 1
    assert status["tier"] == tier
    executor.acquire().call("1")
    assert manager.messages().count(f"READY=1\nSTATUS=isolation: {tier}") == 1


def test_also_where_none_is_kept_ready(launch, manager):
    launch(pool_size=0)
    manager.wait_for("READY=1")


def test_an_executor_without_a_sandbox_is_not_ready(launch, manager):
    executor = launch(preload="no_such_module")
    eventually(lambda: "zygote_lost" in executor.messages(), within=120)
    manager.wait_for("WATCHDOG=1")
    assert not any("READY=1" in each for each in manager.messages())


def test_a_stop_is_told(launch, manager):
    executor = launch()
    manager.wait_for("READY=1")
    assert executor.stop() == 0
    assert manager.messages()[-1] == "STOPPING=1"


def test_an_executor_beats_as_long_as_its_launcher_works(launch, manager):
    executor = launch()
    manager.wait_for("READY=1")
    before = manager.beats()
    eventually(lambda: manager.beats() > before + 2)
    with stopped(executor.launcher()):
        # at last: the keeper may still have some to pass on
        eventually(lambda: beats_in(manager, 5 * BEAT) == 0)
    eventually(lambda: beats_in(manager, BEAT) > 0)
    assert executor.acquire().call("1").value == "1"


def test_a_keeper_that_does_not_work_does_not_beat(launch, manager):
    executor = launch()
    manager.wait_for("READY=1")
    with stopped(executor.keeper()):
        time.sleep(2 * BEAT)
        assert beats_in(manager, 5 * BEAT) == 0
    eventually(lambda: beats_in(manager, BEAT) > 0)


def test_no_process_but_the_keeper_can_tell(launch, manager):
    executor = launch()
    manager.wait_for("READY=1")
    sandbox = executor.acquire()
    assert sandbox.call("import os; 'NOTIFY_SOCKET' in os.environ").value == "false"
    # in the network namespace of the keeper alone; a socket without a name has no other mark
    lines = [line.split() for line in pathlib.Path("/proc/net/unix").read_text().splitlines()[1:]]
    datagrams = {f"socket:[{fields[6]}]" for fields in lines if fields[4] == "0002"}
    holders = []
    for each in executor.tree():
        with contextlib.suppress(PermissionError):
            if datagrams.intersection(each.descriptors().values()):
                holders.append(each.pid)
    assert holders == [executor.keeper().pid]


def test_a_bad_address_does_not_keep_it_from_its_work(tier, _slots):
    executor = Executor(tier=tier, environment={"NOTIFY_SOCKET": "nowhere"}, **_slots)
    try:
        executor.start()
        assert "event=service_manager_not_told" in executor.messages()
        assert executor.acquire().call("1").value == "1"
    finally:
        executor.discard()


# vivarium-fcgi

@pytest.fixture
def application(executor, manager, tmp_path):
    """A vivarium-fcgi below the manager, which is told that it is ready."""
    program = pathlib.Path(os.environ.get("VIVARIUM_BUILDDIR", ROOT / "build"), "vivarium-fcgi")
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(
            [program, "-f", os.devnull, f"--listen=unix:{tmp_path}/fcgi.sock",
             f"--executor_socket={executor.path}", "--threads=4", "--reserved_threads=1"],
            env={**os.environ, **manager.environment()}, stderr=log)
    try:
        manager.wait_for("READY=1")
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.tiers(AS_IT_IS)
def test_the_application_is_ready_when_it_listens(application, tmp_path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(tmp_path / "fcgi.sock"))
    assert application.poll() is None


@pytest.mark.tiers(AS_IT_IS)
def test_the_application_beats_as_long_as_its_main_thread_works(application, manager):
    # the main thread works once a second
    eventually(lambda: beats_in(manager, 1.5) > 0)
    with stopped(application):
        time.sleep(0.2)
        assert beats_in(manager, 2) == 0
    eventually(lambda: beats_in(manager, 1.5) > 0)


@pytest.mark.tiers(AS_IT_IS)
def test_the_application_tells_of_its_stop(application, manager):
    application.terminate()
    assert application.wait(30) == 0
    assert manager.messages()[-1] == "STOPPING=1"
