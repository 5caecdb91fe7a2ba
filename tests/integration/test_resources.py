# SPDX-License-Identifier: MIT
"""Code that takes all it can get: memory, threads, room, descriptors, output."""

import time

import pytest

from support.must import only_a_quota_shows
from support.program import program
from support.together import in_background

MEGABYTE = 1024 * 1024

FILL = program("""
    f = open('full', 'wb')
    while True:
        f.write(b'0' * (1 << 20)); f.flush()
""")


@pytest.mark.parametrize("code", [
    "bytearray(10**11)", "x = bytearray(8 << 30)", "'x' * 10**11", "np.ones(10**11)",
    "[0] * 10**11",
])
def test_far_too_much_memory_is_a_memory_error(session, code):
    session.exec("kept = 1")
    answer = session.exec(code)
    assert answer.error_type in ("MemoryError", "_ArrayMemoryError"), answer
    assert answer.lost == "none"
    assert session.value("kept") == 1


def test_what_fits_is_given(session):
    assert session.value("x = bytearray(700 << 20); len(x) >> 20") == 700


@pytest.mark.parametrize("megabyte", ["bytearray(1 << 20)", "np.ones(1 << 17)", "'x' * (1 << 20)"])
def test_memory_taken_bit_by_bit_comes_to_an_end(small_session, megabyte):
    session = small_session
    answer = session.exec(f"hoard = []\nwhile True: hoard.append({megabyte})", timeout_ms=5000)
    assert answer.error_type in ("MemoryError", "_ArrayMemoryError", "resource_limit"), answer
    if answer.lost == "none":
        # 256 MB more of address space, and what the fresh interpreter's heap has free
        assert 200 < session.value("n = len(hoard); del hoard; n") <= 256 + 100
    assert session.value("len(bytearray(50 << 20)) >> 20") == 50


@pytest.mark.parametrize("flags", ["MAP_SHARED", "MAP_PRIVATE"])
def test_mapped_memory_counts_too(small_session, flags):
    answer = small_session.exec(program(f"""
        import mmap
        held = []
        while len(held) < 400:
            m = mmap.mmap(-1, 1 << 20, flags=mmap.{flags})
            m.write(b'x' * (1 << 20)); held.append(m)
    """), timeout_ms=5000)
    assert not answer.success, "400 MB where 256 MB are the limit"
    assert answer.error_type in ("MemoryError", "OSError", "resource_limit"), answer
    small_session.exec("del held")
    assert small_session.value("6 * 7") == 42


@pytest.mark.parametrize("stream, code", [
    ("std_out", "while True: print('A' * 100_000)"),
    ("std_err", "import os\nwhile True: os.write(2, b'A' * 65536)"),
])
def test_endless_printing_is_capped_and_meets_the_deadline(session, stream, code):
    answer = session.exec(code, timeout_ms=1500)
    assert (answer.error_type, answer.truncated) == ("timeout", {stream})
    assert MEGABYTE - 64 <= len(answer.outcome[stream]) <= MEGABYTE
    assert session.output("print('fine')") == "fine\n"


def test_endless_threads(session, new_session):
    answer = session.exec(program("""
        import threading
        stop = threading.Event(); count = 0
        while True:
            threading.Thread(target=stop.wait, daemon=True).start()
            count += 1
    """), timeout_ms=20_000)
    assert answer.error_type in ("RuntimeError", "MemoryError"), answer
    assert answer.lost == "none"
    other = new_session().value(program("""
        import threading
        threads = [threading.Thread(target=int) for _ in range(20)]
        for t in threads: t.start()
        for t in threads: t.join()
        len(threads)
    """))
    assert other == 20
    assert 20 < session.value("stop.set(); count") <= 80
    time.sleep(0.5)
    assert session.value("t = threading.Thread(target=int); t.start(); t.join(); 'one'") == "one"


def test_session_threads_is_a_setting(small_session):
    answer = small_session.exec(program("""
        import threading
        stop = threading.Event(); count = 0
        try:
            while True:
                threading.Thread(target=stop.wait, daemon=True).start(); count += 1
        except (RuntimeError, MemoryError):
            pass
        stop.set()
        count
    """))
    assert 4 < answer.value <= 16


