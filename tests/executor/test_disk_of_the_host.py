# SPDX-License-Identifier: MIT
"""A host whose disk, where slots are, runs short: as far as the file system says so."""

import os
import subprocess
import tempfile
import time

import pytest

from support import wires
from support.executor import Refused
from support.must import only_root_can
from support.together import eventually

pytestmark = pytest.mark.tiers("confined")

MEGABYTE = 1 << 20


class Disk:
    """A file system of which the test says how much of it is free."""

    def __init__(self, path):
        self.path = path
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4g,mode=755", "none", path],
                       check=True)

    def used(self):
        """Bytes."""
        now = os.statvfs(self.path)
        return (now.f_blocks - now.f_bfree) * now.f_bsize

    def set_free(self, megabytes):
        """Let so much be free, whatever is in it."""
        size = self.used() + megabytes * MEGABYTE
        subprocess.run(["mount", "-o", f"remount,size={size}", self.path], check=True)

    def end(self):
        """Take it away."""
        subprocess.run(["umount", self.path], check=True)


@pytest.fixture
def disk():
    """A disk with much room."""
    only_root_can("mount something")
    with tempfile.TemporaryDirectory(prefix="viv-", dir="/var/tmp") as path:
        os.chmod(path, 0o755)
        made = Disk(path)
        yield made
        made.end()


@pytest.fixture
def begin(disk, start):
    """A function that starts an executor whose slots are on the disk."""
    def begin(**settings):
        return start(slot_directory=f"{disk.path}/slots", slots=4, min_free_disk="64M",
                     session_disk="32M", **settings)

    return begin


def test_no_new_session_when_disk_is_short(disk, begin):
    executor = begin(pool_size=0)
    kept = executor.acquire()
    disk.set_free(60)
    with pytest.raises(Refused) as refused:
        executor.acquire()
    assert refused.value.code == wires.CAPACITY and "disk" in str(refused.value)
    assert kept.call("open('f', 'w').write('here'); 1").value == "1"
    disk.set_free(200)
    assert executor.acquire().call("1").value == "1"
    assert kept.call("open('f').read()").value == '"here"'


def test_who_fills_it_is_stopped_when_it_runs_out(disk, begin):
    executor = begin(pool_size=0)
    executor.acquire().call("x = 5")
    large = executor.acquire()
    before = disk.used()
    large.channel.begin(f"open('f', 'wb').write(bytes(16 * {MEGABYTE}))\nprint('written')\n"
                        "import time; time.sleep(60)", timeout_ms=60000)
    eventually(lambda: disk.used() >= before + 16 * MEGABYTE)
    disk.set_free(60)  # short, but not by half
    time.sleep(1)
    assert "event=stopped_for_disk" not in executor.messages()
    disk.set_free(30)
    answer = large.channel.finish()
    assert (answer.outcome, answer.out) == (wires.OUT_OF_DISK, "written\n")
    assert "event=stopped_for_disk" in executor.messages()
    disk.set_free(200)
    assert executor.acquire().call("1").value == "1"
