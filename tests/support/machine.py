# SPDX-License-Identifier: MIT
"""A machine with a systemd of its own, in namespaces: the files of this one, and none of its
processes, networks and mounts. What is written there is gone with it."""

import contextlib
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from .must import cannot, only_root_can
from .together import eventually

BOOT = pathlib.Path(__file__).resolve().parents[1] / "install" / "boot"
NAMESPACES = ("mount", "pid", "net", "uts", "ipc", "cgroup")
CLONE_NEWNET = 0x40000000
PATIENCE = 120


def _own_cgroup():
    """The folder of our control group of version 2, in which one can be made."""
    own = re.search(r"^0::(/.*)$", pathlib.Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        root, point, options = fields.split()[3:6]
        if own and rest.startswith("cgroup2 ") and options.startswith("rw") \
                and (own[1] + "/").startswith(root.rstrip("/") + "/"):
            return pathlib.Path(point, own[1][len(root.rstrip("/")):].lstrip("/"))
    return cannot("there is no control group of version 2 to make another one in")


def _remove_cgroup(group):
    """Remove a control group and those below it. Their processes may take a moment to end."""
    def removed():
        for folder, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        return not group.exists()

    eventually(removed)


class Machine:
    """One such machine."""

    def __init__(self):
        only_root_can("make a machine")
        for tool in ("/lib/systemd/systemd", "/usr/bin/nsenter", "/usr/bin/unshare"):
            if not os.path.exists(tool):
                cannot(f"{tool} is not there")
        if os.stat("/usr").st_dev != os.stat("/").st_dev:
            cannot("/usr is a file system of its own")
        self.scratch = pathlib.Path(tempfile.mkdtemp(prefix="viv-machine-"))
        self.cgroup = _own_cgroup() / self.scratch.name
        self.log = self.scratch.with_suffix(".log")
        self.process = None
        self.pid = None

    def start(self):
        """Boot it; returns itself."""
        try:
            self.cgroup.mkdir()
        except OSError as error:
            cannot(f"no control group can be made: {error}")
        # the shell moves itself: the cgroup namespace begins where its maker is
        command = ["/usr/bin/setpriv", "--pdeathsig", "KILL", "sh", "-c",
                   'echo $$ >"$0/cgroup.procs" && exec "$@"', self.cgroup, "unshare",
                   *(f"--{name}" for name in NAMESPACES), "--fork", "--kill-child",
                   BOOT, self.scratch]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log, start_new_session=True)
        eventually(self._is_up, within=PATIENCE)
        return self

    def _is_up(self):
        if self.process.poll() is not None:
            cannot(f"no systemd can be run in namespaces: {self.log.read_text()}")
        path = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        children = path.read_text().split()
        if not children or not os.path.exists(f"/proc/{children[0]}/root/run/systemd/private"):
            return False
        self.pid = int(children[0])
        return self.run("systemctl", "is-system-running", check=False).stdout.strip() \
            in ("running", "degraded")

    def run(self, *command, check=True, text=None):
        """Run a command there, `text` its input; what subprocess.run() gives, as texts."""
        enter = ["nsenter", f"--target={self.pid}", "--root",
                 *(f"--{name}" for name in NAMESPACES), "env", "-i", "-C", "/",
                 "PATH=/usr/sbin:/usr/bin", "LC_ALL=C.UTF-8"]
        done = subprocess.run([*enter, *map(str, command)], capture_output=True, text=True,
                              input=text, timeout=PATIENCE, check=False)
        if check:
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        return done

    def output(self, *command):
        """What a command writes that must succeed."""
        return self.run(*command).stdout.strip()

    def path(self, name):
        """A path there as it is reached from here."""
        return pathlib.Path(f"/proc/{self.pid}/root{name}")

    def write(self, name, text):
        """Write a file there."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    @contextlib.contextmanager
    def network(self):
        """The calling thread, and those that it starts, use its network, not this one's."""
        libc = ctypes.CDLL(None, use_errno=True)

        def enter(pid):
            with open(f"/proc/{pid}/ns/net", "rb") as namespace:
                assert libc.setns(namespace.fileno(), CLONE_NEWNET) == 0, ctypes.get_errno()

        with open("/proc/thread-self/ns/net", "rb") as ours:
            enter(self.pid)
            try:
                yield
            finally:
                assert libc.setns(ours.fileno(), CLONE_NEWNET) == 0, ctypes.get_errno()

    def written(self):
        """What is there and not in the files of this machine, or otherwise: path to mode and
        owner. Folders that both have do not count."""
        upper = self.path("/mnt/upper")
        found = {}
        for folder, names, files in os.walk(upper):
            for name in names + files:
                path = pathlib.Path(folder, name)
                there = "/" + str(path.relative_to(upper))
                status = path.lstat()
                if not (path.is_dir() and os.path.isdir(there)):
                    found[there] = (oct(status.st_mode), status.st_uid, status.st_gid)
        return found

    def discard(self):
        """End it, with all that runs there."""
        if self.process is not None:
            self.process.kill()  # takes process 1 along, and that one everything
            self.process.wait()
            _remove_cgroup(self.cgroup)
        elif self.cgroup.exists():
            self.cgroup.rmdir()
        self.log.unlink(missing_ok=True)
        shutil.rmtree(self.scratch, ignore_errors=True)

    # units

    def unit(self, name, *properties):
        """The properties of a unit, a mapping of texts."""
        flags = [f"--property={each}" for each in properties]
        lines = self.output("systemctl", "show", *flags, name).splitlines()
        return dict(line.split("=", 1) for line in lines)

    def main_process(self, name):
        """The process of a service, as it is numbered here."""
        inside = self.unit(name, "MainPID")["MainPID"]
        for entry in pathlib.Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(OSError):
                numbers = re.search(r"^NSpid:\s*(.*)$", entry.read_text(), re.MULTILINE)
                same = os.readlink(entry.parent / "ns/pid") \
                    == os.readlink(f"/proc/{self.pid}/ns/pid")
                if same and numbers[1].split()[-1] == inside:
                    return int(entry.parent.name)
        raise AssertionError(f"{name} has no process")

    def journal(self, name):
        """What a unit has logged."""
        return self.output("journalctl", "--no-pager", "--output=cat", f"--unit={name}")
