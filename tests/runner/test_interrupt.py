# SPDX-License-Identifier: MIT
"""SIGINT, which a supervisor sends at the deadline: it stops user code and nothing else."""

import threading
import time

import pytest

INTERRUPTED = {
    "a loop": "print('go', flush=True)\nwhile True: pass",
    "a loop with a body": "print('go')\nwhile True: sum(range(1000))",
    "a sleep": "import time\nprint('go')\ntime.sleep(999)",
    "a lock": "import threading\nl = threading.Lock(); l.acquire()\nprint('go')\nl.acquire()",
    "a join": "import threading, time\n"
              "t = threading.Thread(target=time.sleep, args=(99,), daemon=True); t.start()\n"
              "print('go')\nt.join()",
    "an expression": "import re\nprint('go') or re.match(r'(a+)+b', 'a' * 60)",
    "a blocking read": "import os\nprint('go')\nos.read(os.pipe()[0], 1)",
    "an await": "import asyncio\nprint('go')\nawait asyncio.sleep(999)",
    "a busy coroutine": "async def f():\n    print('go')\n    while True: pass\nawait f()",
    "asyncio.run": "import asyncio\nasync def f():\n    print('go')\n"
                   "    await asyncio.sleep(999)\nasyncio.run(f())",
    "a busy asyncio.run": "import asyncio\nasync def f():\n    print('go')\n"
                          "    while True: pass\nasyncio.run(f())",
    "a repr": "class R:\n    def __repr__(self):\n        print('go')\n"
              "        while True: pass\nR()",
    "a nested repr": "class R:\n    def __repr__(self):\n        print('go')\n"
                     "        while True: pass\n[1, {'a': R()}]",
    "deep recursion": "import sys\ndef f(n):\n    if n: f(n - 1)\n    print('go')\n"
                      "    while True: pass\nf(sys.getrecursionlimit() - 20)",
}


@pytest.mark.parametrize("code", INTERRUPTED.values(), ids=INTERRUPTED.keys())
def test_code_is_interrupted_and_the_session_lives(worker, code):
    worker.run("kept = 41")
    worker.send("late = 1\n" + code)
    worker.wait_for("go")
    time.sleep(0.02)
    worker.interrupt()
    result = worker.receive()
    assert result.error == "KeyboardInterrupt"
    assert "<vivarium>" not in result.message
    assert result.line is not None and result.context
    assert result.traceback.endswith("KeyboardInterrupt")
    assert (result.out, result.err) == ("go\n", "")
    assert worker.value("kept + late") == 42


def test_code_that_catches_every_recursion_error(worker):
    """From Python 3.12 on; before it, no exception but that can be raised at the limit."""
    if worker.value("import sys; sys.version_info >= (3, 12)"):
        worker.send("def f():\n    while True:\n        try: f()\n"
                    "        except RecursionError: pass\nprint('go')\nf()")
        worker.wait_for("go")
        time.sleep(0.1)
        worker.interrupt()
        assert worker.receive().error == "KeyboardInterrupt"


def test_an_interrupted_await_shows_where_it_stood(worker):
    worker.send("import asyncio\nasync def f():\n    print('go')\n"
                "    await asyncio.sleep(999)\nawait f()")
    worker.wait_for("go")
    time.sleep(0.02)
    worker.interrupt()
    assert worker.receive().line == 4


@pytest.mark.parametrize("resist", [
    "class Bad(Exception):\n    def __str__(self):\n        print('go')\n        while True: pass",
    "class Bad(Exception):\n    @property\n    def __cause__(self):\n        print('go')\n"
    "        while True: pass",
    "class Note:\n    def __str__(self):\n        print('go')\n        while True: pass\n"
    "class Bad(Exception): __notes__ = [Note()]",
])
def test_an_exception_that_is_never_shown(worker, resist):
    worker.run("kept = 1")
    worker.send(f"{resist}\nraise Bad")
    worker.wait_for("go")
    worker.interrupt()
    result = worker.receive()
    assert result.error in ("KeyboardInterrupt", "Bad")
    assert result.message.startswith("PythonError: ")
    assert worker.value("kept") == 1


def test_an_interrupted_str_is_a_keyboard_interrupt(worker):
    worker.send("class Bad(Exception):\n    def __str__(self):\n        print('go')\n"
                "        while True: pass\nraise Bad")
    worker.wait_for("go")
    time.sleep(0.02)
    worker.interrupt()
    result = worker.receive()
    assert (result.error, result.line) == ("KeyboardInterrupt", 4)


