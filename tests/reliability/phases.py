# SPDX-License-Identifier: MIT
"""A call that is brought into one phase, where it stays until something is done to a process."""

import contextlib
import http.client
import json
import os
import signal
import socket
import time

from support.client import Answer, exec_target
from support.processes import EXECUTOR, FCGI, WEB_SERVER, ZYGOTE, everything, find
from support.together import eventually, in_background

PATIENCE = 30  # seconds: far more than any phase takes, so that what is later is a hang
CUT = "cut"
RUNS = 0.7  # seconds that the code of a running call takes
SOON = 0.15  # what is certain to have happened by then, on a machine that is not too busy
LARGE = "y = 1; open('g', 'wb').write(bytes(8 << 20)); None"


def label(call):
    """What a client saw of a call: its status and type of error, or that no answer came whole."""
    try:
        answer = call()
    except TimeoutError:
        raise
    except (OSError, http.client.HTTPException):
        return CUT, None
    if answer.error_type:
        return f"{answer.status} {answer.error_type}", answer
    return str(answer.status), answer


class Subject:
    """A session with a variable and a file, which has been idle, and the processes that serve it.

    Its struck call sets the variable `y`.
    """

    def __init__(self, instance, name):
        self.instance = instance
        self.session = instance.client.session(name)
        self.session.exec("x = 41; open('f', 'w').write('f')")
        self.worker = instance.worker_of(self.session)
        self.supervisor = find(self.worker.parent)
        self.folder = self.worker.path / "cwd"  # the session's
        self.count = self.session.exec("0").session["execution_count"]
        self.front = None  # what the client of the call in front saw, where there is one

    def copies(self):
        """The pids of the copies of the worker: parked ones, and one that is being made."""
        return {each.pid for each in everything()
                if each.parent == self.supervisor.pid and each.pid != self.worker.pid}

    def copied(self, before=frozenset()):
        """Wait for the copy of the worker, another one than `before`."""
        eventually(lambda: len(self.copies()) == 1 and not self.copies() & before)
        time.sleep(SOON)  # until it is parked

    def processes(self, name):
        """The processes of that name in the table."""
        if name == "worker":
            return [self.worker]
        if name == "supervisor":
            return [self.supervisor]
        executors = self.instance.parts(EXECUTOR)
        return {
            "web server": self.instance.parts(WEB_SERVER),
            "vivarium-fcgi": self.instance.parts(FCGI),
            "keeper": executors[:1],
            "launcher": executors[1:2],
            "zygote": self.instance.parts(ZYGOTE)[:1],
        }[name]

    def entry(self):
        """The session in the list of sessions."""
        return self.instance.client.sessions()[self.session.name]

    def begun(self, code):
        """A call whose code has begun to run; the future of what its client sees.

        The code finds a file `begun`, as long as nobody takes it away.
        """
        call = in_background(lambda: label(
            lambda: self.session.exec("open('begun', 'w').close(); " + code, timeout=PATIENCE)))
        eventually((self.folder / "begun").exists, every=0.01)
        return call

    def _request(self, code):
        body = json.dumps({"code": code}).encode()
        return (f"POST {exec_target(self.session.name)} HTTP/1.1\r\nHost: x\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                ).encode() + body

    @contextlib.contextmanager
    def _slow_reader(self):
        """A connection that takes up little of what nobody reads."""
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            connection.settimeout(PATIENCE)
            connection.connect((self.instance.client.host, self.instance.client.port))
            yield connection

    def _answer_on(self, connection):
        response = http.client.HTTPResponse(connection, method="POST")
        response.begin()
        return Answer("POST", self.session.target, response)

    @contextlib.contextmanager
    def body_arriving(self):
        """Half of the request is there."""
        request = self._request("y = 1 #" + "x" * 1000)
        with self._slow_reader() as connection:
            connection.sendall(request[:-500])
            time.sleep(SOON)

            def rest():
                connection.sendall(request[-500:])
                return self._answer_on(connection)
            yield lambda: label(rest)

    @contextlib.contextmanager
    def queued(self):
        """Another call of the session runs in front of it."""
        first = self.begun(f"import time; time.sleep({RUNS})")
        call = in_background(lambda: label(lambda: self.session.exec("y = 1", timeout=PATIENCE)))
        time.sleep(SOON)
        yield lambda: call.result(PATIENCE * 2)
        self.front = first.result(PATIENCE * 2)

    @contextlib.contextmanager
    def running(self):
        """Its code runs."""
        call = self.begun(f"y = 1; import time; time.sleep({RUNS})")
        time.sleep(SOON)
        yield lambda: call.result(PATIENCE * 2)

    @contextlib.contextmanager
    def collecting(self):
        """Its code has ended; the supervisor, held meanwhile, has yet to look at the files."""
        call = self.begun("""import os, time
while os.path.exists('begun'):
    time.sleep(0.01)
y = 1
open('g', 'w').close()""")
        os.kill(self.supervisor.pid, signal.SIGSTOP)
        (self.folder / "begun").unlink()
        eventually((self.folder / "g").exists, every=0.01)
        time.sleep(2 * SOON)

        def let_go():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.supervisor.pid, signal.SIGCONT)
            return call.result(PATIENCE * 2)
        yield let_go

    @contextlib.contextmanager
    def answering(self):
        """Its answer is larger than what lies between, and its client has read none of it."""
        copies = self.copies()
        with self._slow_reader() as connection:
            connection.sendall(self._request(LARGE))
            eventually(lambda: self.entry()["execution_count"] == self.count + 1
                       and self.entry()["state"] == "idle")
            if copies:
                self.copied(copies)
            yield lambda: label(lambda: self._answer_on(connection))


PHASES = {
    "body arriving": Subject.body_arriving,
    "queued": Subject.queued,
    "running": Subject.running,
    "collecting": Subject.collecting,
    "answering": Subject.answering,
}
PROCESSES = ("web server", "vivarium-fcgi", "keeper", "launcher", "zygote", "supervisor", "worker")
