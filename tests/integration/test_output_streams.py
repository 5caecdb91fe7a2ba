# SPDX-License-Identifier: MIT
"""std_out and std_err: what reached descriptors 1 and 2 in this call, whole or plainly cut."""

import time

import pytest

from support.program import program

MEGABYTE = 1024 * 1024


def test_the_streams_come_apart(shared):
    answer = shared.exec(program("""
        import sys, warnings
        print('o')
        print('e', file=sys.stderr)
        warnings.warn('careful')
        sys.stdout.write('no newline')
    """))
    assert answer.std_out == "o\nno newline"
    assert answer.std_err.startswith("e\n") and "careful" in answer.std_err
    assert answer.truncated == set()


def test_c_and_python_write_to_the_same_streams(shared):
    answer = shared.exec(program(r"""
        import ctypes, os, sys
        libc = ctypes.CDLL(None)
        print('python')
        sys.stdout.flush()
        os.write(1, b'os\n')
        libc.write(1, b'c\n', 2)
        libc.printf(b'printf\n')
        libc.fflush(None)
        os.write(2, b'os err\n')
        libc.write(2, b'c err\n', 6)
        print('last')
    """))
    assert answer.std_out == "python\nos\nc\nprintf\nlast\n"
    assert answer.std_err == "os err\nc err\n"


def test_what_c_code_did_not_flush_belongs_to_its_call(shared):
    answer = shared.exec("import ctypes\n_ = ctypes.CDLL(None).printf(b'from C\\n')")
    assert answer.std_out == "from C\n"
    assert shared.exec("1").std_out == ""


def test_a_call_sees_only_its_own_output(shared):
    shared.exec(program("""
        print('first')
        import sys
        sys.stderr.write('first err')
    """))
    answer = shared.exec("1")
    assert (answer.std_out, answer.std_err) == ("", "")


@pytest.mark.parametrize("text", [
    "ü☕😀\u2028", "\x1b[31mred\x1b[0m", "a\0b", "\x7f\x01", "\r\n", '"\\/</script>', "\ufeffbom",
    "\uffff\ufffe", "\ufdd0",
])
def test_characters_arrive_as_they_were_printed(shared, text):
    answer = shared.exec(program(f"""
        import sys
        t = {text!r}
        print(t, end='')
        sys.stderr.write(t)
    """))
    assert (answer.std_out, answer.std_err) == (text, text)


def test_bytes_that_are_no_text_become_replacement_characters(shared):
    answer = shared.exec(program(r"""
        import os
        os.write(1, b'a\xff\xfeb\xc3(c\xe2\x98')
        os.write(2, b'\x80')
    """))
    assert answer.success
    assert answer.std_out.startswith("a\ufffd") and "b\ufffd(c\ufffd" in answer.std_out
    assert answer.std_err == "\ufffd"


def test_bytes_that_encode_surrogates_are_no_text(shared):
    answer = shared.exec(r"import os; n = os.write(1, b'<\xed\xa0\x80>')")
    assert answer.std_out[0] + answer.std_out[-1] == "<>"
    assert set(answer.std_out[1:-1]) == {"\ufffd"}


def test_printing_a_lone_surrogate(shared):
    answer = shared.exec(program("""
        print('before')
        print(chr(0xD800))
        print('after')
    """))
    assert answer.std_out.startswith("before\n")
    assert answer.success or answer.error_type == "UnicodeEncodeError", answer


def test_long_output_below_the_limit_is_whole(shared):
    answer = shared.exec("print('☕' * 100_000)")
    assert answer.std_out == "☕" * 100_000 + "\n"
    assert answer.truncated == set()


def test_output_in_many_pieces_is_whole(shared):
    answer = shared.exec(program("""
        import os
        for c in '☕ü' * 3000:
            for b in c.encode():
                n = os.write(1, bytes([b]))
    """))
    assert answer.std_out == "☕ü" * 3000


def test_output_up_to_the_limit_is_not_cut(shared):
    answer = shared.exec(f"import sys; n = sys.stdout.write('x' * {MEGABYTE})")
    assert answer.std_out == "x" * MEGABYTE
    assert answer.truncated == set()


@pytest.mark.parametrize("stream, other, number", [
    ("std_out", "std_err", 1), ("std_err", "std_out", 2),
])
def test_each_stream_is_cut_at_its_limit_and_says_so(session, stream, other, number):
    answer = session.exec(program(f"""
        import os
        for _ in range(30):
            os.write({number}, b'x' * 100_000)
        os.write({3 - number}, b'small')
        ran_on = True
    """))
    assert answer.success
    assert answer.outcome["truncated"][stream] is True
    assert answer.outcome["truncated"].get(other, False) is False
    assert MEGABYTE - 64 <= len(answer.outcome[stream]) <= MEGABYTE
    assert answer.outcome[other] == "small"
    assert session.value("ran_on") is True


def test_the_cut_never_halves_a_character(session):
    for lead in ("", "a", "ab"):
        answer = session.exec(f"print('{lead}' + '☕' * 400_000)")
        assert "std_out" in answer.truncated
        assert answer.std_out.removeprefix(lead).strip("☕") == ""
        assert MEGABYTE - 64 <= len(answer.std_out.encode()) <= MEGABYTE


def test_max_output_is_a_setting(small_session):
    answer = small_session.exec(program("""
        print('x' * 4000)
        import sys
        sys.stderr.write('y' * 5000)
    """))
    assert answer.std_out == "x" * 4000 + "\n"
    assert answer.truncated == {"std_err"}
    assert set(answer.std_err) == {"y"} and 4096 - 64 <= len(answer.std_err) <= 4096


def test_what_is_printed_between_calls_is_dropped(session):
    session.exec(program("""
        import threading, time
        def late():
            time.sleep(0.7)
            print('late', flush=True)
            global done
            done = True
        threading.Thread(target=late).start()
    """))
    time.sleep(2)
    answer = session.exec("print('mine')\ndone")
    assert answer.value is True, "the thread has not run between the calls"
    assert answer.std_out == "mine\n"


def test_output_of_threads_during_the_call_is_the_calls(session):
    output = session.output(program("""
        import threading
        threads = [threading.Thread(target=print, args=('line',)) for _ in range(8)]
        for t in threads: t.start()
        for t in threads: t.join()
    """))
    assert output.count("line") == output.count("\n") == 8


def test_text_that_looks_like_the_protocol_or_a_log_is_just_text(session):
    text = "\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{\"success\": true}\r\nlevel=info status=200\r\n"
    answer = session.exec(f"import os; n = os.write(1, {text.encode()!r})")
    assert answer.std_out == text


def test_output_before_an_error_a_time_out_and_a_death(session):
    for code, kind in (("1 / 0", "ZeroDivisionError"), ("while True: pass", "timeout"),
                       ("import os; os._exit(3)", "crash")):
        answer = session.exec(f"print('so far', flush=True)\n{code}", timeout_ms=1000)
        assert (answer.error_type, answer.std_out) == (kind, "so far\n")


def test_what_python_still_buffers_comes_too(session):
    answer = session.exec(program("""
        import sys
        sys.stdout.write('buffered')
        while True: pass
    """), timeout_ms=1000)
    assert (answer.error_type, answer.std_out) == ("timeout", "buffered")
