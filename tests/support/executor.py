# SPDX-License-Identifier: MIT
"""vivarium-executor alone, without the web, started from the build tree."""

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import tempfile

from . import processes
from .must import cannot
from .program import program
from .sanitizers import no_reports
from .tiers import Tier
from .together import eventually
from .wires import (ACQUIRE, ANSWER_DEADLINE, ATTACH, END, NEXT, OK, STATUS, Channel,
                    Connection, Gone)

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("vivarium-executor", "vivarium-zygote")
START_DEADLINE = 120
AS_IT_IS = "as it is"  # in place of a tier: where the tests themselves run

NOBODY = 65534
THREADS = program("""
    import threading
    _go, _threads = threading.Event(), []
    while threading.active_count() < {number}:
        _threads.append(threading.Thread(target=_go.wait))
        _threads[-1].start()
""")


class Refused(Exception):
    """A reply with a code; `code` is which, the text its message."""

    def __init__(self, reply):
        super().__init__(reply.bytes.decode())
        self.code = reply.code


def _has_event_loop(process):
    return any("eventpoll" in target for target in process.descriptors().values())


class Sandbox:
    """A sandbox of the test's own."""

    def __init__(self, executor, reply):
        self.executor = executor
        self.number = reply.sandbox
        self.channel = Channel(*reply.descriptors)

    def call(self, code, files=(), **limits):
        """One call."""
        return self.channel.call(code, files, **limits)

    def attach(self):
        """Take a new channel in place of the old one, which stays open at this end."""
        reply = self.executor.ask(ATTACH, self.number)
        self.channel = Channel(*reply.descriptors)

    def end(self):
        """End it. One that has ended is no failure."""
        self.channel.close()
        self.executor.ask(END, self.number)

    def supervisor(self):
        """Its PID 1, or in a slot the process that lives there beside its worker."""
        worker = self.worker()
        if not self.executor.has_slots():
            return processes.Process(worker.parent)
        found = [each for each in self.executor.supervisors() if each.folder() == worker.folder()]
        assert len(found) == 1, found
        return found[0]

    def worker(self):
        """The process that runs its code, known by a number of threads.

        That is all that a worker shows of itself to whoever is not root.
        """
        taken = {each.threads for each in self.executor.workers()}
        number = next(number for number in range(20, 60) if number not in taken)
        self.call(THREADS.format(number=number))
        workers = [each for each in self.executor.workers() if each.threads == number]
        self.call("_go.set()\nfor _one in _threads: _one.join()\ndel _go, _threads, _one")
        assert len(workers) == 1, workers
        return processes.Process(workers[0].pid)


