# SPDX-License-Identifier: MIT
"""Code that does not end by itself: interrupted at the deadline, killed if that is not enough."""

import time

import pytest

from support.program import program
from support.together import at_once, eventually, in_background

INTERRUPTED = {
    "a loop": "while True: pass",
    "a loop with a body": "while True: sum(range(1000))",
    "a sleep": "time.sleep(999)",
    "a lock": "import threading; lock = threading.Lock(); lock.acquire(); lock.acquire()",
    "a thread that is waited for": program("""
        import threading
        thread = threading.Thread(target=time.sleep, args=(5,))
        thread.start()
        thread.join()
    """),
    "an await": "import asyncio; await asyncio.sleep(999)",
    "a coroutine": "import asyncio; asyncio.run(asyncio.sleep(999))",
    "a regular expression": "import re; re.match(r'(a+)+b', 'a' * 40)",
    "a select": "import select, os; select.select([os.pipe()[0]], [], [])",
    "a read": "import os; os.read(os.pipe()[0], 1)",
    "numpy": "while True: np.sort(np.random.rand(1000))",
}
KILLED = {
    "a sum in C": "sum(range(10**12))",
    "a queue in C": program("""
        import collections, itertools
        collections.deque(itertools.repeat(0), maxlen=0)
    """),
    "a comparison in C": "import itertools; max(itertools.repeat(0))",
    "a swallowed interrupt": program("""
        while True:
            try: time.sleep(1)
            except BaseException: pass
    """),
    "an ignored signal": program("""
        import signal
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True: pass
    """),
    "a blocked signal": program("""
        import signal
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        while True: pass
    """),
    "another handler": program("""
        import signal
        signal.signal(signal.SIGINT, lambda *a: None)
        while True: time.sleep(1)
    """),
    "an endless finally": program("""
        try:
            while True: sum(range(1000))
        finally:
            while True: sum(range(1000))
    """),
    "a stopped process": program("""
        import os, signal
        os.kill(os.getpid(), signal.SIGSTOP)
        time.sleep(99)
    """),
}


@pytest.mark.parametrize("code", INTERRUPTED.values(), ids=INTERRUPTED.keys())
def test_interrupted_code_keeps_its_variables(session, code):
    session.exec("import time; kept = 41")
    before = "print('before')\nopen('so-far', 'w').write('x')\nlate = 1\n"
    answer = session.exec(before + code, timeout_ms=500)
    assert (answer.status, answer.error_type, answer.lost) == (200, "timeout", "none")
    assert answer.std_out == "before\n"
    assert answer.files == {"so-far": b"x"}
    assert 450 <= answer.outcome["code_runtime"] < 30_000
    assert session.value("[kept + late, open('so-far').read()]") == [42, "x"]


@pytest.mark.parametrize("code", KILLED.values(), ids=KILLED.keys())
def test_code_that_ignores_the_interrupt_is_killed_and_the_files_stay(small_session, code):
    session = small_session
    session.exec("import time; kept = 41; open('old', 'w').write('o')")
    before = "print('before', flush=True)\nopen('so-far', 'w').write('x')\n"
    answer = session.exec(before + code, timeout_ms=500)
    assert (answer.status, answer.error_type, answer.lost) == (200, "timeout", "variables")
    assert answer.std_out == "before\n"
    assert answer.files == {"so-far": b"x"}
    answer = session.exec("['kept' in globals(), open('old').read(), open('so-far').read()]")
    assert answer.value == [False, "o", "x"]
    assert (answer.lost, answer.session["created"]) == ("none", False)
    assert answer.session["execution_count"] == 3


def test_the_answer_of_killed_code_comes_after_deadline_and_grace(session):
    began = time.monotonic()
    answer = session.exec("sum(range(10**12))", timeout_ms=300)
    assert answer.error_type == "timeout"
    assert 2.2 <= time.monotonic() - began < 30


def test_cleaning_up_after_the_interrupt_is_possible(session):
    answer = session.exec(program("""
        try:
            while True: sum(range(1000))
        finally:
            print('cleaned up')
    """), timeout_ms=500)
    assert (answer.error_type, answer.std_out, answer.lost) == ("timeout", "cleaned up\n", "none")


def test_code_that_ends_within_the_grace_was_still_too_late(session):
    answer = session.exec(program("""
        try:
            while True: sum(range(1000))
        except KeyboardInterrupt: pass
        'made it'
    """), timeout_ms=500)
    assert (answer.error_type, answer.lost) == ("timeout", "none")


def test_another_error_after_the_interrupt_is_still_a_time_out(session):
    answer = session.exec(program("""
        try:
            while True: sum(range(1000))
        except KeyboardInterrupt: 1 / 0
    """), timeout_ms=500)
    assert answer.error_type == "timeout"
    assert session.value("1") == 1


def test_no_interrupt_reaches_a_later_call(session):
    for _ in range(20):
        session.exec("import time; time.sleep(0.02)", timeout_ms=20)
    for _ in range(20):
        answer = session.exec("sum(range(10000))")
        assert answer.success, answer


def test_code_below_its_deadline_is_left_alone(session):
    assert session.value("import time; time.sleep(1); 'done'", timeout_ms=60_000) == "done"


def test_the_default_deadline_is_a_setting(small_session):
    answer = small_session.exec("import time; time.sleep(60)")
    assert answer.error_type == "timeout"
    assert 1900 <= answer.outcome["code_runtime"] < 30_000


def test_the_longest_deadline_is_a_setting(small_session):
    assert small_session.value("6 * 7", timeout_ms=5000) == 42
    answer = small_session.exec("1", timeout_ms=5001)
    assert (answer.status, answer.error_type) == (422, "validation")


def test_waiting_in_the_queue_is_not_counted_as_running(session):
    session.exec("import time")
    running = in_background(lambda: session.exec("time.sleep(3)"))
    eventually(lambda: session.client.sessions()[session.name]["state"] == "busy")
    assert session.value("time.sleep(0.2); 'ran'", timeout_ms=2000) == "ran"
    assert running.result(60).success


def test_a_call_waits_for_one_that_times_out_and_then_runs(forgetful_session):
    session = forgetful_session
    session.exec("import time; kept = 1")
    running = in_background(lambda: session.exec("sum(range(10**12))", timeout_ms=1000))
    eventually(lambda: session.client.sessions()[session.name]["state"] == "busy")
    answer = session.exec("'kept' in globals()")
    assert (answer.value, answer.lost) == (False, "none")
    ended = running.result(60)
    assert (ended.error_type, ended.lost) == ("timeout", "variables")


def test_time_outs_in_many_sessions_at_once_are_each_their_own(new_session):
    sessions = [new_session() for _ in range(8)]
    canary = new_session()
    canary.exec("alive = 1")
    answers = at_once([lambda s=s: s.exec("sum(range(10**12))", timeout_ms=500) for s in sessions])
    assert {(answer.error_type, answer.lost) for answer in answers} == {("timeout", "variables")}
    assert canary.value("alive") == 1
    for session in sessions:
        assert session.value("6 * 7") == 42
