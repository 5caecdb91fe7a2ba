# SPDX-License-Identifier: MIT
"""What input() and sys.stdin read: the request's stdin, then the end of file."""

import pytest

from support.program import program


def test_input_reads_line_after_line(shared):
    answer = shared.exec("[input(), input('prompt> ')]", stdin="one\ntwo\n")
    assert answer.value == ["one", "two"]
    assert answer.std_out == "prompt> "


@pytest.mark.parametrize("code, value", [
    ("sys.stdin.read()", "a\nb\n\nlast"),
    ("list(sys.stdin)", ["a\n", "b\n", "\n", "last"]),
    ("[sys.stdin.readline(), sys.stdin.read(1), sys.stdin.readlines()]",
     ["a\n", "b", ["\n", "\n", "last"]]),
    ("[input(), sys.stdin.readline(), input(), input()]", ["a", "b\n", "", "last"]),
    ("import fileinput; len(list(fileinput.input(files='-')))", 4),
])
def test_the_ways_to_read(shared, code, value):
    assert shared.value("import sys\n" + code, stdin="a\nb\n\nlast") == value


@pytest.mark.parametrize("stdin", [None, "", "one line\n"])
def test_the_end_is_met_at_once(shared, stdin):
    answer = shared.exec(program("""
        import sys
        first = sys.stdin.readline()
        input()
    """), stdin=stdin)
    assert answer.error_type == "EOFError"
    assert shared.value("first") == (stdin or "")


def test_without_stdin_reading_gives_nothing(shared):
    assert shared.value("import sys; [sys.stdin.read(), sys.stdin.readlines()]") == ["", []]


@pytest.mark.parametrize("text", ["ü☕😀\n", "no newline", "\ufeff", "\x1b[0m\x04\x1a"])
def test_text_of_all_kinds(shared, text):
    assert shared.value("import sys; ascii(sys.stdin.read())", stdin=text) \
        == ascii(text)


def test_nothing_is_left_for_the_next_call(shared):
    shared.exec("input()", stdin="read\nunread\n")
    assert shared.exec("input()").error_type == "EOFError"
    assert shared.value("input()", stdin="mine\n") == "mine"


def test_much_of_it(shared):
    text = "0123456789abcde\n" * 60_000
    assert shared.value("import sys; len(sys.stdin.read())", stdin=text) == len(text)


def test_much_of_it_left_unread_holds_nothing(shared):
    assert shared.value("6 * 7", stdin="x" * 1_000_000) == 42


def test_max_stdin_is_a_setting(small_session):
    session = small_session
    assert session.value("import sys; len(sys.stdin.read())", stdin="x" * 4096) == 4096
    for text in ("x" * 4097, "ü" * 2049):
        answer = session.exec("ran = True", stdin=text)
        assert (answer.status, answer.error_type) == (413, "resource_limit")
    assert session.value("'ran' in globals()") is False
