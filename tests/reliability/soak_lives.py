# SPDX-License-Identifier: MIT
"""Sessions of a soak: each runs its calls, compares the answers, and ends in its way."""

import collections
import contextlib
import http.client
import json
import random
import threading
import time

from support import processes
from support.client import exec_target, fresh_id
from support.together import in_background

from .soak_calls import BUSY, GONE, OK, draw_calls
from .soak_figures import memory

BROKEN = (OSError, http.client.HTTPException)
AWAY = "503 system"  # a service starts again
YOUNG = 25  # calls after which a long session's supervisor is looked at first


def outcome(answer):
    """What came of a call, in one text (soak_calls.py)."""
    if answer.status == 200:
        return OK if answer.success else answer.error_type
    return f"{answer.status} {answer.error_type}"


class Stage:
    """What sessions of one stage share: the instance, and the counts of what happened."""

    def __init__(self, instance, idle):
        self.instance = instance
        self.idle = idle
        self.kinds = collections.Counter()
        self.outcomes = collections.Counter()
        self.sessions = collections.Counter()
        self._odd = []  # began, ended, what came, kind of call
        self._lock = threading.Lock()

    def done(self):
        """How many calls were made."""
        return sum(self.kinds.copy().values())

    def note(self, call, came, fits, began):
        """Count a call; what does not fit is remembered for wrong()."""
        with self._lock:
            self.kinds[call.kind] += 1
            self.outcomes[came] += 1
            if not fits:
                self._odd.append((began, time.monotonic(), came, call.kind))

    def wrong(self, killer):
        """Texts on answers that were not right, where no kill explains it."""
        return [f"{kind}: {came}" for began, ended, came, kind in self._odd
                if not killer.explains(began, ended, came)]


def _send(session, call):
    if call.body is not None:
        return session.post(call.body)
    return session.exec(call.code, **call.members)


def _judge(call, answer):
    """What came, and whether that is right; of a value that is wrong, the value as well."""
    came = outcome(answer)
    if came == OK and call.value is not None and answer.value != call.value:
        return f"ok with {str(answer.value)[:40]}", False
    return came, came in call.right


def _leave(session, call):
    """Send a request, whole or in part, and go without reading."""
    body = json.dumps({"code": call.code}).encode()
    head = (f"POST {exec_target(session.name)} HTTP/1.1\r\nHost: a\r\nContent-Length: "
            f"{len(body)}\r\nContent-Type: application/json\r\n\r\n").encode()
    with session.client.connect() as connection:
        connection.sendall(head + (body if call.delay else body[:len(body) // 2]))
        time.sleep(call.delay)


def _crowd(session, call):
    """The call, with two more of its session at the same time."""
    others = [in_background(lambda: _send(session, call)) for _ in range(2)]
    answer = _send(session, call)
    for other in others:
        with contextlib.suppress(*BROKEN):
            other.result(90)
    return answer


def _interrupted(session, call):
    sent = in_background(lambda: _send(session, call))
    time.sleep(call.delay)
    session.client.interrupt(session.name)  # 404 where the call has begun no session yet
    return sent.result(90)


def make(stage, session, call):
    """Make one call and note what came of it."""
    began = time.monotonic()
    try:
        if call.during == "leave":
            _leave(session, call)
            came, fits = "left", True
        else:
            how = {"crowd": _crowd, "interrupt": _interrupted}.get(call.during, _send)
            came, fits = _judge(call, how(session, call))
    except BROKEN:
        came, fits = "no answer", False
    stage.note(call, came, fits, began)
    if came == AWAY:
        time.sleep(0.2)


def _end_in_a_call(stage, session):
    """Delete the session while a call of it runs, or as good as."""
    began = time.monotonic()
    sent = in_background(lambda: session.exec("import time; time.sleep(1)"))
    time.sleep(0.1)
    try:
        ended = session.client.end(session.name)
        came = outcome(sent.result(90))
        fits = came in ("interrupted", GONE, OK, BUSY) and ended.status in (200, 404)
    except BROKEN:
        came, fits = "no answer", False
    with contextlib.suppress(*BROKEN):
        session.client.end(session.name)  # where the call was the later one
    stage.note(_last("deleted in a call"), came, fits, began)


def _last(kind):
    call = draw_calls(random.Random(0), 1)[0]
    call.kind = kind
    return call


def live(stage, life):
    """One session from its first call to its end."""
    session = stage.instance.client.session(fresh_id())
    for call in life.calls():
        make(stage, session, call)
        time.sleep(call.pause)
    if life.end == "deleted":
        with contextlib.suppress(*BROKEN):
            session.client.end(session.name)
    elif life.end == "deleted in a call":
        _end_in_a_call(stage, session)
    elif life.end == "returns":
        time.sleep(stage.idle + 1.5)
        make(stage, session, draw_calls(random.Random(life.seed), 1)[0])
    stage.sessions[life.end] += 1


class LongSession:
    """A session with calls of all kinds for as long as a stage lasts, in which nothing is killed.

    `seen` is the memory of its supervisor: after some calls, and after all of them.
    """

    def __init__(self, stage, killer, seed):
        self.stage = stage
        self.killer = killer
        self.rng = random.Random(seed)
        self.session = stage.instance.client.session(fresh_id())
        self.seen = []
        self._over = threading.Event()
        self._threads = []

    def __enter__(self):
        self.session.exec("1")
        self.supervisor = processes.Process(
            self.stage.instance.worker_of(self.session).parent)
        self.killer.spared.add(self.supervisor.pid)
        self._threads = [in_background(self._work), in_background(self._keep)]
        return self

    def _work(self):
        number = 0
        while not self._over.is_set() or number < YOUNG:
            call, = draw_calls(self.rng, 1)
            make(self.stage, self.session, call)
            number += 1
            if number == YOUNG:
                self._look()
            self._over.wait(max(0.05, call.pause))

    def _keep(self):
        """Keep it from its end while this process takes long to read a large answer."""
        while not self._over.wait(self.stage.idle / 4):
            with contextlib.suppress(*BROKEN):
                self.session.exec("1")

    def _look(self):
        assert self.supervisor.alive(), "the sandbox of the long session is lost"
        self.seen.append(memory(self.supervisor)[1])

    def __exit__(self, *_):
        self._over.set()
        for thread in self._threads:
            thread.result(600)
        self._look()
        self.session.end()
