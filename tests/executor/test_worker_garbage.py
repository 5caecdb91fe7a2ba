# SPDX-License-Identifier: MIT
"""Native attack code in a worker, as it would treat the channel to its supervisor.

Descriptor 3 is that channel in every worker (executor/worker_wire.h); Python code is as good as
native code at writing there. Whatever it does, its call is answered in time, the files stay, and
nobody else notices.
"""

import time

import pytest

from support.executor import AS_IT_IS
from support.processes import find
from support.program import program
from support.together import eventually, in_background
from support.wires import BROKE_PROTOCOL, CRASHED, RAN, TIMED_OUT

pytestmark = pytest.mark.tiers(AS_IT_IS, "confined")

READY, CALL, RESULT = 1, 2, 3
SLACK = 10  # seconds for a busy machine, beyond the deadline of a call
NONCE = b"n" * 16  # of every call of these tests: also the one thing that an attacker must guess

# what the attacking code can say
WORDS = program("""
    import os, signal, struct, threading, time

    def frame(kind, payload=b"", sequence=None, magic=0x46564956, version=1, flags=0, length=None):
        return struct.pack("<IBBHII", magic, version, kind, flags,
                           number if sequence is None else sequence,
                           len(payload) if length is None else length) + payload

    def claims(status=b"\\0", value=b"42"):
        return b"\\1" + struct.pack("<I", len(status)) + status \\
            + b"\\2" + struct.pack("<I", len(value)) + value

    def say(data):
        while data:
            data = data[os.write(3, data):]

    def later(*calls):
        def run():
            time.sleep(0.3)
            for call in calls:
                call()
        threading.Thread(target=run, daemon=True).start()

    def forever():
        while True:
            time.sleep(1)
""")


@pytest.fixture
def victim(sandbox, canary):
    """A sandbox with a variable and a file; whatever comes, the file is there afterwards."""
    sandbox.call(WORDS + "\nx = 5\nopen('kept', 'w').write('here')")
    yield sandbox
    answer = sandbox.call("sorted(name for name in __import__('os').listdir())")
    assert '"kept"' in answer.value and answer.outcome == RAN and not answer.lost
    assert sandbox.call("6 * 7").value == "42"


def attack(victim, code, timeout_ms=800, grace_ms=300):
    """One call of the attacking code; its answer, which must have come in time."""
    began = time.monotonic()
    # `number` is the sequence that a frame of this call must have
    code = f"number = {victim.channel.sequence + 1}\nopen('made', 'w').write('x')\n" + code
    answer = victim.call(code, timeout_ms=timeout_ms, grace_ms=grace_ms)
    assert time.monotonic() - began < (timeout_ms + grace_ms) / 1000 + SLACK
    return answer


def assert_variables_lost(victim, answer):
    """The worker is another one, and this was said once."""
    assert answer.lost
    assert answer.claims is None
    assert answer.files == {"made": b"x"}
    after = victim.call("x")
    assert after.error == "NameError" and not after.lost


AT_ONCE = {
    "random bytes": "say(os.urandom(4096))",
    "zeros": "say(bytes(4096))",
    "one header of zeros": "say(bytes(16))",
    "text": "say(b'HTTP/1.1 200 OK\\r\\n\\r\\n')",
    "another magic": "say(frame(3, b'n' * 16 + claims(), magic=0x46564957))",
    "another version": "say(frame(3, b'n' * 16 + claims(), version=0))",
    "a flag": "say(frame(3, b'n' * 16 + claims(), flags=0x8000))",
    "READY": "say(frame(1, struct.pack('<I', 1), 0))",
    "READY with its own pid": "say(frame(1, struct.pack('<I', os.getpid()), 0))",
    "PING": "say(frame(8))",
    "PONG": "say(frame(9))",
    "CALL": "say(frame(2, bytes(33)))",
    "type 0": "say(frame(0))",
    "a frame of the session channel": "say(frame(21, bytes(30)))",
    "the largest type": "say(frame(255))",
    "the largest length": "say(frame(3, length=0xffffffff))",
    "a length just over the cap": "say(frame(3, length=16 + (17 << 20) + 1))",
    "a READY that is too long": "say(frame(1, length=5))",
    "another nonce": "say(frame(3, b'm' * 16 + claims()))",
    "a nonce cut short": "say(frame(3, b'n' * 15))",
    "no nonce": "say(frame(3))",
    "another sequence": "say(frame(3, b'n' * 16 + claims(), sequence=number + 1))",
    "the sequence of the last call": "say(frame(3, b'n' * 16 + claims(), sequence=number - 1))",
    "no claims": "say(frame(3, b'n' * 16))",
    "claims that are none": "say(frame(3, b'n' * 16 + b'garbage'))",
    "a claim longer than its frame": "say(frame(3, b'n' * 16 + b'\\1\\xff\\xff\\xff\\xff'))",
    "a claim twice": "say(frame(3, b'n' * 16 + claims() + claims()))",
    "an unknown claim": "say(frame(3, b'n' * 16 + claims() + b'\\x08\\0\\0\\0\\0'))",
    "a status that is none": "say(frame(3, b'n' * 16 + claims(status=b'\\2')))",
    "a status of two bytes": "say(frame(3, b'n' * 16 + claims(status=b'\\0\\0')))",
    "an exception without a type": "say(frame(3, b'n' * 16 + claims(status=b'\\1')))",
    "a result and another": "say(frame(3, b'n' * 16 + claims()) * 2)",
    "a result and half a header": "say(frame(3, b'n' * 16 + claims()) + b'V')",
    "frames without end": "while True: say(frame(1, b'1234', 0))",
    "bytes without end": "while True: say(os.urandom(65536))",
}


