# SPDX-License-Identifier: MIT
"""An instance in each kind of place, and what must hold around every attempt in one.

In each the server stays well, and a session beside the attempt's own does not notice anything.
"""

import time

import pytest

from support.client import PATIENCE, Client, fresh_id
from support.program import program
from support.server import running
from support.tiers import TIERS
from support.together import eventually

from .surroundings import Surroundings

# limits that attempts reach soon
SETTINGS = {
    "rate_limit": 0,
    "pool_size": 0,
    "max_sessions": 512,
    "session_idle_timeout": "60s",
    "interrupt_grace": "500ms",
    "session_memory": "512M",
    "session_disk": "16M",
    "session_inodes": 2000,
    "slots": 12,
}
HEALTH_DEADLINE = 1.0  # seconds
BEGIN = program("""
    import os, threading
    song = 'sings'
    open('cage', 'w').write(song)
    def look():
        thread = threading.Thread(target=int)  # one can be started whatever others have
        thread.start()
        thread.join()
        return [song, open('cage').read(), os.listdir('.'), os.getpid()]
""")


class WaitingClient(Client):
    """Waits for room where other sessions have left none."""

    def post(self, target, body, content_type="application/json", timeout=PATIENCE):
        """As the other one."""
        def answer():
            one = super(WaitingClient, self).post(target, body, content_type, timeout)
            return one.error_type != "capacity" and one

        return eventually(answer, within=PATIENCE, every=0.3)


@pytest.fixture(scope="session", params=TIERS)
def server(request):
    """An instance in one kind of place after the other."""
    with running(tier=request.param, **SETTINGS) as one:
        one.client = WaitingClient(one.port)
        yield one


@pytest.fixture(scope="module")
def canary(server):
    """A session with a variable, a file and a running count, which no attempt may touch."""
    session = server.client.session(fresh_id())
    session.exec(BEGIN)
    return session


@pytest.fixture
def surroundings(server):
    """What is there before the test's session begins."""
    return Surroundings(server)


@pytest.fixture
def new_session(server):
    """A function that gives one session after the other; they end with the test."""
    sessions = []

    def one_more():
        sessions.append(server.client.session(fresh_id()))
        return sessions[-1]

    yield one_more
    for session in sessions:
        server.end_session(session.name)


@pytest.fixture
def session(new_session):
    """A session of the test's own."""
    return new_session()


def answers_soon(server):
    """True when /health says in time that all is well."""
    began = time.monotonic()
    return server.client.health().status == 200 and time.monotonic() < began + HEALTH_DEADLINE


@pytest.fixture(autouse=True)
def bystanders(request):
    """After the attempt the server is well and the canary is as it was."""
    used_by_the_test = "canary" in request.fixturenames
    if not {"server", "session", "client"} & set(request.fixturenames):
        yield
        return
    server, canary = request.getfixturevalue("server"), request.getfixturevalue("canary")
    before = canary.exec("os.getpid()")
    yield
    # the machine may be busy with something else for once
    assert any(answers_soon(server) for _ in range(3))
    after = canary.exec("look()")
    assert after.value == ["sings", "sings", ["cage"], before.value]
    if not used_by_the_test:
        assert after.session["execution_count"] == before.session["execution_count"] + 1
    assert (after.lost, after.session["created"], after.std_out, after.std_err) \
        == ("none", False, "", "")
