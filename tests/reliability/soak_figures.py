# SPDX-License-Identifier: MIT
"""What an instance holds at a moment, in figures that can be compared with those of another."""

import collections
import os
import pathlib
import re

from support import processes
from support.client import fresh_id
from support.holdings import CGROUPS
from support.together import eventually, unchanged

PARTS = (processes.WEB_SERVER, processes.FCGI, processes.EXECUTOR, processes.ZYGOTE)
MEGABYTE = 1 << 20
# What a part may have more than before, of memory that is its own (PSS): arenas of malloc(3),
# of which each processor has some, keep what they had at their fullest, and a fuller moment
# than before may come at any time. The zygote shares more or less of its own with its workers.
TOLERANCE = {processes.WEB_SERVER: 16 * MEGABYTE, processes.FCGI: 48 * MEGABYTE,
             processes.EXECUTOR: 4 * MEGABYTE, processes.ZYGOTE: 64 * MEGABYTE}
SUPERVISOR_TOLERANCE = 8 * MEGABYTE


def memory(process):
    """Bytes of memory: resident, and of those its share (proc(5), smaps_rollup)."""
    text = (process.path / "smaps_rollup").read_text()
    fields = dict(re.findall(r"^(\w+): +(\d+) kB$", text, re.MULTILINE))
    return int(fields["Rss"]) * 1024, int(fields["Pss"]) * 1024


def holdings(instance):
    """What must be the same: a name and a number for each thing."""
    tree = instance.tree()
    found = {
        "processes": len(tree),
        "zombies": sum(process.state == "Z" for process in tree),
        "processes in sandboxes": sum(process.nested() for process in tree),
        "mounts of the machine": sum(
            str(instance.scratch) in line
            for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()),
        "control groups": _control_groups(instance.process.pid),
        "files of the services": sum(len(folders) + len(files) for _, folders, files
                                     in os.walk(instance.scratch)),
        "sockets with a path": sum(str(instance.scratch) in line for line in
                                   pathlib.Path("/proc/net/unix").read_text().splitlines()),
    }
    for name, process in _parts(instance):
        descriptors = process.descriptors().values()
        found[f"{name}: descriptors"] = len(descriptors)
        found[f"{name}: of these sockets"] = sum(
            opened.startswith("socket:") for opened in descriptors)
        found[f"{name}: threads"] = process.threads
        found[f"{name}: mounts"] = _own_mounts(process)
    # the last: the web server may not have closed its connection when it has answered
    found["sessions"] = instance.client.health().json["active_sessions"]
    return found


def settle(instance, within=60):
    """Wait until all sessions have ended and what is held stays the same; return that."""
    # after a loss a connection that is kept is made by the next call that needs it
    session = instance.client.session(fresh_id())
    assert session.value("1") + session.value("1") == 2
    session.end()
    eventually(lambda: not instance.client.sessions(), within=within)
    return unchanged(lambda: holdings(instance))


def sizes(instance):
    """The memory of each part: name to resident bytes and its share."""
    return {name: memory(process) for name, process in _parts(instance)}


def _parts(instance):
    """The parts outside of sandboxes, by name; of vivarium-executor there are two and more."""
    for program in PARTS:
        for number, process in enumerate(instance.parts(program)):
            yield (f"{program} {number + 1}" if number else program), process


def _own_mounts(process):
    """How many mounts it sees; 0 where it shares those of the machine, which are counted once."""
    spaces = {os.readlink(f"/proc/{pid}/ns/mnt") for pid in (process.pid, "self")}
    return len(process.mounts()) if len(spaces) == 2 else 0


def _control_groups(pid):
    """How many there are at and below those of the process."""
    count = 0
    for line in pathlib.Path("/proc", str(pid), "cgroup").read_text().splitlines():
        _, kinds, path = line.split(":", 2)
        for place in (kinds.removeprefix("name="), "unified", "."):
            folder = CGROUPS / place / path[1:]
            if path != "/" and folder.is_dir():
                count += sum(1 for _ in os.walk(folder))
                break
    return count


class Record:
    """The figures at some moments of a run, and what is wrong with them."""

    def __init__(self):
        self.held = {}      # moment -> name -> number
        self.sized = {}     # moment -> name -> (resident, share)
        self.supervisors = []  # of sessions with many calls: share when young and when old

    def take(self, moment, instance, held):
        """Note the figures of this moment, at which the instance has held this for a while."""
        self.held[moment] = held
        self.sized[moment] = sizes(instance)

    def faults(self):
        """What the last moment has that an earlier one had not; texts."""
        moments = list(self.held)
        last = self.held[moments[-1]]
        found = []
        for moment in moments[:-1]:
            for name in sorted({*last, *self.held[moment]}):
                before, after = self.held[moment].get(name), last.get(name)
                if before != after:
                    found.append(f"{name}: {before} ({moment}), {after} ({moments[-1]})")
            for name, (_, share) in self.sized[moments[-1]].items():
                grown = share - self.sized[moment].get(name, (0, 0))[1]
                if grown > TOLERANCE[name.split()[0]]:
                    found.append(f"{name}: {grown >> 20} MB more memory than {moment}")
        for young, old in self.supervisors:
            if old - young > SUPERVISOR_TOLERANCE:
                found.append(f"a supervisor: {young} bytes, {old} some calls later")
        return found

    def table(self):
        """All figures, as lines."""
        rows = [("", *self.held)]
        for name in next(iter(self.held.values())):
            rows.append((name, *(held.get(name, "-") for held in self.held.values())))
        for name in next(iter(self.sized.values())):
            for number, what in enumerate(("RSS", "PSS")):
                rows.append((f"{name}: {what} in kB", *(
                    sized[name][number] >> 10 if name in sized else "-"
                    for sized in self.sized.values())))
        for young, old in self.supervisors:
            rows.append(("a long session's supervisor: PSS in kB", young >> 10, old >> 10))
        return "\n".join(f"{row[0]:42}" + "".join(f"{figure:>16}" for figure in row[1:])
                         for row in rows)


def count_table(counts):
    """A Counter of what happened, as lines."""
    return "\n".join(f"{name:42}{count:>16}"
                     for name, count in sorted(collections.Counter(counts).items()))
