# SPDX-License-Identifier: MIT
"""Sessions that attack their checkpoints, or have no room for them: what is answered is true, and
nothing is left.

The copy of a worker is made by code in the worker's memory, which the session can change. So
most of these sessions change the function by which that code makes its system calls.
"""

import os
import platform
import signal
import time

import pytest

from support.executor import NOBODY
from support.limits import without_processes
from support.must import few_can, not_with_slots, only_root_can
from support.program import program
from support.together import eventually
from support.wires import CRASHED, FRAME, FRAME_MAGIC, RAN

CRASH = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
LIMIT = 30  # seconds, for what is done after five on a machine that is not busy

# syscall(3) as it is, but that errors are returned as the kernel does
REAL = "4889f8 4889f7 4889d6 4889ca 4d89c2 4d89c8 4c8b4c2408 0f05 c3"
REAL_CODE = bytes.fromhex(REAL)
# what replaces it: `cmp edi, NUMBER; jne REAL`, and then
NO_CLONE = "83ff38 7506 b839300000 c3" + REAL  # mov eax, 12345; ret
NO_PARKING = "83ff6e 7502 ebfe" + REAL  # jmp to itself
DEAD_ON_WAKING = "81ff80000000 7502 0f0b" + REAL  # rt_sigtimedwait: ud2
MUTE_ON_WAKING = "81ff80000000 7502 ebfe" + REAL
MILLISECOND = 1000000
HAS_THREADS, TOO_MUCH_MEMORY, NOT_COPIED = 1, 4, 5  # common/session_wire.h


PATCH = program("""
    import ctypes
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    def patch(code):
        code = bytes.fromhex(code)
        page = libc.mmap(None, ctypes.c_size_t(4096), 7, 0x22, -1, ctypes.c_long(0))
        ctypes.memmove(page, code, len(code))
        there = ctypes.cast(libc.syscall, ctypes.c_void_p).value
        assert libc.mprotect(ctypes.c_void_p(there & ~4095), ctypes.c_size_t(8192), 7) == 0
        jump = b'\\x48\\xb8' + page.to_bytes(8, 'little') + b'\\xff\\xe0'
        ctypes.memmove(there, jump, len(jump))
""") + "\n"


def _lying(child, parent):
    """Code by which the clone is made and said to have failed, after a sleep of `parent` ns.

    The new process sleeps for `child` ns and then asks to be parked until it is.
    """
    clone, park, other, times = 16, 80, 160, 256

    def nanosleep(at, which):
        """The call, at that place; `lea rdi` counts from its own end."""
        to = times + 16 * which - at - 12
        return (bytes.fromhex("b823000000 488d3d") + to.to_bytes(4, "little", signed=True)
                + bytes.fromhex("31f6 0f05"))

    code = bytearray(times + 32)

    def put(place, *parts):
        for part in parts:
            piece = part(place) if callable(part) else bytes.fromhex(part)
            code[place:place + len(piece)] = piece
            place += len(piece)

    # cmp edi, clone; je; cmp edi, getppid; je; jmp
    put(0, "83ff38 740b 83ff6e 7446 e991000000")
    put(clone, REAL[:-3], "85c0 7501 c3", lambda at: nanosleep(at, 1), "b8ffffffff c3")
    put(park, "5356 4889f3", lambda at: nanosleep(at, 0),
        "b86e000000 4889df 0f05 85c0 75f2 5e5b c3")
    put(other, REAL)
    put(times, (bytes(8) + child.to_bytes(8, "little")).hex(),
        (bytes(8) + parent.to_bytes(8, "little")).hex())
    return code.hex()


def _telling(data):
    """Code by which the worker writes `data` to its channel before it says that it was copied."""
    def number(value):
        return value.to_bytes(4, "little")

    write = (bytes.fromhex("50 b801000000 bf03000000 488d35") + number(9 + len(REAL_CODE))
             + bytes.fromhex("ba") + number(len(data)) + bytes.fromhex("0f05 58 c3"))
    made = REAL_CODE[:-1] + bytes.fromhex("85c0 7f01 c3") + write  # test eax, eax; jg; ret
    return (bytes.fromhex("83ff38 75") + bytes([len(made)]) + made + REAL_CODE + data).hex()


