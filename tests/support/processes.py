# SPDX-License-Identifier: MIT
"""The processes of one server instance, as /proc shows them from outside."""

import contextlib
import ctypes
import os
import pathlib
import signal
import time

PR_SET_CHILD_SUBREAPER = 36
# the programs of the parts
WEB_SERVER = os.environ.get("VIVARIUM_WEB_SERVER", "lighttpd")
FCGI = "vivarium-fcgi"
EXECUTOR = "vivarium-executor"
ZYGOTE = "vivarium-zygote"
CHECKPOINT_PARK = "0x7061726b43504956"  # executor/checkpoint.h


def become_subreaper():
    """Let orphans among the descendants become children of this process, where they are seen."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


class Process:
    """One process at one moment, told from a later owner of its pid by its time of start."""

    def __init__(self, pid):
        self.pid = pid
        self.path = pathlib.Path("/proc", str(pid))
        text = (self.path / "stat").read_text(errors="replace")
        # proc(5): the name is in parentheses and may itself hold spaces and parentheses
        self.name = text[text.index("(") + 1:text.rindex(")")]
        fields = text[text.rindex(")") + 2:].split()
        self.state = fields[0]
        self.parent = int(fields[1])
        self.session = int(fields[3])
        self.threads = int(fields[17])
        self.started = int(fields[19])

    def __repr__(self):
        return f"<{self.name} {self.pid} {self.state}, child of {self.parent}>"

    def alive(self):
        """True while this very process runs. A zombie has ended."""
        now = find(self.pid)
        return now is not None and now.started == self.started and now.state not in "ZX"

    def status(self, field):
        """A field of /proc/PID/status, as a text; None where it, or the process, is not there."""
        try:
            lines = (self.path / "status").read_text().splitlines()
        except (FileNotFoundError, ProcessLookupError):
            return None
        fields = dict(line.split(":", 1) for line in lines)
        return fields[field].strip() if field in fields else None

    def memory(self, field="VmRSS"):
        """Bytes of memory: VmRSS now, VmHWM at its highest."""
        return int(self.status(field).split()[0]) * 1024

    def reset_peak(self):
        """Let VmHWM start anew from what is resident now."""
        (self.path / "clear_refs").write_text("5")

    def program(self):
        """The base name of the program file; empty where it cannot be read."""
        try:
            return os.path.basename(os.readlink(self.path / "exe")).removesuffix(" (deleted)")
        except OSError:
            return ""

    def parked(self):
        """True for a copy of a worker that waits to be woken, as far as root can see."""
        try:
            return CHECKPOINT_PARK in (self.path / "syscall").read_text()
        except OSError:
            return False

    def folder(self):
        """The current folder; empty where it cannot be read."""
        try:
            return os.readlink(self.path / "cwd")
        except OSError:
            return ""

    def descriptors(self):
        """What the open file descriptors point to: numbers to texts. PermissionError if hidden.

        What ends meanwhile, a descriptor or the process, is simply not there.
        """
        found = {}
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for entry in os.listdir(self.path / "fd"):
                with contextlib.suppress(FileNotFoundError):
                    found[int(entry)] = os.readlink(self.path / "fd" / entry)
        return found

    def mounts(self):
        """The lines of the mount table that the process sees."""
        return (self.path / "mountinfo").read_text().splitlines()

    def namespaces(self):
        """The namespaces, as kernel names; empty where they cannot be read."""
        try:
            return {os.readlink(self.path / "ns" / name) for name in os.listdir(self.path / "ns")}
        except OSError:
            return set()

    def nested(self):
        """True in a PID namespace below this one: a process of a sandbox."""
        return len((self.status("NSpid") or "0").split()) > 1


def now():
    """The present as a time of start."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def find(pid):
    """The process `pid`, or None when there is none."""
    try:
        return Process(pid)
    except (FileNotFoundError, ProcessLookupError):
        return None


@contextlib.contextmanager
def stopped(process):
    """The process does nothing for as long as the context lasts. It may be gone in the end."""
    os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)


def everything():
    """All processes of the machine."""
    found = (find(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in found if process is not None]


def tree(root):
    """The process `root` and all its descendants, zombies too."""
    children = {}
    members = []
    for process in everything():
        children.setdefault(process.parent, []).append(process)
        if process.pid == root:
            members.append(process)
    for member in members:  # grows while it is walked
        members.extend(children.get(member.pid, []))
    return members


def reap(pid):
    """Take the status of an ended orphan that became our child."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        pass


def all_gone(members):
    """True once none of the processes is there, not even as a zombie."""
    for each in members:
        now = find(each.pid)
        if now is not None and now.started == each.started:
            return False
    return True
