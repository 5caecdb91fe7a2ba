# SPDX-License-Identifier: MIT
"""Workers for the tests of the runner: real interpreters, forked from a prepared one, without a
sandbox. Their descriptors 0 to 2 are pipes, so what reaches those is what a test sees.

RUNNER_PYTHON names another interpreter to test with.
"""

import json
import os
import pathlib
import select
import signal
import socket
import struct
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
EXECUTOR = HERE.parent.parent / "executor"
PYTHON = os.environ.get("RUNNER_PYTHON", sys.executable)
MODULES = ["numpy", "pandas", "matplotlib.pyplot"]
PATIENCE = 30  # seconds until a worker that does not answer has hung

STATUS, VALUE, VALUE_TYPE, VALUE_CUT, ERROR_TYPE, ERROR_MESSAGE, ERROR_LINE = range(1, 8)


class Died(Exception):
    """The worker ended in the middle of a call."""


class Result:
    """What run() returned, and what reached descriptors 1 and 2 during the call."""

    def __init__(self, data, out, err):
        self.fields = {}
        self.out, self.err = out, err
        while data:
            tag, size = struct.unpack_from("<BI", data)
            assert tag not in self.fields and len(data) >= 5 + size
            self.fields[tag] = data[5:5 + size]
            data = data[5 + size:]
        assert self.fields[STATUS] in (b"\0", b"\1")
        self.ok = self.fields[STATUS] == b"\0"
        self.json = self.fields.get(VALUE)
        self.type = self._text(VALUE_TYPE)
        self.cut = self.fields.get(VALUE_CUT, b"\0") == b"\1"
        self.error = self._text(ERROR_TYPE)
        self.message = self._text(ERROR_MESSAGE)
        line = self.fields.get(ERROR_LINE)
        self.line = struct.unpack("<I", line)[0] if line else None
        assert self.ok == (self.error is None) == (self.message is None)
        assert self.ok or self.json is None

    def _text(self, tag):
        data = self.fields.get(tag)
        return None if data is None else data.decode()

    @property
    def value(self):
        """The value of the last statement; anything that is not strictly JSON fails."""
        def refuse(text):
            raise AssertionError(f"not JSON: {text}")
        assert self.ok, self.message
        if self.json is None:
            return None
        return json.loads(self.json.decode(), parse_constant=refuse)

    @property
    def traceback(self):
        """The message without its head and without the code context."""
        assert self.message.startswith("PythonError: ")
        return self.message.removeprefix("PythonError: ").partition("\n\nCode context:\n")[0]

    @property
    def context(self):
        """The lines below "Code context:", or None."""
        _, found, rows = self.message.partition("\n\nCode context:\n")
        return rows.split("\n") if found else None

    def __repr__(self):
        return f"<Result {self.fields} out={self.out!r} err={self.err!r}>"


class Worker:
    """One session's interpreter."""

    def __init__(self, zygote, home, **order):
        self.home = home
        self.count = 0
        self.channel, theirs = socket.socketpair()
        pipes = [os.pipe() for _ in range(3)]
        stdin, self.stdin = pipes[0]
        (self.stdout, out), (self.stderr, err) = pipes[1:]
        self.pid = zygote.fork([stdin, out, err, theirs.fileno()], home=str(home), **order)
        theirs.close()
        for fd in (stdin, out, err):
            os.close(fd)
        self.seen = {self.stdout: b"", self.stderr: b""}

    def send(self, code, stdin=None, max_result=65536):
        """Begin a call."""
        code = code.encode() if isinstance(code, str) else code
        stdin = stdin.encode() if isinstance(stdin, str) else stdin
        self.count += 1
        head = struct.pack("<IiII", len(code), -1 if stdin is None else len(stdin),
                           self.count, max_result)
        self.channel.sendall(head + code + (stdin or b""))

    def receive(self):
        """Wait for the end of the call; raise Died if there is none."""
        answer, deadline = b"", time.monotonic() + PATIENCE
        while len(answer) < 4 or len(answer) < 4 + struct.unpack_from("<I", answer)[0]:
            ready = self._wait(deadline, [self.channel])
            if self.channel in ready:
                try:
                    data = self.channel.recv(1 << 20)
                except ConnectionResetError:
                    data = b""
                if not data:
                    raise Died(*self.output())
                answer += data
        return Result(answer[4:], *self.output())

    def wait_for(self, text):
        """Wait until TEXT has been printed."""
        deadline = time.monotonic() + PATIENCE
        while text.encode() not in self.seen[self.stdout]:
            self._wait(deadline, [])

    def _wait(self, deadline, channels):
        ready = select.select([*channels, *self.seen], [], [],
                              max(0, deadline - time.monotonic()))[0]
        if not ready:
            self.kill()
            raise AssertionError(f"the worker hangs; it printed {self.seen}")
        for fd in list(self.seen):
            if fd in ready:
                self._drain(fd)
        return ready

    def _drain(self, fd):
        data = os.read(fd, 1 << 20)
        self.seen[fd] += data
        return data

    def output(self):
        """What was printed since the last time."""
        texts = []
        for fd in (self.stdout, self.stderr):
            while select.select([fd], [], [], 0)[0] and self._drain(fd):
                pass
            texts.append(self.seen[fd].decode())
            self.seen[fd] = b""
        return texts

    def run(self, code, stdin=None, max_result=65536):
        """Run one call to its end."""
        self.send(code, stdin, max_result)
        return self.receive()

    def value(self, code, **options):
        """The value of the last statement of CODE, which must run to its end."""
        return self.run(code, **options).value

    def interrupt(self):
        os.kill(self.pid, signal.SIGINT)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def close(self):
        self.channel.close()  # ends it if it is idle
        for fd in (self.stdin, self.stdout, self.stderr):
            os.close(fd)
        try:
            self.kill()
        except ProcessLookupError:
            pass


class Zygote:
    """An interpreter after prepare()."""

    def __init__(self, modules):
        self.control, theirs = socket.socketpair()
        script = str(HERE / "worker_main.py")
        call = f"main({str(EXECUTOR)!r}, {modules!r}, {theirs.fileno()})"
        code = (f"exec(compile(open({script!r}).read() + {call!r}, {script!r}, 'exec'),"
                " {'__name__': 'worker_main'})")
        environment = {key: value for key, value in os.environ.items()
                       if not key.endswith("_THREADS") and key != "MPLBACKEND"}
        self.process = subprocess.Popen([PYTHON, "-I", "-B", "-c", code], env=environment,
                                        stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()])
        theirs.close()
        assert self.control.recv(5) == b"ready", "prepare() failed"

    def fork(self, fds, **order):
        socket.send_fds(self.control, [json.dumps(order).encode()], fds)
        return int(self.control.recv(64))

    def close(self):
        self.control.close()
        self.process.wait(PATIENCE)


@pytest.fixture(scope="session")
def bare_zygote():
    """Prepared without any module."""
    zygote = Zygote([])
    yield zygote
    zygote.close()


@pytest.fixture(scope="session")
def full_zygote():
    """Prepared with the modules that a server preloads."""
    zygote = Zygote(MODULES)
    yield zygote
    zygote.close()


@pytest.fixture
def worker(bare_zygote, tmp_path):
    """A fresh worker without numpy and the like."""
    worker = Worker(bare_zygote, tmp_path)
    yield worker
    worker.close()


@pytest.fixture
def full_worker(full_zygote, tmp_path):
    """A fresh worker with numpy, pandas and matplotlib."""
    worker = Worker(full_zygote, tmp_path)
    yield worker
    worker.close()