@pytest.fixture(name="begin")
def _begin(start):
    """A function that makes a sandbox under the settings given, which leaves no process."""
    not_with_slots("without a PID namespace no checkpoints are made")
    taken = []

    def begin(**settings):
        sandbox = start(pool_size=0, checkpoint_delay="10ms", **settings).acquire()
        # the one that the start is tried with may still be about
        eventually(lambda: len(sandbox.executor.supervisors()) == 1, within=LIMIT)
        sandbox.pid1, = sandbox.executor.supervisors()
        taken.append(sandbox)
        return sandbox

    yield begin
    for sandbox in taken:
        inside = [*_inside(sandbox), sandbox.pid1]
        sandbox.end()
        eventually(lambda inside=inside: not any(each.alive() for each in inside))


@pytest.fixture(name="sandbox")
def _sandbox(begin):
    """One that the attacking code can attack."""
    if platform.machine() != "x86_64":
        few_can("the attacking code is for x86-64")
    return begin()


@pytest.mark.parametrize("user", [None, NOBODY], ids=["as the test", "as an ordinary user"])
def test_whoever_runs_it(start, user):
    not_with_slots("without a PID namespace no checkpoints are made")
    if user:
        only_root_can("run it as another user")
    sandbox = start(user=user, pool_size=1, checkpoint_delay="10ms").acquire()

    def is_restored():
        sandbox.call("x = 1")
        time.sleep(0.3)
        return sandbox.call(CRASH).restored_to

    assert eventually(is_restored, within=LIMIT)
    assert sandbox.call("x").value == "1"


def _inside(sandbox):
    """The processes of its session beside PID 1, zombies too."""
    return [each for each in sandbox.executor.tree() if each.parent == sandbox.pid1.pid]


def _parked(sandbox):
    return [each for each in _inside(sandbox) if each.parked()]


def _live(sandbox):
    """The worker that takes its calls, beside a copy that is parked."""
    return next(each for each in _inside(sandbox) if not each.parked())


def _rest(sandbox):
    """Wait until a copy has stayed for a while; which it is."""
    seen = [None]

    def stays():
        time.sleep(0.2)
        inside, parked = _inside(sandbox), _parked(sandbox)
        before, seen[0] = seen[0], parked[0].pid if parked else None
        return len(inside) == 2 and len(parked) == 1 and before == parked[0].pid

    eventually(stays, within=LIMIT)
    return _parked(sandbox)[0]


def _soon(sandbox, code):
    """A call that is answered in time."""
    began = time.monotonic()
    answer = sandbox.call(code)
    assert time.monotonic() - began < LIMIT
    return answer


def _copied_then(sandbox, code):
    """Let it have a checkpoint in which x is ["first"], and run that in the next call."""
    sandbox.call("x = ['first']")
    kept = sandbox.channel.sequence
    _rest(sandbox)
    sandbox.call(PATCH + "x.append('second')\n" + f"patch('{code}')")
    time.sleep(0.3)
    return kept


@pytest.mark.parametrize("code", (NO_CLONE, NO_PARKING), ids=("not made", "does not park"))
def test_a_copy_that_is_said_to_be_made(sandbox, code):
    kept = _copied_then(sandbox, code)
    answer = _soon(sandbox, "x")
    assert (answer.outcome, answer.value.replace(" ", "")) == (RAN, '["first"]')
    assert (answer.lost, answer.restored_to) == (True, kept)
    _rest(sandbox)
    assert sandbox.call("x").restored_to == 0


# COPIED of the second CHECKPOINT, the first that is made after the change.
COPIED = FRAME.pack(FRAME_MAGIC, 1, 6, 0, 2, 1) + b"\1"
TOLD = {
    "COPIED, which comes twice": COPIED,
    "COPIED, which comes thrice": COPIED * 2,
    "half of a header": COPIED[:8],
    "COPIED of another checkpoint": FRAME.pack(FRAME_MAGIC, 1, 6, 0, 7, 1) + b"\1",
    "garbage": bytes(range(100)),
}


