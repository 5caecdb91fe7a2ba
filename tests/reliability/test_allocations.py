# SPDX-License-Identifier: MIT
"""Allocations that fail: a process may have no more memory than it has, for a while.

The kernel refuses it what malloc(3) asks for (RLIMIT_DATA). What is large and of a client's size
is an answer; what is small ends the process. Either way no answer is wrong, and what comes
afterwards is as before, by itself.
"""

import contextlib
import time

from support.client import b64, fresh_id
from support.limits import without_memory
from support.processes import EXECUTOR, FCGI, find
from support.together import at_once, eventually

from .bystander import COUNT, Bystander
from .phases import label

LARGE = 8 << 20
CONTENT = b"content\n" * 100000
STORM = 12  # clients at once


def upload(session, size):
    """A call that brings a file and gives back its size."""
    return session.exec("import os; os.stat('in').st_size", files={"in": bytes(size)})


def write(session):
    """A call that makes a file."""
    return session.exec(f"open('out', 'wb').write(bytes({LARGE}))")


def test_large_allocations_of_vivarium_fcgi(short, lasting):
    part, other = short.part(FCGI), short.client.session(fresh_id())
    assert upload(lasting, LARGE).value == LARGE and other.exec("0").success
    time.sleep(0.3)  # until the connections of these calls are closed
    descriptors = len(part.descriptors())
    with without_memory(part, left=1 << 20):
        for _ in range(3):
            answer = upload(lasting, LARGE)
            assert (answer.status, answer.error_type) == (503, "capacity")
            assert int(answer.headers["Retry-After"]) >= 1
            answer = write(lasting)
            assert (answer.value, answer.lost, answer.files) == (LARGE, "none", {})
            assert answer.left_out["out"]["reason"] == "no_room"
            assert other.value("6 * 7") == 42
    assert part.alive()
    assert upload(lasting, LARGE).value == LARGE
    assert list(write(lasting).files) == ["out"]
    answer = lasting.exec("x")
    assert (answer.value, answer.lost) == (41, "none")
    assert answer.session["execution_count"] == 8  # nothing that was refused has run
    eventually(lambda: len(part.descriptors()) <= descriptors)


class Stormy(Bystander):
    """Its calls are large, and bring and make files."""

    def call(self):
        """One call; a wrong file, in or out, is an exception in the code, or here."""
        answer = self.session.client.post(self.session.target, {
            "code": f"assert open('in', 'rb').read() == {CONTENT[:8]!r} * {len(CONTENT) // 8}\n"
                    f"open('out', 'wb').write(open('in', 'rb').read())\n{COUNT} #{'x' * 100000}",
            "files": [{"filename": "in", "b64_data": b64(CONTENT)}]})
        if answer.status == 200 and answer.success:
            assert answer.files.get("out", CONTENT) == CONTENT
        return answer


def test_any_allocation_of_vivarium_fcgi(short):
    """It may end, which ends no session; one whose answer it cannot take is lost, and told so."""
    part = short.part(FCGI)
    clients = [Stormy(short.client.session(fresh_id())) for _ in range(STORM)]
    with contextlib.ExitStack() as stack:
        for client in clients:
            stack.enter_context(client)
        with without_memory(part):
            time.sleep(3)
        time.sleep(1)
    assert {seen for client in clients for _, _, seen, _ in client.seen} > {"200"}
    for client in clients:
        assert set(client.losses()) <= {"all"}
        assert {seen for _, _, seen, _ in client.seen} <= {
            "200", "200 crash", "503 capacity", "503 system", "502 system", "cut"}
    short.wait_until_healthy()
    for client in clients:
        assert label(client.call)[0] == "200"
        assert client.session.exec("n").lost == "none"
        client.session.end()


def test_any_allocation_of_the_launcher(short, lasting):
    launcher = short.parts(EXECUTOR)[1]
    with without_memory(launcher):
        answers = at_once([lambda: short.client.exec("6 * 7", fresh_id())] * STORM)
        ended = not launcher.alive()
    for answer in answers:
        assert answer.status == 503 or (answer.status, answer.success) == (200, True) \
            or answer.lost == "all"
        if answer.status == 503:
            assert int(answer.headers["Retry-After"]) >= 1
    seen, answer = eventually(lambda: (now := label(lambda: lasting.exec("globals().get('x')")))[
        0] == "200" and now, within=60)
    assert (answer.value, answer.lost) == ((None, "all") if ended or not launcher.alive()
                                           else (41, "none"))


def test_any_allocation_of_a_supervisor(short, lasting):
    """Another session sees nothing of it, and its own answers are right or say what is lost."""
    supervisor = find(short.worker_of(lasting).parent)
    with Bystander(short.client.session(fresh_id())) as bystander:
        with without_memory(supervisor):
            for _ in range(3):
                for answer in (upload(lasting, LARGE), write(lasting)):
                    assert answer.status == 200
                    assert answer.success and answer.value == LARGE or answer.lost == "all"
                    assert set(map(len, answer.files.values())) <= {LARGE}
        ended = not supervisor.alive()
    bystander.check("supervisor", None)
    assert lasting.exec("globals().get('x')").value == (None if ended else 41)
    assert write(lasting).files["out"] == bytes(LARGE)
