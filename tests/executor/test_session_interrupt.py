# SPDX-License-Identifier: MIT
"""INTERRUPT on a session channel: it ends the call that it is for, and no other."""

import os
import signal
import time

import pytest

from support import wires
from support.executor import AS_IT_IS
from support.wires import INTERRUPT, frame

pytestmark = pytest.mark.tiers(AS_IT_IS, "confined")

# The first statement: CPython 3.11 takes an exception at a jump back for one of the instruction
# in front of the place that is jumped to, which is to be in the try statement as well.
STUBBORN = ("while True:\n    try:\n        n = 0\n        while True: sum(range(999))\n"
            "    except KeyboardInterrupt: print('caught')")


def interrupt(channel, sequence=None):
    """One INTERRUPT, for the call that was begun last."""
    channel.send(frame(INTERRUPT, b"", channel.sequence if sequence is None else sequence))


@pytest.fixture
def used(sandbox, canary):
    """The sandbox, with a variable."""
    sandbox.call("import time; x = 5")
    return sandbox


def test_the_code_raises_keyboard_interrupt(used):
    used.channel.begin("print('begun')\nopen('f', 'w').write('here')\ntime.sleep(60)")
    time.sleep(0.3)
    interrupt(used.channel)
    answer = used.channel.finish()
    assert (answer.outcome, answer.error, answer.lost) == (wires.RAN, "KeyboardInterrupt", False)
    assert answer.out == "begun\n" and answer.files == {"f": b"here"}
    assert answer.runtime_ms < 30000
    assert used.call("x").value == "5"


def test_code_may_catch_it_and_end(used):
    used.channel.begin("try:\n    time.sleep(60)\nexcept KeyboardInterrupt: pass\n'tidy'")
    time.sleep(0.3)
    interrupt(used.channel)
    answer = used.channel.finish()
    assert (answer.outcome, answer.value, answer.error) == (wires.RAN, '"tidy"', None)


def test_code_that_goes_on_is_killed_after_the_grace(used):
    """Further interrupts make the grace no longer."""
    used.channel.begin(STUBBORN, grace_ms=700)
    time.sleep(0.3)
    for _ in range(10):
        interrupt(used.channel)
        time.sleep(0.1)
    answer = used.channel.finish()
    assert (answer.outcome, answer.lost, answer.claims) == (wires.INTERRUPTED, True, None)
    assert answer.out == "caught\n"
    answer = used.call("x")
    assert answer.error == "NameError" and not answer.lost


def test_code_that_waits_in_c_is_killed_after_the_grace(used):
    used.channel.begin("import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [2])\n"
                       "time.sleep(60)", grace_ms=500)
    time.sleep(0.3)
    interrupt(used.channel)
    assert used.channel.finish().outcome == wires.INTERRUPTED


def test_the_deadline_that_came_first_stays_a_time_out(used):
    used.channel.begin(STUBBORN, timeout_ms=300, grace_ms=1500)
    time.sleep(1)
    interrupt(used.channel)
    assert used.channel.finish().outcome == wires.TIMED_OUT


def test_the_deadline_that_comes_second_is_none(used):
    used.channel.begin(STUBBORN, timeout_ms=1000, grace_ms=1500)
    time.sleep(0.3)
    interrupt(used.channel)
    assert used.channel.finish().outcome == wires.INTERRUPTED


def test_one_between_calls_is_for_nobody(used):
    for sequence in (0, 1, 2, 3, 0xffffffff):
        interrupt(used.channel, sequence)
    assert used.call("time.sleep(0.5); x").value == "5"


def test_one_for_another_call_is_for_nobody(used):
    used.channel.begin("time.sleep(1); x")
    time.sleep(0.3)
    for sequence in (0, 1, 3, 0xffffffff):
        interrupt(used.channel, sequence)
    assert used.channel.finish().value == "5"


def test_it_may_come_together_with_the_call(used):
    """Before the code has begun, that is: it strikes it as soon as it has."""
    for _ in range(20):
        used.channel.sequence += 1
        number = used.channel.sequence
        used.channel.send(
            frame(wires.EXEC, wires.exec_payload("time.sleep(60)", grace_ms=20000), number)
            + frame(wires.RUN, b"", number) + frame(INTERRUPT, b"", number))
        answer = used.channel.finish()
        assert (answer.outcome, answer.error) == (wires.RAN, "KeyboardInterrupt")
        assert not answer.lost
    assert used.call("x").value == "5"


def test_it_may_come_while_a_new_worker_is_made(used):
    assert used.call("import os; os._exit(3)").outcome == wires.CRASHED
    used.channel.begin("import time; time.sleep(60)", grace_ms=20000)
    interrupt(used.channel)
    answer = used.channel.finish()
    assert (answer.outcome, answer.error) == (wires.RAN, "KeyboardInterrupt")


def test_it_may_cross_the_end_of_its_call(used):
    """The next call, which is on its heels, is not struck."""
    for number in range(150):
        used.channel.begin(f"time.sleep({0.002 + number / 1000000}); x", grace_ms=20000)
        time.sleep(0.002)
        interrupt(used.channel)
        first = used.channel.finish()
        assert first.value == "5" or first.error == "KeyboardInterrupt"
        used.channel.begin("time.sleep(0.001); x")
        interrupt(used.channel, used.channel.sequence - 1)
        second = used.channel.finish()
        assert (second.value, second.lost) == ("5", False)


def test_one_with_content_closes_the_channel(used):
    used.channel.begin("time.sleep(1)")
    used.channel.send(frame(INTERRUPT, b"x", used.channel.sequence))
    assert used.channel.is_closed()


@pytest.mark.tiers("confined")
def test_one_that_the_launcher_passes_on_late_strikes_no_other_call(used):
    """The next call waits until it is known to have struck."""
    launcher = used.executor.launcher()
    os.kill(launcher.pid, signal.SIGSTOP)
    try:
        used.channel.begin("time.sleep(0.5); x", grace_ms=20000)
        time.sleep(0.2)
        interrupt(used.channel)
        assert used.channel.finish().value == "5"
        used.channel.begin("time.sleep(0.5); x + 1")
        time.sleep(0.2)
    finally:
        os.kill(launcher.pid, signal.SIGCONT)
    answer = used.channel.finish()
    assert (answer.value, answer.error) == ("6", None)