@pytest.mark.parametrize("data", TOLD.values(), ids=TOLD.keys())
def test_a_worker_that_says_too_much_while_it_is_copied(sandbox, data):
    """It is ended, and what is told of the state that the session goes on from is so."""
    sandbox.call("x = ['first']")
    kept = sandbox.channel.sequence
    _rest(sandbox)
    liar = _live(sandbox)
    sandbox.call(PATCH + "x.append('second')\n" + f"patch('{_telling(data)}')")
    eventually(lambda: not liar.alive(), within=LIMIT)
    answer = _soon(sandbox, "globals().get('x')")
    assert answer.outcome == RAN
    assert (answer.restored_to, answer.lost, answer.value.replace(" ", "")) in (
        (kept, True, '["first"]'),
        (kept + 1, False, '["first","second"]'),  # from the copy, whose copies lie as it did
        (0, True, "null"))  # after five of these
    assert _soon(sandbox, "6 * 7").value == "42"


@pytest.mark.parametrize("code", (MUTE_ON_WAKING, DEAD_ON_WAKING), ids=("mute", "dead"))
def test_a_copy_that_is_of_no_use(sandbox, code):
    _copied_then(sandbox, code)
    _rest(sandbox)
    answer = _soon(sandbox, CRASH)
    assert (answer.outcome, answer.lost, answer.restored_to) == (CRASHED, True, 0)
    assert sandbox.call("'x' in globals()").value == "false"
    _rest(sandbox)


def test_copies_that_are_denied_leave_nothing(sandbox):
    sandbox.call(PATCH + f"patch('{_lying(0, 50 * MILLISECOND)}')")
    time.sleep(0.5)
    before = len(sandbox.pid1.descriptors())
    for _ in range(5):
        answer = sandbox.call("0")
        assert (answer.checkpoint, answer.lost) == (0, False) and answer.skipped != 0
        time.sleep(0.3)
        assert len(_inside(sandbox)) == 1
    assert len(sandbox.pid1.descriptors()) == before


def test_a_process_that_waits_to_pass_for_a_copy(sandbox):
    """It is not there any more when the restored worker is copied."""
    kept = _copied_then(sandbox, _lying(100 * MILLISECOND, 0))
    eventually(lambda: len(_inside(sandbox)) == 3, within=LIMIT)
    answer = sandbox.call(CRASH)
    assert (answer.outcome, answer.lost, answer.restored_to) == (CRASHED, True, kept)
    for _ in range(5):
        answer = sandbox.call("print(x)\n" + CRASH)
        assert (answer.out, answer.lost, answer.restored_to) == ("['first']\n", False, kept)
    _rest(sandbox)


def test_workers_killed_from_outside_many_times(sandbox):
    """Nothing is left of any of them, nor of the copies."""
    sandbox.call("x = 1")
    kept = sandbox.channel.sequence
    _rest(sandbox)
    before = len(sandbox.pid1.descriptors())
    for _ in range(10):
        live = _live(sandbox)
        os.kill(live.pid, signal.SIGKILL)
        eventually(lambda gone=live: not gone.alive())
        answer = sandbox.call("x")
        assert (answer.value, answer.lost, answer.restored_to) == ("1", False, kept)
        kept = sandbox.channel.sequence
        _rest(sandbox)
    assert len(sandbox.pid1.descriptors()) == before


def _crash(sandbox, *codes):
    """Calls with pauses in between, in which copies are made, and one in which it dies.

    The last answer; None when a copy has come too late, as on a busy machine it may.
    """
    for code in codes:
        answer = sandbox.call(code)
        time.sleep(0.3)
        if code is not codes[0] and answer.checkpoint != sandbox.channel.sequence - 1:
            return None
    answer = sandbox.call(CRASH)
    assert (answer.outcome, answer.restored_to) == (CRASHED, answer.checkpoint)
    return answer if answer.checkpoint == sandbox.channel.sequence - 1 else None


