# SPDX-License-Identifier: MIT
"""What is measured: instances of Vivarium, the floor, the alternative. All end with the run."""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "tests"))

from support import processes  # noqa: E402

READY = re.compile(r"ready http://127\.0\.0\.1:(\d+)\s*")
STOP_DEADLINE = 20  # seconds
LOG_SHOWN = 4000  # bytes of a log that tell why a start failed

LIGHTTPD_CONF = """\
server.bind = "/dev/stdin"
server.upload-dirs = ( "{home}" )
var.vivarium_socket = "{home}/null.sock"
var.vivarium_errors = "{home}/errors/"
include "rules.conf"
"""


def as_user(name):
    """The options of Popen that make a process another user's, where we are root."""
    if os.geteuid() != 0:
        return {}
    return {"user": name, "group": "nogroup" if name == "nobody" else name, "extra_groups": []}


def end(process):
    """Stop a process that we have started, and wait for its end."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Vivarium:
    """contrib/dev-server with the given settings, on a free port.

    It starts at once; wait() returns when it serves, so that two can start side by side.
    """

    def __init__(self, build, **settings):
        flags = [f"--{name}={value}" for name, value in settings.items()]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [SOURCE / "contrib/dev-server", "--port", "0", "--build", build, *flags],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log,
            start_new_session=True)
        self.port = None

    def wait(self):
        """Wait until it serves."""
        ready = READY.fullmatch(self.process.stdout.readline().decode())
        if not ready:
            self.log.seek(0)
            raise RuntimeError("dev-server did not get ready:\n"
                               + self.log.read()[-LOG_SHOWN:].decode(errors="replace"))
        self.port = int(ready[1])

    def stop(self):
        """End it with all its sessions."""
        end(self.process)
        self.process.stdout.close()
        self.log.close()

    def part(self, program):
        """Its process that runs `program`."""
        return next(process for process in processes.tree(self.process.pid)
                    if process.program() == program)

    def sandboxed(self):
        """The processes of its sandboxes, supervisors and workers."""
        return [process for process in processes.tree(self.process.pid) if process.nested()]


class Floor:
    """null_fcgi behind a lighttpd of its own, with the rules and identities of dev-server."""

    def __init__(self, build):
        lighttpd = shutil.which("lighttpd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        program = pathlib.Path(build, "tests/bench/null_fcgi")
        if not lighttpd or not program.is_file():
            raise RuntimeError("lighttpd is not there" if not lighttpd else
                               f"{program} is not built; make bench builds it")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="viv-"))
        self.started = []
        try:
            self._start(lighttpd, program)
        except BaseException:
            self.stop()
            raise

    def _start(self, lighttpd, program):
        home = self.directory
        home.chmod(0o711)
        shutil.copytree(SOURCE / "www-conf/errors", home / "errors")
        for name in ("rules.conf", "lighttpd-location.conf"):
            shutil.copy(SOURCE / "www-conf" / name, home)
        # the build tree may be out of reach for who is not root
        own_program = shutil.copy(program, home)
        configuration = home / "lighttpd.conf"
        configuration.write_text(LIGHTTPD_CONF.format(home=home))
        with socket.socket(socket.AF_UNIX) as backend, \
                socket.create_server(("127.0.0.1", 0)) as web:
            backend.bind(str(home / "null.sock"))
            (home / "null.sock").chmod(0o666)
            backend.listen(1024)
            self.port = web.getsockname()[1]
            self._run([own_program], backend, as_user("nobody"))
            self._run([lighttpd, "-D", "-f", configuration], web, as_user("www-data"))

    def _run(self, command, listener, identity):
        self.started.append(subprocess.Popen(
            command, stdin=listener, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, **identity))

    def stop(self):
        """End it."""
        for process in reversed(self.started):
            end(process)
        shutil.rmtree(self.directory)


class Alternative:
    """A new sandboxed Python process for each run of some code, by bwrap(1).

    It is given its best case: matplotlib finds its list of fonts made, as in a user's home.
    """

    def __init__(self, code):
        self.program = shutil.which("bwrap")
        self.cache = tempfile.mkdtemp(prefix="viv-")
        self.command = [
            "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--tmpfs", "/tmp", "--bind",
            self.cache, "/tmp/matplotlib", "--unshare-all", "--die-with-parent",
            "/usr/bin/python3", "-c", code]

    def missing(self):
        """Why it cannot be run here, or None."""
        if not self.program:
            return "bwrap is not there; Debian package: bubblewrap"
        try:
            self.run()
        except RuntimeError as error:
            return str(error)
        return None

    def run(self):
        """Run the code once; what it printed."""
        done = subprocess.run(
            self.command, executable=self.program, stdin=subprocess.DEVNULL, capture_output=True,
            env={"PATH": "/usr/bin:/bin", "MPLCONFIGDIR": "/tmp/matplotlib",
                 "LANG": "C.UTF-8"})
        if done.returncode != 0:
            raise RuntimeError("bwrap: " + done.stderr.decode(errors="replace").strip()[-500:])
        return done.stdout

    def stop(self):
        """Remove its files."""
        shutil.rmtree(self.cache)
