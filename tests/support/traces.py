# SPDX-License-Identifier: MIT
"""What a running instance has on the machine, to be looked for when it has ended."""

import os
import pathlib
import re

from . import processes
from .server import ROOT

# the parts' names as the kernel keeps them; none is ever a child of the tests but as an orphan
PARTS = {name[:15] for name in (
    processes.WEB_SERVER, processes.FCGI, processes.EXECUTOR, processes.ZYGOTE)}
# where an instance may put what does not last
PASSING = ("/tmp/", "/var/tmp/", "/dev/shm/", "/run/", "/var/run/")


class Traces:
    """Processes, namespaces, files and mounts of an instance, as they are when this is made."""

    def __init__(self, instance):
        self.instance = instance
        self.members = instance.tree()
        self.made = processes.now()
        own = processes.find(os.getpid()).namespaces()
        self.namespaces = {
            name for member in self.members for name in member.namespaces()} - own
        self.paths = {path for member in self.members for path in _paths_of(member)
                      if path.startswith(PASSING) and not self._belongs_to_others(path)}

    def _belongs_to_others(self, path):
        """True for the build tree and for what the test itself keeps of the instance."""
        build = os.environ.get("VIVARIUM_BUILDDIR", "")
        kept = [str(ROOT), str(self.instance.log), *([os.path.realpath(build)] if build else [])]
        return any(path == place or path.startswith(place + "/") for place in kept)

    def left(self):
        """What is still there of all that, as a list of texts; empty when nothing is."""
        return [*self._processes(), *self._files(), *self._mounts()]

    def _processes(self):
        # the kernel gives the names of namespaces that have ended to new ones, of other instances
        known = {(member.pid, member.started) for member in self.members}
        for process in processes.everything():
            if process.state in "ZX":
                if process.parent == os.getpid() and process.name in PARTS:
                    processes.reap(process.pid)
            elif process.parent == os.getpid() and process.name in PARTS:
                yield f"orphan {process}"
            elif (process.pid, process.started) in known:
                yield f"process {process}"
            elif process.started <= self.made and process.namespaces() & self.namespaces:
                yield f"process {process} in a namespace of the instance"

    def _files(self):
        for path in sorted(self.paths):
            if os.path.lexists(path):
                yield f"file {path}"
        for path in sorted(self.instance.scratch.iterdir()):
            yield f"file {path}"

    def _mounts(self):
        places = {str(self.instance.scratch), *self.paths}
        for line in pathlib.Path("/proc/mounts").read_text().splitlines():
            if any(place in line for place in places):
                yield f"mount {line}"


def _paths_of(process):
    """Absolute paths that a process shows: in its arguments, descriptors and places."""
    shown = set()
    try:
        arguments = (process.path / "cmdline").read_bytes().decode("utf-8", "replace")
        shown.update(re.findall(r"/[^\0:=,]*", arguments))
        shown.update(process.descriptors().values())
        shown.update(os.readlink(process.path / name) for name in ("cwd", "root"))
    except OSError:
        pass
    for path in list(shown):
        shown.update(_paths_in(path))
    return {path.removesuffix(" (deleted)") for path in shown if path.startswith("/")}


def _paths_in(path):
    """Absolute paths that a configuration file holds."""
    if not path.endswith(".conf") or not os.path.isfile(path):
        return []
    return re.findall(r'"(/[^"]*)"', pathlib.Path(path).read_text(errors="replace"))