@pytest.mark.parametrize("code", AT_ONCE.values(), ids=AT_ONCE)
def test_garbage_ends_the_worker(victim, code):
    answer = attack(victim, f"{code}\nforever()", timeout_ms=20000)
    assert answer.outcome == BROKE_PROTOCOL, answer
    assert answer.runtime_ms < 15000  # its deadline had nothing to do with it
    assert_variables_lost(victim, answer)


WITHOUT_END = {
    "half of a header": "say(frame(3)[:8])",
    "a header": "say(frame(3, length=1000))",
    "half of the largest result":
        "say(frame(3, b'n' * 16, length=16 + (17 << 20)) + bytes(9 << 20))",
    "one byte after the other": """
say(frame(3, length=16 + (17 << 20)))
def drip():
    while True: say(b'x')
threading.Thread(target=drip, daemon=True).start()""",
}


@pytest.mark.parametrize("code", WITHOUT_END.values(), ids=WITHOUT_END)
def test_a_frame_that_does_not_end_ends_with_the_deadline(victim, code):
    answer = attack(victim, f"{code}\nforever()")
    # what the runner says after the interrupt is behind the half that is there, and garbage
    assert answer.outcome in (TIMED_OUT, BROKE_PROTOCOL), answer
    assert_variables_lost(victim, answer)


@pytest.mark.parametrize("code", [
    "say(frame(3, b'n' * 16 + claims()))\ntime.sleep(0.2)",
    "while True: say(frame(3, b'n' * 16 + claims()))",
], ids=["one", "without end"])
def test_a_result_of_its_own_is_a_claim_like_another(victim, code):
    """With the right nonce: that is the worker's to say. What follows it is not."""
    answer = attack(victim, code, timeout_ms=20000)
    if answer.outcome == RAN:
        assert answer.value == "42" and not answer.lost
        answer = victim.call("'x' in globals()")
    # by when the next one came: with the first, in this call, or before it
    assert answer.outcome in (RAN, BROKE_PROTOCOL) and answer.lost
    assert victim.call("x").error == "NameError"


CHANNEL = {
    "closed": "os.close(3)",
    "replaced": "os.dup2(os.open('/dev/null', os.O_RDWR), 3)",
    "shut down": "import socket; socket.socket(fileno=3).shutdown(socket.SHUT_RDWR)",
    "shut down for writing": "import socket; socket.socket(fileno=3).shutdown(socket.SHUT_WR)",
    "all closed": "os.closerange(0, 256)",
}


@pytest.mark.parametrize("then", ["forever()", "pass"], ids=["and stays", "and ends"])
@pytest.mark.parametrize("code", CHANNEL.values(), ids=CHANNEL)
def test_a_worker_that_gives_up_its_channel(victim, code, then):
    answer = attack(victim, f"{code}\n{then}", timeout_ms=20000)
    assert answer.outcome in (CRASHED, BROKE_PROTOCOL), answer
    assert answer.runtime_ms < 15000
    assert_variables_lost(victim, answer)


DEAF = {
    "stops itself": "os.kill(os.getpid(), signal.SIGSTOP)",
    "stops one of its threads": "signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)",
    "blocks every signal":
        "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: sum(range(999))",
    "ignores the interrupt": "signal.signal(signal.SIGINT, signal.SIG_IGN)\nforever()",
    "reads its own channel":
        "while True:\n    try: os.read(3, 4096)\n    except BaseException: pass",
    "computes without end": "sum(range(10 ** 12))",
}


@pytest.mark.parametrize("code", DEAF.values(), ids=DEAF)
def test_a_worker_that_does_not_listen_is_killed(victim, code):
    answer = attack(victim, code)
    assert answer.outcome == TIMED_OUT and answer.signal == 9, answer
    assert 800 <= answer.runtime_ms < 20000
    assert_variables_lost(victim, answer)


