# SPDX-License-Identifier: MIT
"""One running instance of Vivarium, started as a developer starts it."""

import contextlib
import os
import pathlib
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import uuid

from . import processes
from .client import Client
from .container import Container
from .must import cannot
from .program import program
from .sanitizers import no_reports
from .tiers import ROOT, Tier
from .together import eventually
from .wires import end_session

COMMAND = ROOT / "contrib" / "dev-server"
# even when the tests are killed no instance goes on for ever
ENDS_WITH_US = ("/usr/bin/setpriv", "--pdeathsig", "TERM")
READY = re.compile(r"ready http://127\.0\.0\.1:(\d+)\s*")
START_DEADLINE = 120
STOP_DEADLINE = 20
# in the environment of every instance; nothing that runs in a session may come to know it
SECRET_NAME = "SECRET_OF_THE_HOST"
SECRET = f"secret-{uuid.uuid4().hex}"
THREADS = program("""
    import threading
    _go, _threads = threading.Event(), []
    while threading.active_count() < {number}:
        _threads.append(threading.Thread(target=_go.wait))
        _threads[-1].start()
""")


class DevServer:
    """contrib/dev-server with settings of the test's choice, on any free port or a given one.

    `tier` is the name of the kind of place that it runs in; `under` is a command that the other
    one is put behind. Without them it runs as the test itself does, or in the place that the
    environment names in VIVARIUM_TIER: any suite can be run there. The web server is the one
    that the environment names in VIVARIUM_WEB_SERVER.

    All that it writes goes below `scratch`, a directory made for it, so that a test can see what
    it leaves behind. Its messages are in the file `log`, outside of that.
    """

    def __init__(self, port=0, tier=None, under=(), **settings):
        tier = tier or os.environ.get("VIVARIUM_TIER")
        self.tier = Tier(tier) if tier else None
        self.under = under
        self.settings = {**(self.tier.settings() if tier else {}), **settings}
        self.wanted_port = port
        self.home = pathlib.Path(tempfile.mkdtemp(
            prefix="viv-", dir=self.tier and self.tier.folder_of_scratch(
                self.settings.get("slots", 8))))
        self.scratch = self.home / "tmp"
        self.log = self.home / "log"
        self.scratch.mkdir()
        # parts that gave up root must pass through, but nobody can list what is there
        self.home.chmod(0o711)
        self.scratch.chmod(0o1777)
        self.process = None
        self.port = None
        self.client = None
        self._lines = queue.Queue()

    def launch(self):
        """Start the process without waiting for anything."""
        if not COMMAND.exists():
            cannot(f"{COMMAND.relative_to(ROOT)} is not there")
        flags = [f"--{name}={value}" for name, value in self.settings.items()]
        command, places, front = COMMAND, {}, [*ENDS_WITH_US, *self.under]
        if self.tier:
            front += self.tier.prefix()
            sources = self.tier.sources(self.home)
            if sources != ROOT:
                command = sources / command.relative_to(ROOT)
                places = {"VIVARIUM_BUILDDIR": str(sources / "build")}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*front, command, "--port", str(self.wanted_port),
                 "--web-server", processes.WEB_SERVER, *flags],
                env={**os.environ, **places, "TMPDIR": str(self.scratch), SECRET_NAME: SECRET},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        threading.Thread(target=self._read_lines, daemon=True).start()

    def _read_lines(self):
        for line in self.process.stdout:
            self._lines.put(line.decode("utf-8", "replace"))
        self._lines.put(None)

    def start(self):
        """Start it and wait for the line that says it is ready; returns itself."""
        self.launch()
        deadline = time.monotonic() + START_DEADLINE
        while True:
            try:
                line = self._lines.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                message = f"dev-server did not get ready:\n{self.messages()[-4000:]}"
                self.discard()
                raise AssertionError(message)
            ready = READY.fullmatch(line)
            if ready:
                self.port = int(ready[1])
                self.client = Client(self.port)
                return self

    def messages(self):
        """What the instance has logged so far."""
        return self.log.read_text("utf-8", "replace")

    def stop(self, number=signal.SIGTERM):
        """Send a signal and wait for the end; returns its exit status and the seconds taken."""
        began = time.monotonic()
        self.process.send_signal(number)
        status = self.process.wait(STOP_DEADLINE)
        return status, time.monotonic() - began

    def discard(self):
        """End it by whatever means and remove its files."""
        if self.process is not None:
            if self.process.poll() is None:
                members = self.tree()
                try:
                    self.stop()
                except subprocess.TimeoutExpired:
                    for member in members:
                        if member.alive():
                            os.kill(member.pid, signal.SIGKILL)
                    self.process.wait()
            self.process.stdout.close()
        messages = self.messages() if self.log.exists() else ""
        shutil.rmtree(self.home, ignore_errors=True)
        no_reports(messages)

    def tree(self):
        """All its processes."""
        return processes.tree(self.process.pid)

    def parts(self, program):
        """The processes outside of sandboxes that run `program`, parents before children."""
        return [each for each in self.tree() if each.program() == program and not each.nested()]

    def part(self, program):
        """The first of these, which must be there."""
        found = self.parts(program)
        assert found, f"no {program} among {self.tree()}"
        return found[0]

    def worker_of(self, session):
        """The process in which the session's code runs, known by a number of threads.

        That is all that a worker shows of itself to whoever is not root.
        """
        taken = {process.threads for process in self.tree()}
        number = next(number for number in range(20, 60) if number not in taken)
        assert session.exec(THREADS.format(number=number)).success
        workers = [process for process in self.tree() if process.threads == number]
        assert session.exec("_go.set(); [thread.join() for thread in _threads]").success
        assert len(workers) == 1, workers
        return workers[0]

    def executor_socket(self):
        """Where vivarium-executor listens."""
        return next(self.scratch.glob("*/run/executor/executor.sock"))

    def end_session(self, name):
        """Let the executor end what a session has, which its idle time else does in the end."""
        end_session(self.executor_socket(), name)

    def application_socket(self):
        """The path of the socket that vivarium-fcgi listens at."""
        return next(self.scratch.glob("*/run/web/fcgi.sock"))

    def kill_application(self):
        """Kill vivarium-fcgi, and wait for its end."""
        part = self.part(processes.FCGI)
        os.kill(part.pid, signal.SIGKILL)
        eventually(lambda: not part.alive())

    @contextlib.contextmanager
    def without_application(self):
        """No vivarium-fcgi, and nobody who would start one or keep connections for it."""
        path = self.application_socket()
        aside = path.with_suffix(".aside")
        self.process.send_signal(signal.SIGSTOP)
        path.rename(aside)
        try:
            self.kill_application()
            yield
        finally:
            aside.rename(path)
            self.process.send_signal(signal.SIGCONT)
        self.wait_until_healthy()

    def healthy(self):
        """True when the whole chain answers and can start sandboxes."""
        return self.client.finds_it_healthy()

    def wait_until_healthy(self):
        """Wait until it serves again after something was killed."""
        eventually(self.healthy, within=START_DEADLINE)


@contextlib.contextmanager
def running(**settings):
    """An instance for as long as the context lasts: of dev-server, or of VIVARIUM_IMAGE."""
    kind = Container if os.environ.get("VIVARIUM_IMAGE") else DevServer
    instance = kind(**settings)
    try:
        yield instance.start()
    finally:
        instance.discard()
