# SPDX-License-Identifier: MIT
"""Code that takes all it can get: memory, threads, room, descriptors, output."""

import time

from support.together import in_background

MEGABYTE = 1024 * 1024


def test_far_too_much_memory_is_a_memory_error(session):
    session.exec("kept = 1")
    for code in ("bytearray(10**11)", "x = bytearray(8 << 30)", "'x' * 10**11", "np.ones(10**11)",
                 "[0] * 10**11"):
        answer = session.exec(code)
        assert answer.error_type in ("MemoryError", "_ArrayMemoryError"), answer
        assert answer.lost == "none"
    assert session.value("kept") == 1


def test_memory_taken_bit_by_bit_comes_to_an_end(small_session):
    session = small_session
    answer = session.exec("hoard = []\nwhile True: hoard.append(bytearray(1 << 20))",
                          timeout_ms=5000)
    assert answer.error_type in ("MemoryError", "resource_limit"), answer
    if answer.lost == "none":
        assert 100 < session.value("n = len(hoard); del hoard; n") <= 256
    assert session.value("len(bytearray(50 << 20)) >> 20") == 50


def test_shared_and_mapped_memory_count_too(small_session):
    session = small_session
    code = ("import mmap\nheld = []\n"
            "while len(held) < 400:\n    m = mmap.mmap(-1, 1 << 20, flags={})\n"
            "    m.write(b'x' * (1 << 20)); held.append(m)")
    for flags in ("mmap.MAP_SHARED", "mmap.MAP_PRIVATE"):
        answer = session.exec(code.format(flags), timeout_ms=5000)
        assert not answer.success, f"400 MB with {flags} where 256 MB are the limit"
        assert answer.error_type in ("MemoryError", "OSError", "resource_limit"), answer
        session.exec("del held")
    assert session.value("6 * 7") == 42


def test_endless_printing_is_capped_and_meets_the_deadline(session):
    answer = session.exec("while True: print('A' * 100_000)", timeout_ms=1500)
    assert (answer.error_type, answer.truncated) == ("timeout", {"std_out"})
    assert MEGABYTE - 64 <= len(answer.std_out) <= MEGABYTE
    assert session.output("print('fine')") == "fine\n"


def test_endless_printing_of_c_is_capped_and_meets_the_deadline(session):
    answer = session.exec("import os\nwhile True: os.write(2, b'A' * 65536)", timeout_ms=1500)
    assert (answer.error_type, answer.truncated) == ("timeout", {"std_err"})
    assert session.output("print('fine')") == "fine\n"


def test_endless_threads(session, new_session):
    answer = session.exec("import threading\nstop = threading.Event(); count = 0\n"
                          "while True:\n    threading.Thread(target=stop.wait, daemon=True).start()\n"
                          "    count += 1", timeout_ms=20_000)
    assert answer.error_type in ("RuntimeError", "MemoryError"), answer
    assert answer.lost == "none"
    other = new_session()
    assert other.value("import threading; ts = [threading.Thread(target=int) for _ in range(20)]\n"
                       "[t.start() for t in ts]; [t.join() for t in ts]; len(ts)") == 20
    assert 20 < session.value("stop.set(); count") <= 80
    time.sleep(0.5)
    assert session.value("t = threading.Thread(target=int); t.start(); t.join(); 'again'") == "again"


def test_session_threads_is_a_setting(small_session):
    answer = small_session.exec(
        "import threading\nstop = threading.Event(); count = 0\ntry:\n    while True:\n"
        "        threading.Thread(target=stop.wait, daemon=True).start(); count += 1\n"
        "except (RuntimeError, MemoryError): pass\nstop.set(); count")
    assert 4 < answer.value <= 16


def test_a_full_home_directory(session):
    session.exec("kept = 1")
    answer = session.exec("f = open('full', 'wb')\nwhile True: f.write(b'0' * (1 << 20)); f.flush()",
                          timeout_ms=30_000)
    assert answer.error_type == "OSError", answer
    assert answer.lost == "none"
    assert "full" in answer.left_out
    assert session.value("kept") == 1
    answer = session.exec("import os\ntry: f.close()\nexcept OSError: pass\n"
                          "n = os.path.getsize('full'); os.remove('full'); n")
    assert 100 * MEGABYTE < answer.value <= 256 * MEGABYTE
    assert session.value("open('g', 'w').write('fits again')") == 10


