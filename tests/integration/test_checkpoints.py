# SPDX-License-Identifier: MIT
"""A session goes on from the copy of its worker that was made while it was idle."""

import base64
import os
import signal
import time

import pytest
from support.client import fresh_id
from support.must import not_with_slots
from support.other_listener import UNDER_IT
from support.processes import everything
from support.program import program
from support.server import running
from support.together import at_once, eventually

SEGFAULT = "import ctypes; ctypes.string_at(0)"
DEATHS = {
    "a segmentation fault": (SEGFAULT, "crash"),
    "its own SIGKILL": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "crash"),
    "an exit of the process": ("import os; os._exit(3)", "crash"),
    "a time-out in C code": ("sum(range(10**12))", "timeout"),
}
# What stands in the way of a copy, what takes it away again, and the word for it.
OBSTACLES = {
    "a thread": ("threads", "import threading; go = threading.Event(); "
                            "thread = threading.Thread(target=go.wait); thread.start()",
                 "go.set(); thread.join()"),
    "a reader half-read": ("open_files", "open('in', 'w').write('line\\n' * 9999); "
                                         "f = open('in'); f.readline()", "f.close()"),
    "a writer not flushed": ("open_files", "f = open('out', 'w'); f.write('x' * 100)",
                             "f.close()"),
    "a transaction": ("open_files", "import sqlite3; db = sqlite3.connect('d'); "
                                    "db.execute('create table t (x)'); "
                                    "db.execute('insert into t values (1)')", "db.close()"),
    "shared memory": ("shared_memory", "import mmap; m = mmap.mmap(-1, 1 << 16); "
                                       "m[:] = b'x' * len(m)", "m.close()"),
    "shared memory not touched yet": ("shared_memory", "import mmap; m = mmap.mmap(-1, 1 << 16)",
                                      "m.close()"),
    "an array in a file": ("open_files", "m = np.memmap('a', mode='w+', shape=9)", "del m"),
    "a signal that waits": ("refused", "import os, signal\n"
                            "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
                            "os.kill(os.getpid(), signal.SIGUSR1)",
                            "signal.sigwait([signal.SIGUSR1])"),
    "much memory": ("memory", "big = bytearray(100 << 20)", "del big"),
}
# What leaves nothing in its way.
ORDINARY = {
    "a figure": "fig, ax = plt.subplots(); ax.plot([1]); ax.set_title('$x^2$')\n"
                "for kind in ('png', 'svg', 'pdf'): fig.savefig('a.' + kind)",
    "linear algebra": "a = np.random.rand(300, 300); np.linalg.svd(a @ a)[1].sum()",
    "a table": "d = pd.DataFrame({'a': [1, 1], 'b': [2, 3]}); d.groupby('a').sum().to_csv('t')\n"
               "pd.read_csv('t'); d.eval('a + b').sum()",
    "a database": "import sqlite3; db = sqlite3.connect('d'); db.execute('create table t (x)')\n"
                  "db.commit(); db.close()",
    "a pool of threads": "from concurrent.futures import ThreadPoolExecutor\n"
                         "with ThreadPoolExecutor(4) as pool: list(pool.map(abs, range(9)))",
    "an event loop": "import asyncio\n"
                     "asyncio.run(asyncio.wait_for(asyncio.to_thread(sum, [1]), 9))",
    "an array in a file": "np.save('a', [1]); a = np.load('a.npy', mmap_mode='r'); del a",
}


@pytest.fixture(scope="module")
def instance():
    """Sessions are copied as soon as they are idle, so that no test has to wait long."""
    not_with_slots("without a PID namespace no checkpoints are made")
    with running(rate_limit=0, checkpoint_delay="10ms", interrupt_grace="300ms",
                 checkpoint_memory="64M", session_idle_timeout="60s") as made:
        yield made


@pytest.fixture
def session(instance):
    return instance.client.session(fresh_id())


