# SPDX-License-Identifier: MIT
"""A host that runs short of memory, as far as /proc/meminfo says so."""

import time

import pytest

from support import wires
from support.executor import Refused
from support.must import not_with_slots, only_root_can
from support.together import eventually
from support.wires import OUT_OF_MEMORY, RAN

MEGABYTE = 1 << 20


class Host:
    """An executor on a host of which the test says how much memory is free."""

    def __init__(self, start, path):
        self.path = path
        self.set_free(8000)
        self.executor = start(meminfo=path, pool_size=1, min_free_memory="1000M")

    def set_free(self, megabytes):
        """What is free from now on. The file stays the same: it is mounted."""
        with open(self.path, "w", encoding="ascii") as meminfo:
            meminfo.write(f"MemTotal:       16000000 kB\nMemAvailable:   {megabytes * 1024} kB\n")


@pytest.fixture
def host(start, tmp_path):
    """A host with much free memory."""
    only_root_can("mount something in place of /proc/meminfo")
    return Host(start, tmp_path / "meminfo")


def test_no_new_session_when_memory_is_short(host):
    kept = host.executor.acquire()
    host.set_free(999)
    with pytest.raises(Refused) as refused:
        host.executor.acquire()
    assert refused.value.code == wires.CAPACITY and "memory" in str(refused.value)
    assert kept.call("1").value == "1"
    host.set_free(1001)
    assert host.executor.acquire().call("1").value == "1"


def test_the_largest_is_stopped_when_it_runs_out(host):
    small, large, idle = (host.executor.acquire() for _ in range(3))
    idle.call("x = 5")
    small.channel.begin("import time; time.sleep(60)", timeout_ms=60000)
    large.call("open('kept', 'w').write('here')")
    large.channel.begin(f"print('so far')\nkept = bytearray(200 * {MEGABYTE})\n"
                        "open('made', 'w').close()\nimport time; time.sleep(60)", timeout_ms=60000)
    eventually(lambda: any(each.memory() > 200 * MEGABYTE for each in host.executor.workers()))
    host.set_free(501)  # short, but not by half
    time.sleep(1)
    assert "event=stopped_for_memory" not in host.executor.messages()
    host.set_free(499)
    answer = large.channel.finish()
    host.set_free(8000)
    assert answer.outcome == OUT_OF_MEMORY and answer.lost
    assert answer.out == "so far\n" and answer.files == {"made": b""}
    first = next(line for line in host.executor.messages().splitlines()
                 if "event=stopped_for_memory" in line)
    assert f"sandbox={large.number} " in first
    after = large.call("open('kept').read()")
    assert after.value == '"here"' and after.outcome == RAN and not after.lost


def test_an_idle_session_is_stopped_like_a_running_one(host):
    """It says so in its next call."""
    sandbox = host.executor.acquire()
    sandbox.call(f"kept = bytearray(100 * {MEGABYTE})")
    host.set_free(100)
    eventually(lambda: "event=stopped_for_memory" in host.executor.messages())
    host.set_free(8000)
    answer = sandbox.call("1")
    assert answer.outcome == RAN and answer.value == "1" and answer.lost


def is_copied(sandbox):
    """Whether a checkpoint of it has been made, after a pause that is enough for one."""
    time.sleep(0.3)
    return sandbox.call("0").checkpoint != 0


def test_one_that_runs_goes_on_from_its_checkpoint(host):
    not_with_slots("without a PID namespace no checkpoints are made")
    sandbox = host.executor.acquire()
    sandbox.call("x = [1]")
    eventually(lambda: is_copied(sandbox))
    sandbox.channel.begin(f"x.append(2); kept = bytearray(200 * {MEGABYTE})\n"
                          "import time; time.sleep(60)", timeout_ms=60000)
    eventually(lambda: any(each.memory() > 200 * MEGABYTE for each in host.executor.workers()))
    host.set_free(499)
    answer = sandbox.channel.finish()
    host.set_free(8000)
    assert answer.outcome == OUT_OF_MEMORY
    assert answer.restored_to == answer.checkpoint != 0
    after = sandbox.call("x")
    assert (after.value, after.lost, after.restored_to) == ("[1]", False, 0)


def test_one_that_is_idle_does_not_for_its_copy_has_the_same(host):
    not_with_slots("without a PID namespace no checkpoints are made")
    sandbox = host.executor.acquire()
    sandbox.call(f"kept = bytearray(100 * {MEGABYTE})")
    eventually(lambda: is_copied(sandbox))
    host.set_free(100)
    eventually(lambda: "event=stopped_for_memory" in host.executor.messages())
    host.set_free(8000)
    eventually(lambda: not any(each.parked() for each in host.executor.tree()))
    answer = sandbox.call("'kept' in globals()")
    assert (answer.outcome, answer.value) == (RAN, "false")
    assert (answer.lost, answer.restored_to) == (True, 0)


def test_where_there_is_nothing_to_stop_it_goes_on(host):
    host.set_free(1)
    time.sleep(1)
    assert host.executor.status()["ready"] == "1"
    host.set_free(8000)
    assert host.executor.acquire().call("1").value == "1"


def test_files_count_and_a_sandbox_that_is_mostly_files_is_ended(host):
    """They would outlive its worker."""
    full, other = host.executor.acquire(), host.executor.acquire()
    other.call("x = 5")
    full.call(f"open('large', 'wb').write(bytes(150 * {MEGABYTE}))")
    host.set_free(100)
    eventually(lambda: "event=stopped_for_memory" in host.executor.messages())
    host.set_free(8000)
    first = next(line for line in host.executor.messages().splitlines()
                 if "event=stopped_for_memory" in line)
    assert f"sandbox={full.number} " in first
    eventually(lambda: host.executor.status()["sandboxes"] == "1")
    answer = other.call("x")
    assert answer.value == "5" and not answer.lost