def test_many_files_that_fill_it(session):
    answer = session.exec("i = 0\nwhile True:\n    open(f'f{i}', 'wb').write(b'0' * (8 << 20)); i += 1",
                          timeout_ms=30_000)
    assert answer.error_type == "OSError", answer
    named = set(answer.files) | set(answer.left_out)
    assert len(named) >= session.value("i")
    assert session.value("import os\nfor n in os.listdir('.'): os.remove(n)\n6 * 7") == 42


def test_a_full_home_directory_holds_no_other_session(session, new_session):
    session.exec("f = open('full', 'wb')\nwhile True: f.write(b'0' * (1 << 20)); f.flush()",
                 timeout_ms=30_000)
    assert new_session().value("open('f', 'wb').write(b'x' * (20 << 20))") == 20 * MEGABYTE


def test_countless_tiny_files(session):
    answer = session.exec("import os\nn = 0\nos.mkdir('d')\nwhile True:\n"
                          "    open(f'd/{n}', 'w').write('x'); n += 1", timeout_ms=30_000)
    assert answer.error_type == "OSError", answer
    assert len(answer.files) == 100
    count = session.value("n")
    assert 1000 < count <= 8192
    assert len(answer.files) + len(answer.left_out) >= count
    assert session.value("import shutil; shutil.rmtree('d'); 6 * 7") == 42


def test_folders_in_folders(session):
    answer = session.exec("import os\nfor _ in range(1000):\n    os.mkdir('d'); os.chdir('d')\n"
                          "open('deep', 'w').write('x'); os.chdir('/home/earth')\n"
                          "open('flat', 'w').write('x')")
    assert answer.success, answer
    assert answer.files["flat"] == b"x"
    named = set(answer.files) | set(answer.left_out)
    assert any(name.startswith("d") for name in named), "the file far down is not accounted for"
    assert session.exec("1", files={"up": b"x"}).success


def test_all_descriptors_taken(session):
    answer = session.exec("held = []\nwhile True: held.append(open('/dev/null'))")
    assert (answer.error_type, answer.lost) == ("OSError", "none")
    answer = session.exec("print('still here')\n6 * 7")
    assert (answer.value, answer.std_out) == (42, "still here\n")
    assert session.value("[f.close() for f in held]; open('f', 'w').write('x')") == 1


def test_a_recursion_without_limit(session):
    answer = session.exec("import sys\nsys.setrecursionlimit(10**9)\ndef f(n): return f(n + 1)\nf(0)",
                          timeout_ms=10_000)
    assert answer.error_type in ("MemoryError", "RecursionError", "crash", "timeout",
                                 "resource_limit"), answer
    assert session.value("6 * 7") == 42


def test_a_number_without_end(session):
    answer = session.exec("9 ** 9 ** 9", timeout_ms=1000)
    assert answer.error_type in ("timeout", "MemoryError", "OverflowError"), answer
    assert session.value("6 * 7") == 42


def test_busy_sessions_leave_room_for_others(new_session, client):
    calls = [in_background(lambda s=new_session(): s.exec("while True: pass", timeout_ms=4000))
             for _ in range(6)]
    time.sleep(0.5)
    assert new_session().value("6 * 7") == 42
    assert client.health().status == 200
    assert not any(call.done() for call in calls)
    assert {call.result(60).error_type for call in calls} == {"timeout"}


def test_the_limits_cannot_be_lifted(session):
    code = ("import resource\nout = []\n"
            "for name in ('RLIMIT_AS', 'RLIMIT_NOFILE', 'RLIMIT_FSIZE', 'RLIMIT_CORE', 'RLIMIT_NPROC'):\n"
            "    limit = getattr(resource, name); before = resource.getrlimit(limit)\n"
            "    try: resource.setrlimit(limit, (-1, -1))\n"
            "    except (ValueError, OSError): pass\n"
            "    if resource.getrlimit(limit) != before: out.append(name)\nout")
    assert session.value(code) == []
    assert session.exec("bytearray(10**11)").error_type == "MemoryError"