BETWEEN = {
    "one byte": "later(lambda: say(b'x'))",
    "half of a header": "later(lambda: say(frame(3)[:8]))",
    "a header": "later(lambda: say(frame(3, length=17 << 20)))",
    "garbage": "later(lambda: say(os.urandom(100)))",
    "a result of the last call": "later(lambda: say(frame(3, b'n' * 16 + claims())))",
    "a result of the next call":
        "later(lambda: say(frame(3, b'n' * 16 + claims(), sequence=number + 1)))",
    "READY": "later(lambda: say(frame(1, struct.pack('<I', os.getpid()), 0)))",
    "the largest length": "later(lambda: say(frame(3, length=0xffffffff)))",
    "PONG": "later(lambda: say(frame(9, sequence=number + 1)))",
    "COPIED": "later(lambda: say(frame(6, b'\\x01', sequence=1)))",
    "RESTORED": "later(lambda: say(frame(7, sequence=1)))",
    "the end of its channel":
        "import socket\nlater(lambda: socket.socket(fileno=3).shutdown(socket.SHUT_RDWR))",
    "its end": "later(lambda: os._exit(1))",
    "its death": "later(lambda: os.kill(os.getpid(), signal.SIGSEGV))",
}


@pytest.mark.parametrize("code", BETWEEN.values(), ids=BETWEEN)
def test_between_calls(victim, code):
    """What nobody asked for ends the worker; the next call has a fresh one and says so."""
    worker = victim.worker()
    assert attack(victim, code).outcome == RAN
    eventually(lambda: find(worker.pid) is None)  # its supervisor has noticed
    answer = victim.call("open('kept').read()")
    assert answer.value == '"here"' and answer.outcome == RAN and answer.lost
    assert victim.call("x").error == "NameError"


def test_between_calls_it_stops_itself(victim):
    """Which shows with the next call."""
    assert attack(victim, "later(lambda: os.kill(os.getpid(), signal.SIGSTOP))").outcome == RAN
    time.sleep(1)
    answer = victim.call("1", timeout_ms=800, grace_ms=300)
    assert answer.outcome == TIMED_OUT and answer.lost and answer.claims is None
    assert victim.call("x").error == "NameError"


DEAF_LATER = {
    "closes its channel": "later(lambda: os.close(3))",
    "replaces its channel": "later(lambda: os.dup2(os.open('/dev/null', os.O_RDWR), 3))",
}


@pytest.mark.parametrize("code", DEAF_LATER.values(), ids=DEAF_LATER)
def test_between_calls_it_goes_deaf(victim, code):
    """It does not say that it is alive, and so a fresh one is sent the next call."""
    assert attack(victim, code).outcome == RAN
    time.sleep(1)
    answer = victim.call("open('ran', 'a').write('x')")
    assert answer.outcome == RAN and answer.lost
    assert victim.call("x").error == "NameError"
    assert victim.call("open('ran').read()").value == '"x"'


def test_output_of_a_flood_is_cut_and_holds_up_nothing(victim):
    answer = attack(victim, program("""
        def flood(descriptor):
            while True: os.write(descriptor, b'x' * 65536)
        for descriptor in 1, 2, 1, 2:
            threading.Thread(target=flood, args=(descriptor,), daemon=True).start()
        time.sleep(0.5)
        'done'
    """), timeout_ms=20000)
    assert answer.outcome == RAN and answer.value == '"done"'
    assert answer.truncated == (True, True)
    assert [len(stream) for stream in answer.output] == [1 << 20, 1 << 20]
    # its threads write on; the next call has its own limit
    again = victim.call("time.sleep(0.5)", max_output=1000)
    assert [len(stream) for stream in again.output] == [1000, 1000]
    assert victim.call("os._exit(0)").outcome == CRASHED


def test_attacks_in_a_row(victim):
    """Each gets a fresh worker; none of them wears the sandbox out."""
    for _ in range(15):
        assert victim.call("import os\nos.write(3, b'garbage of a header')",
                           timeout_ms=20000).outcome == BROKE_PROTOCOL
    assert victim.call("1").outcome == RAN


BESIDES = {
    "half of a header": "say(frame(3)[:8])\nforever()",
    "a frame of the largest length": "say(frame(3, length=0xffffffff))\nforever()",
    "a result that nobody asked for":
        "say(frame(3, b'n' * 16 + claims(), sequence=number + 1))\nforever()",
    "a result with another nonce": "say(frame(3, b'm' * 16 + claims()))\nforever()",
    "frames without end": "while True: say(frame(1, b'1234', 0))",
    "output without end": "while True: os.write(1, b'x' * 65536)",
    "nothing at all": "signal.signal(signal.SIGINT, signal.SIG_IGN)\nforever()",
}


@pytest.mark.parametrize("code", BESIDES.values(), ids=BESIDES)
def test_another_session_works_meanwhile(victim, canary, code):
    """Each of its calls is answered while the attack goes on, and with its own values."""
    attacking = in_background(lambda: attack(victim, code))
    count = 0
    while not attacking.done() or count < 10:
        began = time.monotonic()
        answer = canary.call(f"[song, {count}]", timeout_ms=SLACK * 1000)
        assert answer.value.replace(" ", "") == f'["sings",{count}]' and not answer.lost
        assert time.monotonic() - began < SLACK
        count += 1
    assert attacking.result().outcome in (TIMED_OUT, BROKE_PROTOCOL)