def test_a_full_home_directory(session):
    session.exec("kept = 1")
    answer = session.exec(FILL, timeout_ms=30_000)
    assert answer.error_type == "OSError", answer
    assert answer.lost == "none"
    assert "full" in answer.left_out
    assert session.value("kept") == 1
    size = session.value(program("""
        import os
        try: f.close()
        except OSError: pass
        size = os.path.getsize('full')
        os.remove('full')
        size
    """))
    assert 100 * MEGABYTE < size <= 256 * MEGABYTE
    assert session.value("open('g', 'w').write('fits again')") == 10


def test_many_files_that_fill_it(session):
    only_a_quota_shows("an error at the file that is too much")
    answer = session.exec(program("""
        i = 0
        while True:
            open(f'f{i}', 'wb').write(b'0' * (8 << 20)); i += 1
    """), timeout_ms=30_000)
    assert answer.error_type == "OSError", answer
    assert len({*answer.files, *answer.left_out}) >= session.value("i")
    assert session.value(program("""
        import os
        for n in os.listdir('.'): os.remove(n)
        6 * 7
    """)) == 42


def test_a_full_home_directory_is_no_matter_of_another_session(session, new_session):
    session.exec(FILL, timeout_ms=30_000)
    written = new_session().value("open('f', 'wb').write(b'x' * (20 << 20))")
    assert written == 20 * MEGABYTE


def test_countless_tiny_files(session):
    only_a_quota_shows("an error at the file that is too much")
    answer = session.exec(program("""
        import os, shutil
        n = 0
        os.mkdir('d')
        while True:
            open(f'd/{n}', 'w').write('x'); n += 1
    """), timeout_ms=30_000)
    assert answer.error_type == "OSError", answer
    assert len(answer.files) == 100
    count = session.value("n")
    assert 1000 < count <= 8192
    assert len(answer.files) + len(answer.left_out) + answer.left_out_unnamed >= count
    assert session.value("shutil.rmtree('d'); 6 * 7") == 42


def test_folders_in_folders(session):
    answer = session.exec(program("""
        import os
        for _ in range(1000):
            os.mkdir('d'); os.chdir('d')
        open('deep', 'w').write('x'); os.chdir('/home/earth')
        open('flat', 'w').write('x')
    """))
    assert answer.success, answer
    assert answer.files["flat"] == b"x"
    named = {*answer.files, *answer.left_out}
    assert any(name.startswith("d") for name in named), "the file far down is not accounted for"
    assert session.exec("1", files={"up": b"x"}).success


def test_all_descriptors_taken(session):
    answer = session.exec("held = []\nwhile True: held.append(open('/dev/null'))")
    assert (answer.error_type, answer.lost) == ("OSError", "none")
    answer = session.exec("print('still here')\n6 * 7")
    assert (answer.value, answer.std_out) == (42, "still here\n")
    assert session.value("[f.close() for f in held]; open('f', 'w').write('x')") == 1


def test_a_recursion_without_limit(session):
    answer = session.exec(program("""
        import sys
        sys.setrecursionlimit(10**9)
        def f(n): return f(n + 1)
        f(0)
    """), timeout_ms=2000)
    assert answer.error_type in ("MemoryError", "RecursionError", "crash", "timeout",
                                 "resource_limit"), answer
    assert session.value("6 * 7") == 42


def test_a_number_without_end(session):
    answer = session.exec("9 ** 9 ** 9", timeout_ms=1000)
    assert answer.error_type in ("timeout", "MemoryError", "OverflowError"), answer
    assert session.value("6 * 7") == 42


def test_busy_sessions_leave_room_for_others(new_session, client):
    calls = [in_background(lambda s=new_session(): s.exec("while True: pass", timeout_ms=3000))
             for _ in range(6)]
    time.sleep(0.5)
    assert new_session().value("6 * 7") == 42
    assert client.health().status == 200
    assert not any(call.done() for call in calls)
    assert {call.result(60).error_type for call in calls} == {"timeout"}


def test_the_limits_cannot_be_lifted(session):
    lifted = session.value(program("""
        import resource
        names = ('AS', 'NOFILE', 'FSIZE', 'CORE', 'NPROC')
        limits = [getattr(resource, 'RLIMIT_' + name) for name in names]
        before = [resource.getrlimit(limit) for limit in limits]
        for limit in limits:
            try: resource.setrlimit(limit, (-1, -1))
            except (ValueError, OSError): pass
        after = [resource.getrlimit(limit) for limit in limits]
        [name for name, old, new in zip(names, before, after) if old != new]
    """))
    assert lifted == []
    assert session.exec("bytearray(10**11)").error_type == "MemoryError"
