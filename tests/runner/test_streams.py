# SPDX-License-Identifier: MIT
"""Standard input, output and error of a call."""

import os
import signal

import pytest

from conftest import Died


def test_output_and_error_come_apart_and_in_full(worker):
    result = worker.run("import sys\nprint('o')\nprint('e', file=sys.stderr)\n"
                        "sys.stdout.write('x')")
    assert (result.out, result.err) == ("o\nx", "e\n")


@pytest.mark.parametrize("text", ["ü☕😀\u2028", "\x1b[31mred\x1b[0m", "a\0b\x7f", "\r\n\n\r",
                                  "\ufeff"])
def test_characters_arrive_as_printed(worker, text):
    result = worker.run(f"import sys\nprint({text!r}, end='')\nsys.stderr.write({text!r})")
    assert (result.out, result.err) == (text, text)


def test_lone_surrogates_are_escaped(worker):
    result = worker.run("import sys\nprint(chr(0xD800))\nprint(chr(0xDC80), file=sys.stderr)")
    assert (result.ok, result.out, result.err) == (True, "\\ud800\n", "\\udc80\n")


def test_what_is_printed_is_out_at_once(worker):
    worker.send("import sys\nsys.stderr.write('err')\nprint('no newline', end='')\n"
                "while True: pass")
    worker.wait_for("no newline")
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(Died) as death:
        worker.receive()
    assert death.value.args == ("no newline", "err")


def test_a_crash_loses_nothing(worker):
    with pytest.raises(Died) as death:
        worker.run("import os\nprint('x' * 100_000, end='')\nos.abort()")
    assert death.value.args == ("x" * 100_000, "")


def test_much_output_is_whole(worker):
    result = worker.run("for _ in range(100): print('☕' * 10_000)")
    assert result.out == ("☕" * 10_000 + "\n") * 100


def test_c_and_python_write_in_order(worker):
    result = worker.run("import os\nprint('a')\nos.write(1, b'b\\n')\nprint('c')\n"
                        "import sys; sys.stdout.buffer.write(b'd\\n'); print('e')")
    assert result.out == "a\nb\nc\nd\ne\n"


def test_much_output_is_whole_after_the_code_made_the_pipe_not_block(worker):
    worker.run("import os; os.set_blocking(1, False)")
    assert worker.run("print('x' * 1_000_000)").out == "x" * 1_000_000 + "\n"


def test_the_streams_look_like_those_of_an_interpreter(worker):
    assert worker.value("import sys\n[[s.encoding, s.errors, s.fileno(), s.name, s.mode,"
                        " s.isatty(), s is o] for s, o in ((sys.stdout, sys.__stdout__),"
                        " (sys.stderr, sys.__stderr__))]") == [
        ["utf-8", "backslashreplace", fd, name, "w", False, True]
        for fd, name in ((1, "<stdout>"), (2, "<stderr>"))]


def test_input_reads_line_after_line(worker):
    result = worker.run("[input(), input('prompt> '), input()]", stdin="one\ntwo\r\nlast ü")
    assert result.value == ["one", "two\r", "last ü"]
    assert result.out == "prompt> "


@pytest.mark.parametrize("code, value", [
    ("sys.stdin.read()", "a\nb\n\nlast"),
    ("list(sys.stdin)", ["a\n", "b\n", "\n", "last"]),
    ("[sys.stdin.readline(), sys.stdin.read(1), input()]", ["a\n", "b", ""]),
    ("sys.stdin.buffer.read().decode()", "a\nb\n\nlast"),
    ("import fileinput; len(list(fileinput.input(files='-')))", 4),
])
def test_the_ways_to_read(worker, code, value):
    assert worker.value("import sys\n" + code, stdin="a\nb\n\nlast") == value


@pytest.mark.parametrize("stdin", [None, "", "line\n"])
def test_the_end_is_met_at_once(worker, stdin):
    result = worker.run("import sys\nfirst = sys.stdin.readline()\ninput()", stdin=stdin)
    assert result.error == "EOFError"
    assert result.traceback.endswith("EOFError: EOF when reading a line")
    assert worker.value("first") == (stdin or "")


def test_each_call_has_its_own_input(worker):
    worker.run("input()\nimport sys; old = sys.stdin", stdin="read\nunread\n")
    assert worker.run("input()").error == "EOFError"
    assert worker.value("[sys.stdin is old, input()]", stdin="mine\n") == [False, "mine"]


def test_a_megabyte_of_input(worker):
    text = "0123456789abcde\n" * 65536
    assert worker.value("import sys; len(sys.stdin.read())", stdin=text) == len(text)


@pytest.mark.parametrize("code", [
    "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, 'utf-8')\nprint('text')",
    "import sys\nsys.stdout.reconfigure(write_through=False, line_buffering=False)\n"
    "print('text')",
    "import sys\nsys.stdout = open(1, 'w', closefd=False)\nprint('text')",
    "import os, sys\nsys.stdout = os.fdopen(os.dup(1), 'w')\nprint('text')\n1/0",
])
def test_what_a_stream_of_the_code_still_holds_is_flushed_at_the_end(worker, code):
    assert worker.run(code).out == "text\n"
    assert worker.run("print('next')").out == "next\n"


def test_a_stream_of_the_code_that_cannot_be_flushed(worker):
    result = worker.run("import sys\nclass S:\n    def write(self, t): pass\n"
                        "    def flush(self): 1/0\nsys.stdout = S()\nprint('nowhere')\n5")
    assert result.value == 5


def test_a_late_thread_writes_to_the_same_streams(worker):
    worker.run("import threading\ngo, done = threading.Event(), threading.Event()\n"
               "def late():\n    go.wait(); print('late'); done.set()\n"
               "threading.Thread(target=late).start()")
    assert worker.run("go.set(); done.wait(); print('after')").out == "late\nafter\n"


def test_log_handlers_keep_working(worker):
    worker.run("import logging; logging.basicConfig(format='%(message)s')")
    assert worker.run("logging.warning('logged')").err == "logged\n"