class Executor:
    """One vivarium-executor.

    `tier` is the name of the kind of place that it runs in; without it, it runs as the test
    itself does, or in the place that the environment names in VIVARIUM_TIER. Slots are in a
    folder of its own, or in that of the setting slot_directory, which it leaves behind.

    `user` is the number of an ordinary user to run it as, `limits` has resources and their hard
    limits, `environment` is added to what it inherits, and `meminfo` is a file that it sees in
    place of /proc/meminfo.
    """

    def __init__(self, tier=None, user=None, limits=None, environment=None, meminfo=None,
                 **settings):
        tier = tier or os.environ.get("VIVARIUM_TIER")
        self.tier = Tier(tier) if tier else None
        self.user = user
        self.limits = limits
        self.environment = {**os.environ, **(environment or {})}
        self.meminfo = meminfo
        self.settings = {"preload": "none", "log_level": "debug",
                         **(self.tier.settings() if tier else {}), **settings}
        self.home = pathlib.Path(tempfile.mkdtemp(
            prefix="viv-", dir=self.tier and self.tier.folder_of_scratch(
                int(self.settings.get("slots", 32)))))
        self.path = self.home / "run" / "executor.sock"
        self.slots = pathlib.Path(settings.get("slot_directory", self.home / "slots"))
        self.log = self.home / "log"
        self.process = None

    def has_slots(self):
        """True in a tier without namespaces."""
        return self.tier is not None and self.tier.isolation in ("confined", "minimal")

    def _programs(self):
        places = [os.environ.get("VIVARIUM_BUILDDIR"), ROOT / "build", ROOT]
        for place in filter(None, places):
            found = [pathlib.Path(place, name) for name in PROGRAMS]
            if all(each.is_file() for each in found):
                return found
        return cannot("the programs are not built")

    def _copies(self):
        """The programs where a user can reach them who may not reach the build tree."""
        self.home.chmod(0o711)
        copies = []
        for original in self._programs():
            copies.append(pathlib.Path(shutil.copy(original, self.home)))
            copies[-1].chmod(0o755)
        return copies

    def start(self):
        """Start it, and wait until it has what it keeps ready; returns itself."""
        self.launch()
        eventually(self.is_ready, within=START_DEADLINE)
        return self

    def launch(self):
        """Start it without waiting."""
        executor, zygote = self._copies()
        self.path.parent.mkdir(exist_ok=True)
        identity, front = {}, []
        if self.tier:
            front = self.tier.prefix()
            self._make_slots()
        elif self.user is not None:
            identity = {"user": self.user, "group": self.user, "extra_groups": []}
            os.chown(self.path.parent, self.user, self.user)
        if self.user is None and os.geteuid() == 0:
            self.settings.setdefault("executor_client", "nobody")
        command = [*front, executor, f"--zygote={zygote}", "-f", "/dev/null",
                   f"--executor_socket={self.path}",
                   *(f"--{name}={value}" for name, value in self.settings.items())]
        if self.meminfo:
            command = ["unshare", "--mount", "sh", "-c",
                       'mount --bind "$0" /proc/meminfo && exec "$@"', self.meminfo, *command]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
                preexec_fn=self._limit if self.limits else None, **identity)

    def _make_slots(self):
        self.slots.mkdir(mode=0o700, exist_ok=True)
        self.settings["slot_directory"] = self.slots
        for folder in (self.path.parent, self.slots):
            os.chown(folder, self.tier.user, self.tier.user)

    def _limit(self):
        for which, value in self.limits.items():
            resource.setrlimit(which, (value, value))

    def is_ready(self):
        """True when it has what it keeps ready."""
        assert self.process.poll() is None, self.messages()
        try:
            state = self.status()
        except (OSError, Gone):
            return False
        return "reason" not in state and int(state["ready"]) >= int(
            self.settings.get("pool_size", 4))

    def messages(self):
        """What it has logged."""
        return self.log.read_text("utf-8", "replace")

    def connect(self):
        """A connection."""
        return Connection(self.path)

    def ask(self, *arguments, **keywords):
        """One request over a connection of its own; its reply, or Refused."""
        with self.connect() as connection:
            reply = connection.ask(*arguments, **keywords)
        if reply.code != OK:
            raise Refused(reply)
        return reply

    def acquire(self, record=b""):
        """A sandbox."""
        return Sandbox(self, self.ask(ACQUIRE, 0, record))

    def status(self):
        """The state, as it tells it."""
        lines = self.ask(STATUS).bytes.decode().splitlines()
        return dict(line.split("=", 1) for line in lines)

    def records(self):
        """The records of all live sandboxes, by number, in order."""
        found, number = {}, 0
        while True:
            reply = self.ask(NEXT, number)
            if reply.sandbox == 0:
                return found
            assert reply.sandbox > number
            number = reply.sandbox
            found[number] = reply.bytes

    def tree(self):
        """All its processes."""
        return processes.tree(self.process.pid)

    def keeper(self):
        """The process that was started."""
        return processes.Process(self.process.pid)

    def launcher(self):
        """The child of the keeper; with slots the one of two that waits for many things."""
        found = [each for each in self.tree() if each.parent == self.process.pid]
        if self.has_slots():
            found = [each for each in found if _has_event_loop(each)]
        assert len(found) == 1, found
        return found[0]

    def janitor(self):
        """The other child of the keeper, where there are slots."""
        found = [each for each in self.tree()
                 if each.parent == self.process.pid and not _has_event_loop(each)]
        assert len(found) == 1, found
        return found[0]

    def _children(self, part):
        launcher = self.launcher().pid
        return [each for each in self.tree()
                if each.parent == launcher and self._part(each) == part]

    def _part(self, child):
        """What a child of the launcher is."""
        if not self.has_slots():
            return "supervisor" if child.nested() else "zygote"
        if child.program() != processes.ZYGOTE:
            return "supervisor"
        # a fork of the zygote
        return "worker" if child.session == child.pid else "zygote"

    def zygotes(self):
        """The zygotes, mostly one."""
        return self._children("zygote")

    def zygote(self):
        """The zygote."""
        return self.zygotes()[0]

    def supervisors(self):
        """PID 1 of each sandbox, or who takes its place."""
        return self._children("supervisor")

    def workers(self):
        """All workers."""
        if self.has_slots():
            return self._children("worker")
        parents = {each.pid for each in self.supervisors()}
        return [each for each in self.tree() if each.parent in parents]

    def stop(self, number=signal.SIGTERM):
        """Send a signal and wait for the end; its exit status."""
        self.process.send_signal(number)
        return self.process.wait(ANSWER_DEADLINE)

    def discard(self):
        """End it by whatever means and remove its files."""
        if self.process is not None and self.process.poll() is None:
            members = self.tree()
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                for member in members:
                    if member.alive():
                        os.kill(member.pid, signal.SIGKILL)
                self.process.wait()
        messages = self.messages() if self.log.exists() else ""
        shutil.rmtree(self.home, ignore_errors=True)
        no_reports(messages)