def test_a_flush_that_never_ends(worker):
    worker.send("import sys\nclass S:\n    def write(self, text): pass\n"
                "    def flush(self):\n        sys.__stdout__.write('go')\n"
                "        while True: pass\nsys.stdout = S()\n5")
    worker.wait_for("go")
    worker.interrupt()
    assert worker.receive().value == 5
    assert worker.run("print('next')").out == "next\n"


def test_cleaning_up_is_possible_and_the_code_may_go_on(worker):
    worker.send("try:\n    print('go')\n    while True: pass\n"
                "except KeyboardInterrupt: pass\n'went on'")
    worker.wait_for("go")
    worker.interrupt()
    assert worker.receive().value == "went on"


def test_each_interrupt_counts_while_code_runs(worker):
    worker.send("for i in 'ab':\n    try:\n        print(i)\n        while True: pass\n"
                "    except KeyboardInterrupt: pass\nprint('c')\nwhile True: pass")
    for mark in "abc":
        worker.wait_for(mark)
        time.sleep(0.02)
        worker.interrupt()
    assert worker.receive().error == "KeyboardInterrupt"


def test_interrupts_between_calls_are_ignored(worker):
    worker.run("x = 1")
    for _ in range(5):
        worker.interrupt()
        worker.interrupt()
        time.sleep(0.01)
        assert worker.value("sum(range(1000)) and x") == 1


def test_a_late_interrupt_that_was_blocked_is_ignored(worker):
    worker.run("import signal, os\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
               "os.kill(os.getpid(), signal.SIGINT)")
    assert worker.value("[sum(range(10000)), 5][1]") == 5


def test_an_interrupt_before_the_code_begins_is_not_lost(worker):
    worker.run("import os, sys\nclass S:\n    def __del__(self): os.kill(os.getpid(), 2)\n"
               "sys.stdout = S()")  # ends when the next call puts back the real one
    result = worker.run("print('ran')")
    assert (result.error, result.line, result.out) == ("KeyboardInterrupt", None, "")
    assert worker.run("print('ran')").out == "ran\n"


def test_signals_that_an_earlier_call_blocked(worker):
    worker.run("import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))")
    worker.send("print('go')\nwhile True: pass")
    worker.wait_for("go")
    worker.interrupt()
    assert worker.receive().error == "KeyboardInterrupt"


def test_a_handler_of_the_code_serves_only_its_own_call(worker):
    worker.run("import signal, time\nseen = []\nsignal.signal(2, lambda *a: seen.append(1))")
    worker.interrupt()
    time.sleep(0.05)
    worker.send("print('go')\nwhile True: pass")
    worker.wait_for("go")
    worker.interrupt()
    assert worker.receive().error == "KeyboardInterrupt"
    assert worker.value("seen") == []
    worker.send("signal.signal(2, lambda *a: seen.append(2))\nprint('go')\n"
                "while not seen: pass\n5")
    worker.wait_for("go")
    worker.interrupt()
    assert worker.receive().value == 5


def test_an_interrupt_by_the_code_itself(worker):
    code = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nwhile True: pass"
    assert worker.run(code).error == "KeyboardInterrupt"
    assert worker.run("import _thread\n_thread.interrupt_main()\nwhile True: pass").error \
        == "KeyboardInterrupt"


@pytest.mark.parametrize("code", [
    "1 + 1", "x = 1", "1 / 0", "print(end='')", "list(range(2000))", "'x' * 100_000", "1 +",
    "import sys; sys.exit(0)", "import asyncio\nawait asyncio.sleep(0)",
    "class R:\n    def __repr__(self): return 'r'\nR()",
])
def test_a_storm_of_interrupts_breaks_nothing(worker, code):
    """Wherever an interrupt strikes, the call has its own outcome or a KeyboardInterrupt."""
    calm = worker.run(code)
    on = True

    def blow():
        while on:
            worker.interrupt()
            time.sleep(0.00005)

    storm = threading.Thread(target=blow)
    storm.start()
    try:
        for _ in range(150):
            result = worker.run(code)
            if result.error == "KeyboardInterrupt":
                assert result.message.startswith("PythonError: ")
            else:
                assert (result.error, result.json) == (calm.error, calm.json)
    finally:
        on = False
        storm.join()
    worker.run("")
    again = worker.run(code)
    assert (again.error, again.json) == (calm.error, calm.json)
