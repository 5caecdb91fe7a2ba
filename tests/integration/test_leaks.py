# SPDX-License-Identifier: MIT
"""Hundreds of sessions and faults later the services hold what they held before."""

import random

import pytest

from support.client import fresh_id
from support.holdings import holdings
from support.processes import FCGI
from support.program import program
from support.server import running
from support.together import at_once, eventually, unchanged

MEGABYTE = 1024 * 1024
POOL = 2

# what becomes of sessions; each code with the deadline that it may need
FATES = {
    "ends well": ("open('f', 'w').write('x')", None),
    "fails": ("1 / 0", None),
    "dies": ("import os; os._exit(3)", None),
    "crashes": ("import ctypes; ctypes.string_at(0)", None),
    "dies later": (program("""
        import threading, os
        threading.Timer(0.1, lambda: os._exit(1)).start()
    """), None),
    "is interrupted": ("while True: pass", 100),
    "is killed": (program("""
        while True:
            try: sum(range(10**6))
            except BaseException: pass
    """), 100),
    "has a value without end": (program("""
        class R:
            def __repr__(self):
                while True: pass
        R()
    """), 100),
    "leaves threads": (program("""
        import threading, time
        for _ in range(5): threading.Thread(target=time.sleep, args=(300,)).start()
    """), None),
    "leaves descriptors": ("held = [open('/dev/null') for _ in range(50)]", None),
    "prints too much": ("print('x' * 3_000_000)", None),
    "writes to every descriptor": (program(r"""
        import os
        for fd in range(3, 64):
            try: os.write(fd, b'\xff' * 64)
            except OSError: pass
    """), None),
    "closes every descriptor": ("import os; os.closerange(0, 64)", None),
}


@pytest.fixture(scope="module")
def worn():
    """An instance that forgets sessions at once, when it has been through everything once."""
    with running(rate_limit=0, pool_size=POOL, session_idle_timeout="1s",
                 interrupt_grace="200ms") as instance:
        yield instance


def live(session, code, timeout_ms):
    """The life of one session: good calls, refused ones, and its fate in between."""
    answers = [session.exec("x = 1", files={"in": b"x" * 5000}),
               session.post(b'{"code": '),
               session.exec(code, timeout_ms=timeout_ms),
               session.post({"code": 1}),
               session.exec("1")]
    assert [answer.status for answer in answers] == [200, 400, 200, 422, 200]


def wear(instance, rounds):
    """Let sessions meet all fates, some at a time, `rounds` times each."""
    fates = list(FATES.values()) * rounds
    random.Random(rounds).shuffle(fates)
    for start in range(0, len(fates), 7):
        at_once([lambda fate=fate: live(instance.client.session(fresh_id()), *fate)
                 for fate in fates[start:start + 7]])


def settled(instance):
    """What the instance holds when no session is left and nothing changes any more."""
    eventually(lambda: not instance.client.sessions(), within=60)
    return unchanged(lambda: holdings(instance))


def test_nothing_is_leaked(worn):
    wear(worn, 2)
    before = settled(worn)
    memory = worn.part(FCGI).memory()
    wear(worn, 16)
    assert settled(worn) == before
    assert not [each for each in worn.tree() if each.state == "Z"]
    assert worn.part(FCGI).memory() - memory < 32 * MEGABYTE
    assert worn.client.exec("6 * 7", fresh_id()).value == 42


def test_a_session_that_is_there_would_be_seen(worn):
    before = settled(worn)
    worn.client.exec("1", fresh_id())
    assert holdings(worn) - before
