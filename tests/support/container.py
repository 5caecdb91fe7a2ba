# SPDX-License-Identifier: MIT
"""One running container of the image, with what the tests ask of an instance.

Under VIVARIUM_IMAGE, the name of an image, every suite over HTTP meets containers of it in place
of dev-server: support.server.running() sees to that. DOCKER_HOST is the engine's.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

from . import processes
from .client import Client
from .must import cannot
from .tiers import ROOT, Tier
from .together import eventually
from .wires import end_session

DOCKER = "/usr/bin/docker"
PORT = 3080
PROFILE = ROOT / "contrib/docker/seccomp.json"
START_DEADLINE = 120
# the flags with which a container gives each kind of place
FLAGS = {
    "confined": [],
    "isolated": [f"--security-opt=seccomp={PROFILE}"],
    "isolated-user": [f"--security-opt=seccomp={PROFILE}", "--user=1234:1234"],
    "minimal": ["--user=1234:1234", "--env=VIVARIUM_MIN_ISOLATION=minimal"],
}


def docker(*words, check=True, **options):
    """What the client of the engine says; it ends well unless `check` is False."""
    done = subprocess.run([DOCKER, *map(str, words)], capture_output=True, text=True, check=False,
                          **options)
    assert done.returncode == 0 or not check, f"docker {words}: {done.stderr}"
    return done.stdout.strip() if check else done


def image():
    """The image under test."""
    return os.environ.get("VIVARIUM_IMAGE") or cannot("VIVARIUM_IMAGE names no image")


class Container:
    """A container with settings of the test's choice, in a tier or with flags of its own."""

    def __init__(self, port=0, tier=None, under=(), flags=None, **settings):
        if under or port:
            cannot("a container stands behind no other program, and has any port")
        self.tier = Tier(tier or os.environ.get("VIVARIUM_TIER") or "confined")
        self.flags = FLAGS[self.tier.name] if flags is None else list(flags)
        self.settings = settings
        if settings and self.tier.name == "confined":  # whose threads are counted on the host
            self.settings = {"slot_uid_base": random.randrange(1 << 20, 1 << 30, 1 << 13),
                             **settings}
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="viv-"))
        self.log = self.home / "log"
        self.id = self.pid = self.port = self.client = self.scratch = self._follower = None

    def launch(self):
        """Start it without waiting for anything."""
        variables = [f"--env=VIVARIUM_{key.upper()}={value}"
                     for key, value in self.settings.items()]
        self.id = docker("run", "--detach", f"--publish=127.0.0.1::{PORT}", *self.flags,
                         *variables, image())
        self._look()
        upper = self.inspect("GraphDriver")["Data"].get("UpperDir")
        self.scratch = pathlib.Path(upper) if upper else self.home / "nothing"

    def _look(self):
        self.pid = self.inspect("State")["Pid"]
        ports = self.inspect("NetworkSettings")["Ports"].get(f"{PORT}/tcp")
        if ports:
            self.port = int(ports[0]["HostPort"])
            self.client = Client(self.port)
        if self._follower:
            self._follower.kill()
            self._follower.wait()
        with open(self.log, "wb") as log:
            self._follower = subprocess.Popen([DOCKER, "logs", "--follow", self.id],
                                              stdout=log, stderr=subprocess.STDOUT)

    def inspect(self, what):
        """A part of what the engine knows of it."""
        return json.loads(docker("inspect", f"--format={{{{json .{what}}}}}", self.id))

    def running(self):
        """True until it has ended."""
        return self.inspect("State")["Running"]

    def start(self):
        """Start it and wait until it serves; returns itself."""
        self.launch()
        try:
            self.wait_until_healthy()
            # until its first process has seen that, too, it ends with any part of it
            eventually(self.ready, within=START_DEADLINE)
        except AssertionError as error:
            message = f"the container does not serve:\n{self.messages()[-4000:]}"
            self.discard()
            raise AssertionError(message) from error
        return self

    def ready(self):
        """True when its first process has said that it serves."""
        return "ready http://" in self.messages()

    def messages(self):
        """What it has logged so far."""
        done = docker("logs", self.id, check=False)
        return done.stdout + done.stderr

    def stop(self, number=signal.SIGTERM):
        """Let the engine stop it; returns its exit status and the seconds taken."""
        began = time.monotonic()
        if number == signal.SIGTERM:
            docker("stop", self.id)
        else:
            docker("kill", f"--signal={number}", self.id)
            docker("wait", self.id)
        return self.inspect("State")["ExitCode"], time.monotonic() - began

    def restart(self):
        """Stop it and start it again, without waiting until it serves."""
        docker("restart", self.id)
        self._look()

    def discard(self):
        """End it by whatever means and remove what it has left."""
        if self.id:
            docker("rm", "--force", "--volumes", self.id)
        if self._follower:
            self._follower.kill()
            self._follower.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def tree(self):
        """All its processes."""
        return processes.tree(self.pid)

    def parts(self, program):
        """The processes outside of sandboxes that run `program`, parents before children."""
        def depth(process):
            return len((process.status("NSpid") or "0").split())

        own = depth(processes.Process(self.pid))
        return [each for each in self.tree()
                if each.program() == program and depth(each) == own]

    def part(self, program):
        """The first of these, which must be there."""
        found = self.parts(program)
        assert found, f"no {program} among {self.tree()}"
        return found[0]

    def executor_socket(self):
        """Where vivarium-executor listens, by a path of this machine."""
        root = pathlib.Path("/proc", str(self.pid), "root")
        return next(path for path in (root / "run/vivarium/executor.sock",
                                      root / "tmp/vivarium/executor.sock") if path.exists())

    def end_session(self, name):
        """Let the executor end what a session has, which its idle time else does in the end."""
        end_session(self.executor_socket(), name)

    def healthy(self):
        """True when the whole chain answers and can start sandboxes."""
        assert self.running(), self.messages()[-4000:]
        return self.client.finds_it_healthy()

    def wait_until_healthy(self):
        """Wait until it serves, also after something was killed."""
        eventually(self.healthy, within=START_DEADLINE)
