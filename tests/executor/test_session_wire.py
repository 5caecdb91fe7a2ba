# SPDX-License-Identifier: MIT
"""A session channel whose client has no manners: the call may be lost, the sandbox is not."""

import os
import signal
import time

import pytest

from support import wires
from support.executor import AS_IT_IS
from support.must import only_root_can
from support.wires import (DATA, DONE, EXEC, EXEC_FIXED, FILE, RUN, Channel, exec_payload, frame)
from support.together import at_once, eventually, in_background

pytestmark = pytest.mark.tiers(AS_IT_IS, "confined")


@pytest.fixture
def kept(sandbox, canary):
    """The sandbox, with a variable and a file that are there still after whatever comes."""
    sandbox.call("x = 5\nopen('kept', 'w').write('here')")
    yield sandbox
    sandbox.attach()
    answer = sandbox.call("[x, open('kept').read()]")
    assert answer.value.replace(" ", "") == '[5,"here"]' and not answer.lost


GARBAGE = {
    "random bytes": os.urandom(4096),
    "zeros": bytes(4096),
    "text": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "another magic": frame(EXEC, exec_payload("1"), magic=wires.MAGIC),
    "another version": frame(EXEC, exec_payload("1"), version=2),
    "a flag": frame(EXEC, exec_payload("1"), flags=1),
    "no type": frame(0),
    "a type that is none": frame(99),
    "a type of the other direction": frame(DONE, bytes(30)),
    "a file without a call": frame(FILE, b"name"),
    "content without a call": frame(DATA, b"content"),
    "RUN without a call": frame(RUN),
    "RUN with content": frame(EXEC, exec_payload("1")) + frame(RUN, b"x"),
    "RUN of another call": frame(EXEC, exec_payload("1"), 1) + frame(RUN, b"", 2),
    "a file of another call": frame(EXEC, exec_payload("1"), 1) + frame(FILE, b"name", 2),
    "content without a file": frame(EXEC, exec_payload("1")) + frame(DATA, b"content"),
    "a second EXEC before RUN": frame(EXEC, exec_payload("1")) * 2,
    "an EXEC that is too short": frame(EXEC, exec_payload("")[:-1]),
    "an empty EXEC": frame(EXEC),
    "an EXEC with more code than it has": frame(EXEC, exec_payload("12345")[:-1]),
    "an EXEC with less code than it has": frame(EXEC, exec_payload("12345") + b"6"),
    "an EXEC of the largest length": frame(EXEC, b"", length=0xffffffff),
    "a file of the largest length": frame(EXEC, exec_payload("1"))
    + frame(FILE, b"", length=0xffffffff),
    "content of the largest length": frame(EXEC, exec_payload("1")) + frame(FILE, b"name")
    + frame(DATA, b"", length=0x7fffffff),
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_garbage_closes_the_channel_and_nothing_else(kept, garbage):
    kept.attach()
    kept.channel.send(garbage)
    assert kept.channel.is_closed()


def test_sizes_that_wrap_round_are_garbage(kept):
    kept.attach()
    fields = list(EXEC_FIXED.unpack(exec_payload("")))
    fields[9], fields[10], fields[11] = 0xffffffff, 1, 2
    kept.channel.send(frame(EXEC, EXEC_FIXED.pack(*fields) + b"x"))
    assert kept.channel.is_closed()


HALVES = {
    "nothing": b"",
    "one byte": frame(EXEC)[:1],
    "half of a header": frame(EXEC)[:8],
    "a header": frame(EXEC, exec_payload("x = 6"))[:16],
    "half of an EXEC": frame(EXEC, exec_payload("x = 6"))[:40],
    "an EXEC without RUN": frame(EXEC, exec_payload("x = 6")),
    "half of a RUN": frame(EXEC, exec_payload("x = 6")) + frame(RUN)[:15],
    "half of a file": frame(EXEC, exec_payload("x = 6")) + frame(FILE, b"half")
    + frame(DATA, b"content")[:20],
}


@pytest.mark.parametrize("leaves", [True, False], ids=["and leaves", "and waits"])
@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_half_a_call_is_none(kept, half, leaves):
    """Its client leaves, or waits until another one takes the session over."""
    kept.attach()
    kept.channel.send(half)
    if leaves:
        kept.channel.close()
    old = kept.channel
    kept.attach()
    assert kept.call("import os; [x, sorted(os.listdir())]").value.replace(" ", "") \
        == '[5,["kept"]]'
    if not leaves:
        assert old.is_closed()


def test_a_slow_client_holds_up_only_itself(sandbox, canary):
    """One byte after the other, while others are served."""
    call = frame(EXEC, exec_payload("6 * 7")) + frame(RUN)
    for at in range(len(call)):
        sandbox.channel.send(call[at:at + 1])
        if at % 40 == 0:
            assert canary.call("1").value == "1"
    sandbox.channel.sequence = 1
    assert sandbox.channel.finish().value == "42"


def test_a_second_exec_during_a_call_closes_the_channel(kept):
    """The call goes on, until somebody else comes."""
    kept.attach()
    kept.channel.begin("import time; time.sleep(1); x = 5")
    time.sleep(0.2)
    kept.channel.send(frame(EXEC, exec_payload("x = 6"), 2) + frame(RUN, b"", 2))
    assert kept.channel.is_closed()


def test_frames_behind_run_close_the_channel(kept):
    """They came together: whoever sent them did not wait for its answer."""
    kept.attach()
    kept.channel.send(frame(EXEC, exec_payload("import time; time.sleep(1)\nx = 5"))
                      + frame(RUN) + frame(EXEC, exec_payload("x = 6"), 2) + frame(RUN, b"", 2))
    assert kept.channel.is_closed()
    time.sleep(0.3)  # the next channel interrupts the code, which must have begun


def test_a_client_that_leaves_does_not_stop_the_code(executor, sandbox, canary):
    """There may be one that comes back for its effect."""
    sandbox.call("x = 0")
    sandbox.channel.begin("import os, time\ntime.sleep(0.5)\nx = os.write(1, b'12345')\n"
                          "open('done', 'w').close()")
    sandbox.channel.close()
    time.sleep(5)
    sandbox.attach()
    answer = sandbox.call("[x, os.listdir()]")
    assert answer.value.replace(" ", "") == '[5,["done"]]'
    assert (answer.out, answer.files, answer.lost) == ("", {}, False)


def test_a_new_channel_stops_the_call_of_the_old_one(sandbox, canary):
    """Its answer is for nobody; the variables stay."""
    sandbox.call("x = 0")
    sandbox.channel.begin("import time\nfor x in range(1, 3000): time.sleep(0.01)")
    time.sleep(0.3)
    sandbox.attach()
    answer = sandbox.call("0 < x < 2999")
    assert answer.value == "true" and not answer.lost


def test_what_was_lost_without_a_client_is_told_to_the_next(sandbox, canary):
    """Code that does not let itself be stopped is killed."""
    sandbox.call("x = 0")
    sandbox.channel.begin("while True:\n    try:\n        while True: sum(range(999))\n"
                          "    except KeyboardInterrupt: pass")
    time.sleep(0.2)
    sandbox.attach()
    answer = sandbox.call("x")
    assert answer.outcome == wires.RAN and answer.lost and answer.error == "NameError"
    assert not sandbox.call("1").lost


def test_a_client_that_does_not_read_is_waited_for(sandbox, canary):
    """It is given its answer once it reads; others are served meanwhile."""
    sandbox.channel.begin("print('x' * 5_000_000)\nopen('f', 'wb').write(bytes(3_000_000))",
                          max_output=6_000_000)
    for _ in range(10):
        assert canary.call("1").value == "1"
        time.sleep(0.1)
    answer = sandbox.channel.finish()
    assert len(answer.out) == 5_000_001 and answer.files == {"f": bytes(3_000_000)}


def test_many_channels_to_one_sandbox(executor, sandbox, canary):
    """Each new one closes the one before; the last one works."""
    sandbox.call("x = 5")
    replies = at_once([lambda: executor.ask(wires.ATTACH, sandbox.number)] * 20)
    channels = [Channel(*reply.descriptors) for reply in replies]
    sandbox.attach()
    assert all(channel.is_closed() for channel in channels)
    assert sandbox.call("x").value == "5"


def test_an_interrupt_may_come_before_the_code_has_begun(sandbox, canary):
    """It is for this call all the same: the variables stay, and the next call is not hit."""
    sandbox.call("x = 5")
    for _ in range(50):
        answer = sandbox.call("while True: sum(range(99))", timeout_ms=1, grace_ms=20000)
        assert answer.outcome == wires.TIMED_OUT and not answer.lost
        assert answer.error == "KeyboardInterrupt"
        assert sandbox.call("x").value == "5"


def test_interrupts_of_calls_in_a_row_are_told_apart(sandbox, canary):
    """One that may have been late for the call before does not hide the one of this call."""
    sandbox.call("x = 5")
    for _ in range(20):
        answer = sandbox.call("while True: sum(range(99))", timeout_ms=1, grace_ms=20000)
        assert (answer.error, answer.lost) == ("KeyboardInterrupt", False)
    assert sandbox.call("x").value == "5"


def test_an_interrupt_may_come_after_the_code_has_ended(sandbox, canary):
    """It is not for the next call."""
    sandbox.call("x, time = 5, __import__('time')")
    for number in range(100):
        pause = 0.018 + number / 25000
        answer = sandbox.call(f"time.sleep({pause})", timeout_ms=20, grace_ms=20000)
        assert answer.outcome in (wires.RAN, wires.TIMED_OUT) and not answer.lost
        assert sandbox.call("x").value == "5"


@pytest.mark.tiers("confined")
def test_an_interrupt_that_is_late_by_much_strikes_no_other_call(sandbox):
    """Where the launcher interrupts, and has something else to do first."""
    sandbox.call("import time")
    launcher = sandbox.executor.launcher()
    os.kill(launcher.pid, signal.SIGSTOP)
    try:
        answer = sandbox.call("time.sleep(0.5)", timeout_ms=100, grace_ms=20000)
        assert answer.outcome == wires.TIMED_OUT and answer.error is None
        pending = in_background(lambda: sandbox.call("time.sleep(1); 5"))
        time.sleep(0.5)
    finally:
        os.kill(launcher.pid, signal.SIGCONT)
    assert pending.result(60).value == "5"


NO_ROOM, IN_THE_WAY, NOT_WRITTEN = 1, 2, 3

REFUSED_FILES = {
    "a folder in the way": ([("new", b"x"), ("folder", b"x")], IN_THE_WAY, 1),
    "a file in the way": ([("new", b"x"), ("kept/below", b"x")], IN_THE_WAY, 1),
    "a link in the way": ([("new", b"x"), ("link/below", b"x")], IN_THE_WAY, 1),
    "no room": ([("small", b"x"), ("large", bytes(300 << 20))], NO_ROOM, 1),
    "a name that leads out": ([("new", b"x"), ("../new", b"x")], NOT_WRITTEN, 1),
    "a name that is absolute": ([("/tmp/new", b"x")], NOT_WRITTEN, 0),
    "no name": ([("", b"x")], NOT_WRITTEN, 0),
}


@pytest.mark.parametrize("files, reason, which", REFUSED_FILES.values(), ids=REFUSED_FILES)
def test_files_that_cannot_be_placed(kept, files, reason, which):
    """Nothing has run, and the home is as it was."""
    kept.call("import os\nos.mkdir('folder')\nos.symlink('/tmp', 'link')")
    answer = kept.call("x = 6\nopen('ran', 'w')", files)
    assert answer.refused == (reason, which)
    listing = kept.call("sorted(os.listdir()), os.listdir('folder'), os.listdir('/tmp')").value
    assert listing.replace(" ", "") == '[["folder","kept","link"],[],[]]'


def test_the_largest_call(sandbox, canary):
    code = "#" * (16 << 20)
    stdin = b"y" * (16 << 20)
    assert sandbox.call(code[:-24] + "\nlen(open(0).read())    ", stdin=stdin).error is None
    sandbox.channel.send(frame(EXEC, b"", length=EXEC_FIXED.size + (32 << 20) + 1))
    assert sandbox.channel.is_closed()


def test_nothing_is_left_open(executor, sandbox, canary):
    """Channels that came and went leave no descriptor in the launcher or the supervisor."""
    only_root_can("see the descriptors of a supervisor")
    supervisor, launcher = sandbox.supervisor(), executor.launcher()

    def counts():
        return len(supervisor.descriptors()), len(launcher.descriptors())

    before = counts()
    for _ in range(50):
        sandbox.attach()
        sandbox.channel.send(b"garbage that is longer than a header")
        assert sandbox.channel.is_closed()
        sandbox.attach()
        sandbox.call("1", [("f", b"x")])
    eventually(lambda: counts() <= before, within=10)
