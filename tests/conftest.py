# SPDX-License-Identifier: MIT
"""The instances of the server that the tests share, and sessions in them.

Starting an instance takes seconds, so one with the same settings serves all tests that can do
with it. Tests that kill parts of an instance, or count what it holds, start their own.
"""

import contextlib
import os

import pytest

from support import processes
from support.client import fresh_id
from support.server import running
from support.together import eventually

# small enough to be reached in no time, and not the defaults in anything
SMALL = {
    "rate_limit": 0,
    "pool_size": 2,
    "exec_timeout": "2s",
    "max_exec_timeout": "5s",
    "interrupt_grace": "500ms",
    "max_code": "8K",
    "max_stdin": "4K",
    "max_files": 3,
    "max_file_size": "64K",
    "max_output": "4K",
    "max_result": "1K",
    "max_output_files": 5,
    "session_memory": "256M",
    "session_disk": "1M",
    "session_inodes": 200,
    "session_threads": 16,
    "checkpoint": "off",
}


@pytest.fixture(scope="session", autouse=True)
def orphans_stay_in_sight():
    """Keep processes that lose their parent below this one, where their instance's end shows."""
    processes.become_subreaper()


@pytest.fixture(scope="session")
def server():
    """The instance that most tests use: the defaults, but without a rate limit."""
    # Where sessions live in slots, one that is over gives its slot to the next.
    rest = "30s" if os.environ.get("VIVARIUM_TIER") == "confined" else "90s"
    with running(rate_limit=0, max_sessions=512, session_idle_timeout=rest) as instance:
        yield instance


@pytest.fixture(scope="session")
def stock():
    """An instance with no setting changed."""
    with running() as instance:
        yield instance


@pytest.fixture(scope="session")
def small():
    """An instance with small limits for the code and its files."""
    with running(**SMALL) as instance:
        yield instance


@pytest.fixture(scope="session")
def forgetful():
    """An instance without checkpoints: what a worker had in memory is lost with it."""
    with running(rate_limit=0, session_idle_timeout="60s", checkpoint="off") as instance:
        yield instance


@pytest.fixture(scope="session")
def brief():
    """An instance with room for few sessions, which it forgets soon; it keeps none ready."""
    with running(
        rate_limit=0,
        pool_size=0,
        max_sessions=5,
        max_queued=2,
        max_queue_wait="2s",
        session_idle_timeout="2s",
    ) as instance:
        yield instance


@pytest.fixture(scope="module")
def _short():
    with running(rate_limit=0, pool_size=1) as instance:
        yield instance


@pytest.fixture
def short(_short):
    """An instance of the file's own, for tests that take from it what it needs.

    It keeps one sandbox ready, and is well again after each test by itself.
    """
    yield _short
    _short.wait_until_healthy()
    eventually(lambda: _short.client.exec("1", fresh_id()).status == 200)


@pytest.fixture
def lasting(short):
    """A session in it with a variable."""
    session = short.client.session(fresh_id())
    assert session.exec("x = 41").success
    return session


@pytest.fixture
def start():
    """A function that starts an instance of the test's own with the settings given to it."""
    with contextlib.ExitStack() as stack:
        yield lambda **settings: stack.enter_context(running(**settings))


@pytest.fixture
def client(server):
    """A client of the shared instance."""
    return server.client


@pytest.fixture
def session_id():
    """A session id that nothing has used."""
    return fresh_id()


@pytest.fixture
def session(client):
    """A session of the test's own, which its first call begins."""
    return client.session(fresh_id())


@pytest.fixture
def forgetful_session(forgetful):
    """The same in the instance without checkpoints."""
    return forgetful.client.session(fresh_id())


@pytest.fixture
def new_session(client):
    """A function that gives one session after the other."""
    return lambda: client.session(fresh_id())


@pytest.fixture(scope="module")
def shared(server):
    """A session that the tests of one file use in turn, where none leaves what matters."""
    return server.client.session(fresh_id())


@pytest.fixture
def small_session(small):
    """A session in the instance with small limits."""
    return small.client.session(fresh_id())
