# SPDX-License-Identifier: MIT
"""What a running instance holds of the machine, to be compared with what it held before."""

import collections
import contextlib
import os
import pathlib
import re

CGROUPS = pathlib.Path("/sys/fs/cgroup")
# folders of sessions in the tiers without namespaces, as they lie in a folder of slots
SLOT = re.compile(r"/slots/\d+$")
WRITABLE = ("home/earth", "home", "tmp", "dev/shm", "shm")


def holdings(instance):
    """Texts and how many there are of each: processes, with what each has open, and the rest."""
    held = collections.Counter()
    users = set()
    for process in instance.tree():
        with contextlib.suppress(OSError):  # it ends at this moment
            held[f"{process.program()} with {process.threads} threads, "
                 f"{_descriptors(process)} descriptors, {_mounts(process)} mounts"] += 1
        users.add(process.status("Uid"))
    held["users"] = len(users)
    held["mounts of the machine"] = sum(
        str(instance.scratch) in line
        for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines())
    held["cgroups"] = sum(1 for _ in _cgroups(instance.process.pid))
    held["files of sessions"] = sum(1 for _ in _files_of_sessions(instance))
    held["active sessions"] = instance.client.health().json["active_sessions"]
    return +held


def _descriptors(process):
    """How many it has open, but for the folders of slots: one that was used once stays open."""
    return sum(not SLOT.search(opened) for opened in process.descriptors().values())


def _mounts(process):
    """How many it has of its own; who shares ours sees others come and go."""
    namespaces = (os.readlink(f"/proc/{pid}/ns/mnt") for pid in (process.pid, "self"))
    return len(process.mounts()) if len({*namespaces}) == 2 else 0


def _cgroups(pid):
    """The cgroups below those of the process, where it is not in the root of all."""
    for line in pathlib.Path("/proc", str(pid), "cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        if path != "/":
            for place in (kinds.removeprefix("name="), "unified", "."):
                folder = CGROUPS / place / path[1:]
                if folder.is_dir():
                    yield from (found for found, folders, _ in os.walk(folder))
                    break


def _files_of_sessions(instance):
    for slot in instance.scratch.glob("*/slots/*"):
        for name in WRITABLE:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                yield from (entry for entry in (slot / name).iterdir() if entry.name != "earth")