def test_a_session_of_one_thread(begin):
    """There is room for the next copy beside the one before."""
    sandbox = begin(session_threads=1)
    for _ in range(3):
        answer = eventually(lambda: _crash(sandbox, "x = 1", "x += 1", "x += 1"))
        assert (answer.skipped, answer.lost) == (0, False)
        assert sandbox.call("x").value == "3"


def test_the_kernel_has_no_process_for_another_copy(begin):
    """The older one stays, and it is said that it is older. It goes on with its own limits."""
    sandbox = begin()
    sandbox.call("x = 'older'")
    kept = sandbox.channel.sequence
    _rest(sandbox)
    with without_processes(_live(sandbox)):
        sandbox.call("x = 'newer'")
        eventually(lambda: sandbox.call("x").skipped == NOT_COPIED, every=0.2)
        answer = sandbox.call("x")
        assert (answer.value, answer.checkpoint, answer.lost) == ('"newer"', kept, False)
        answer = sandbox.call(CRASH)
    assert (answer.outcome, answer.lost, answer.restored_to) == (CRASHED, True, kept)
    assert sandbox.call("x").value == '"older"'
    answer = eventually(lambda: _crash(sandbox, "x"))
    assert (answer.skipped, answer.lost) == (0, False)


def test_the_kernel_has_no_process_for_the_first_copy(begin):
    sandbox = begin()
    worker, = _inside(sandbox)
    with without_processes(worker):
        eventually(lambda: sandbox.call("x = 1").skipped == NOT_COPIED, every=0.2)
        answer = sandbox.call(CRASH)
    assert (answer.outcome, answer.checkpoint) == (CRASHED, 0)
    assert (answer.lost, answer.restored_to) == (True, 0)
    assert sandbox.call("'x' in globals()").value == "false"


ALL_THREADS = program("""
    import resource, threading
    go, threads = threading.Event(), []
    while True:
        threads.append(threading.Thread(target=go.wait, daemon=True))
        try:
            threads[-1].start()
        except RuntimeError:
            break
    try:
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    except ValueError:
        told = 'refused'
    x, told
""")


@pytest.mark.parametrize("threads", (2, 64))
def test_a_session_whose_threads_are_all_that_it_may_have(begin, threads):
    """Also beside a copy; the next one comes when they have ended."""
    sandbox = begin(session_threads=threads)
    sandbox.call("x = 1")
    kept = sandbox.channel.sequence
    _rest(sandbox)
    assert sandbox.call(ALL_THREADS).value.replace(" ", "") == '[1,"refused"]'
    eventually(lambda: sandbox.call("x").skipped == HAS_THREADS, every=0.2)
    answer = sandbox.call("x = 2")
    assert (answer.checkpoint, answer.lost) == (kept, False)
    assert sandbox.call("go.set()\nfor one in threads[:-1]: one.join()\nx").value == "2"
    kept = sandbox.channel.sequence
    eventually(lambda: sandbox.call("x").checkpoint >= kept, every=0.2)
    assert sandbox.call(ALL_THREADS).value.replace(" ", "") == '[2,"refused"]'
    answer = sandbox.call("x = 3\n" + CRASH)
    assert (answer.outcome, answer.lost) == (CRASHED, True)
    assert answer.restored_to == answer.checkpoint >= kept
    assert sandbox.call("x").value == "2"


DELETED = program("""
    last = None
    blocks = [bytearray(1000) for _ in range(30000)]
    last = bytearray(1000)  # beyond them, so that malloc(3) keeps what is before it
    del blocks
    x = 1
""")


def test_memory_that_is_free_is_in_nobodys_way(begin):
    sandbox = begin(checkpoint_memory="8M")
    sandbox.call("x = 0")
    sandbox.call(DELETED)
    kept = sandbox.channel.sequence
    eventually(lambda: sandbox.call("x").checkpoint >= kept, every=0.3)


def test_memory_that_is_in_use_is(begin):
    sandbox = begin(checkpoint_memory="8M")
    sandbox.call("x = [bytearray(1000) for _ in range(30000)]")
    for _ in range(3):
        eventually(lambda: sandbox.call("len(x)").skipped == TOO_MUCH_MEMORY, every=0.1)
    assert not _parked(sandbox)