def rest(session):
    """Return when the session was idle long enough for a checkpoint of its state.

    That is known of a pause only when it is over: the one that counts is a longer one.
    """
    for tenths in range(2, 60, 4):
        time.sleep(tenths / 10)
        now = session.exec("0").session
        if now["checkpoint"] == now["execution_count"] - 1:
            time.sleep(tenths / 5)
            return
    raise AssertionError(f"no checkpoint is made: {now}")


@pytest.mark.parametrize("code, kind", DEATHS.values(), ids=DEATHS.keys())
def test_a_lost_worker_loses_no_variable(session, code, kind):
    session.exec("x = [1]; y = np.arange(1 << 20)")
    rest(session)
    before = session.client.sessions()[session.name]["execution_count"]
    answer = session.exec(f"x.append(2); y[:] = 0; open('f', 'w').write('f')\n{code}",
                          timeout_ms=1000)
    assert (answer.status, answer.error_type) == (200, kind)
    assert answer.session == {
        "id": session.name, "created": False, "lost": "none", "execution_count": before + 1,
        "checkpoint": before, "restored_to": before}
    after = session.exec("[x, int(y.sum()), open('f').read()]")
    assert after.value == [[1], (1 << 20) * ((1 << 20) - 1) // 2, "f"]
    assert "restored_to" not in after.session


def test_ten_generations_in_a_row(session):
    session.exec("x = []")
    for generation in range(10):
        session.exec(f"x.append({generation})")
        rest(session)
        answer = session.exec("x.append('lost'); " + SEGFAULT)
        assert (answer.error_type, answer.lost) == ("crash", "none")
    assert session.value("x") == list(range(10))


def test_deaths_in_a_row_without_a_pause(session):
    session.exec("x = [1]")
    rest(session)
    numbers = {session.exec("x.append(2); " + SEGFAULT).session["restored_to"] for _ in range(5)}
    assert len(numbers) == 1
    assert session.value("x") == [1]


def test_a_session_goes_back_to_where_it_was_copied_and_says_so(session):
    session.exec("x = 1")
    rest(session)
    busy = session.exec("import threading, time; x = 2\n"
                        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()")
    time.sleep(0.5)
    answer = session.exec(SEGFAULT)
    assert answer.lost == "variables"
    assert answer.session["restored_to"] == answer.session["checkpoint"] == (
        busy.session["execution_count"] - 1)
    assert answer.session["checkpoint_skipped"] == "threads"
    assert session.value("x") == 1


@pytest.mark.parametrize("word, begin, end", OBSTACLES.values(), ids=OBSTACLES.keys())
def test_what_a_copy_would_share_or_lose_is_in_its_way(session, word, begin, end):
    assert session.exec(begin).success
    time.sleep(0.5)
    told = session.exec("0").session
    assert (told["checkpoint"], told["checkpoint_skipped"]) == (None, word)
    assert session.exec(end).success
    rest(session)
    told = session.exec("0").session
    assert told["checkpoint"] == told["execution_count"] - 1
    assert "checkpoint_skipped" not in told


@pytest.mark.parametrize("code", ORDINARY.values(), ids=ORDINARY.keys())
def test_what_is_done_every_day_is_not_in_the_way(session, code):
    assert session.exec(code).success
    rest(session)


def test_calls_without_a_pause_are_not_copied():
    not_with_slots("without a PID namespace no checkpoints are made")
    with running(rate_limit=0, checkpoint_delay="30s") as instance:
        session = instance.client.session(fresh_id())
        for _ in range(5):
            told = session.exec("0").session
            assert told["checkpoint"] is None and "checkpoint_skipped" not in told


def test_without_checkpoints_the_variables_are_lost():
    with running(rate_limit=0, checkpoint="off", checkpoint_delay="0") as instance:
        health = instance.client.health().json["checkpoints"]
        assert health == {"active": False, "reason": "the setting checkpoint is off"}
        session = instance.client.session(fresh_id())
        session.exec("x = 1")
        time.sleep(0.5)
        answer = session.exec(SEGFAULT)
        assert (answer.lost, answer.session["checkpoint"]) == ("variables", None)
        assert "restored_to" not in answer.session
        assert session.value("'x' in globals()") is False


def test_where_the_kernel_refuses_them_health_says_so_and_calls_work():
    not_with_slots("without a PID namespace they are not tried")
    with running(under=UNDER_IT, rate_limit=0, checkpoint_delay="0") as instance:
        health = instance.client.health()
        assert health.status == 200
        told = health.json["checkpoints"]
        assert told["active"] is False and "listener" in told["reason"]
        session = instance.client.session(fresh_id())
        session.exec("x = 1")
        time.sleep(0.5)
        for answer in session.exec("x"), session.exec(SEGFAULT):
            assert (answer.status, answer.session["checkpoint"]) == (200, None)
            assert not {"checkpoint_skipped", "restored_to"} & set(answer.session)
        assert (answer.error_type, answer.lost) == ("crash", "variables")
        assert session.value("'x' in globals()") is False


def test_health_tells_that_they_are_made(instance):
    assert instance.client.health().json["checkpoints"] == {"active": True}


def test_a_worker_killed_while_the_session_is_idle(instance, session):
    session.exec("x = [1]")
    worker = instance.worker_of(session)
    rest(session)
    os.kill(worker.pid, signal.SIGKILL)
    time.sleep(0.5)
    answer = session.exec("x")
    assert (answer.value, answer.lost) == ([1], "none")
    assert answer.session["restored_to"] == answer.session["execution_count"] - 1
    assert "restored_to" not in session.exec("0").session


def children(supervisor):
    """The worker and its copy, once both are there and at rest."""
    found = eventually(lambda: len(made := [each for each in everything()
                                            if each.parent == supervisor]) == 2 and made)
    time.sleep(0.2)
    return found


def test_a_restored_worker_is_killed_with_its_copy(instance, session):
    session.exec("x = [1]")
    worker = instance.worker_of(session)
    rest(session)
    os.kill(worker.pid, signal.SIGKILL)
    eventually(lambda: not worker.alive())
    for each in children(worker.parent):
        os.kill(each.pid, signal.SIGKILL)
    time.sleep(0.5)
    answer = session.exec("'x' in globals()")
    assert (answer.value, answer.lost) == (False, "variables")
    assert "restored_to" not in answer.session


def signals_to_the_copy(names):
    """Code that sends these to all other processes that it sees, and then crashes."""
    return program(f"""
        import os, signal, ctypes
        for pid in range(2, 300):
            if pid != os.getpid():
                for number in (getattr(signal, name) for name in {names!r}.split()):
                    try:
                        os.kill(pid, number)
                    except ProcessLookupError:
                        pass
        ctypes.string_at(0)
    """)


def test_a_copy_that_the_session_kills_is_one_that_it_does_not_have(session):
    session.exec("x = 1")
    rest(session)
    answer = session.exec(signals_to_the_copy("SIGKILL"))
    assert (answer.error_type, answer.lost) == ("crash", "variables")
    assert "restored_to" not in answer.session
    assert session.value("'x' in globals()") is False


@pytest.mark.parametrize("names", ["SIGSTOP", "SIGTERM SIGINT SIGUSR1 SIGSTOP SIGCONT SIGSEGV"])
def test_signals_to_the_copy_change_nothing(session, names):
    session.exec("x = 1")
    rest(session)
    answer = session.exec(signals_to_the_copy(names))
    assert (answer.error_type, answer.lost) == ("crash", "none")
    assert session.value("x") == 1


def test_state_outside_of_variables(session):
    session.exec(program("""
        import os, random, signal, warnings
        os.environ['A'] = 'b'
        os.makedirs('deep'); os.chdir('deep')
        random.seed(1); np.random.seed(1)
        handler = lambda *_: None
        signal.signal(signal.SIGUSR1, handler)
        random.random(), float(np.random.rand())
    """))
    expected = session.exec("state = random.getstate(), np.random.get_state(); "
                            "v = [random.random(), float(np.random.rand())]; "
                            "random.setstate(state[0]); np.random.set_state(state[1]); v").value
    rest(session)
    session.exec("random.seed(7); os.chdir('/'); del os.environ['A']\n" + SEGFAULT)
    assert session.value(program("""
        [os.environ['A'], os.getcwd(), random.random(), float(np.random.rand()),
         signal.getsignal(signal.SIGUSR1) is handler]
    """)) == ["b", "/home/earth/deep", *expected, True]


def test_a_restored_session_can_all_that_it_could(session):
    session.exec("x = 1")
    rest(session)
    session.exec(SEGFAULT)
    assert session.value("import asyncio, threading\n"
                         "box = []\n"
                         "thread = threading.Thread(target=box.append, args=(1,))\n"
                         "thread.start(); thread.join()\n"
                         "await asyncio.sleep(0.01, box)") == [1]
    answer = session.exec("plt.plot([1, 2]); plt.show(); print(input())", stdin="line\n")
    assert answer.std_out == "line\n" and list(answer.files) == ["figure_1.png"]
    assert base64.b64encode(answer.files["figure_1.png"])[:4] == b"iVBO"
    answer = session.exec("while True: pass", timeout_ms=300)
    assert (answer.error_type, answer.lost) == ("timeout", "none")
    assert session.value("x") == 1
    answer = session.exec("import os; os.abort()")
    assert answer.error_type == "crash" and "SIGABRT" in answer.error["message"]


def test_many_sessions_at_once(instance):
    sessions = [instance.client.session(fresh_id()) for _ in range(12)]
    at_once([lambda s=s: s.exec(f"me = {s.name!r}") for s in sessions])
    for session in sessions:
        rest(session)
    at_once([lambda s=s: s.exec("me = ''; " + SEGFAULT) for s in sessions])
    assert [session.value("me") for session in sessions] == [each.name for each in sessions]


FLOOD = program("""
    import ctypes, os, threading, time
    libc = ctypes.CDLL(None, use_errno=True)
    CALLS = {'x86_64': (56, 110), 'aarch64': (220, 173)}[os.uname().machine]
    COPY = 0x8000 | 0x200000 | 0x1000000 | 17  # the flags with which a worker is copied

    def ask(number, argument):
        return libc.syscall(ctypes.c_long(number), ctypes.c_ulong(argument), None, None, None,
                            None), ctypes.get_errno()

    def flood():
        while True:
            made.append(ask(CALLS[0], COPY)[0] >= 0 or ask(CALLS[1], 0x7061726b43504956)[0] >= 0)

    made = []
    first = [ask(CALLS[0], COPY), ask(CALLS[1], 0x7061726b43504956)]
    for _ in range(3):
        threading.Thread(target=flood, daemon=True).start()
    first
""")


def test_who_asks_without_end_to_be_copied_holds_up_nobody(session):
    """Neither while the session is idle nor in its calls; and no process comes of it."""
    assert session.exec(FLOOD).value == [[-1, 1], [-1, 1]]
    for _ in range(5):
        time.sleep(0.2)
        assert session.value("any(made)") is False
    assert session.value("len(made) > 0") is True


def test_no_code_of_the_session_runs_while_it_is_idle(session):
    """A hook that every compilation is told to would be called by what warms the memory up."""
    session.exec(program("""
        import sys
        told = []
        def hook(event, arguments):
            if event == 'compile':
                told.append(event)
        sys.addaudithook(hook)
    """))
    before = session.value("len(told)")
    per_call = session.value("len(told)") - before
    rest(session)
    number = session.exec("0").session["execution_count"]
    first = session.value("len(told)")
    time.sleep(0.5)
    assert session.value("len(told)") == first + per_call
    assert session.exec("0").session["execution_count"] == number + 3
