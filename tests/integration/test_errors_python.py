# SPDX-License-Identifier: MIT
"""Python's own errors: their type, the traceback, the code around the line that failed."""

import re

import pytest

from support.program import program

OWN_TYPES = [
    "validation", "parsing", "resource_limit", "timeout", "crash", "busy", "capacity",
    "rate_limit", "not_found", "method", "system",
]


def context(answer):
    """The code context of a message: numbers to lines."""
    _, _, tail = answer.error["message"].partition("\n\nCode context:\n")
    lines = (re.fullmatch(r" *(\d+): ?(.*)", line) for line in tail.split("\n") if line)
    return {int(line[1]): line[2] for line in lines}


def frames(answer):
    """The frames of a traceback: pairs of file and line."""
    found = re.findall(r'  File "([^"]*)", line (\d+)', answer.error["message"])
    return [(name, int(line)) for name, line in found]


def test_the_message_is_the_traceback_and_the_code(shared):
    answer = shared.exec("print(x_not_defined)")
    assert answer.error["line"] == 1
    assert re.fullmatch(
        r"PythonError: Traceback \(most recent call last\):\n"
        r'  File "<exec-\d+>", line 1, in <module>\n'
        r"    print\(x_not_defined\)\n"
        r"          \^+\n"
        r"NameError: name 'x_not_defined' is not defined\n"
        r"\n"
        r"Code context:\n"
        r"1: print\(x_not_defined\)", answer.error["message"])


@pytest.mark.parametrize("code, kind", [
    ("1 / 0", "ZeroDivisionError"),
    ("1 + 'a'", "TypeError"),
    ("[][1]", "IndexError"),
    ("{}['k']", "KeyError"),
    ("import no_such_module", "ModuleNotFoundError"),
    ("open('no such file')", "FileNotFoundError"),
    ("int('x')", "ValueError"),
    ("None.x", "AttributeError"),
    ("assert False", "AssertionError"),
    ("def f(): f()\nf()", "RecursionError"),
    ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ("raise GeneratorExit", "GeneratorExit"),
    ("raise BaseException('base')", "BaseException"),
    ("raise ExceptionGroup('several', [ValueError('a'), TypeError('b')])", "ExceptionGroup"),
    ("class MyError(Exception): pass\nraise MyError('mine')", "MyError"),
    ("import json; json.loads('{')", "JSONDecodeError"),
    ("pd.DataFrame({'a': [1]})['b']", "KeyError"),
    ("1 +", "SyntaxError"),
    ("print('a'", "SyntaxError"),
    ("return 5", "SyntaxError"),
    ("if True:\nx = 1", "IndentationError"),
    ("if True:\n\tx = 1\n        y = 2", "TabError"),
    ("x = 'ab\n", "SyntaxError"),
])
def test_the_type_is_the_name_of_the_class(shared, code, kind):
    answer = shared.exec(code)
    assert answer.status == 200
    assert answer.error_type == kind
    assert kind in answer.error["message"]


@pytest.mark.parametrize("name", OWN_TYPES)
def test_a_class_of_the_code_cannot_pass_for_one_of_our_types(shared, name):
    answer = shared.exec(f"class {name}(Exception): pass\nraise {name}('mine')")
    assert answer.error_type == f"__main__.{name}"


@pytest.mark.parametrize("failing, shown", [
    (1, range(1, 6)), (3, range(1, 8)), (10, range(6, 15)), (20, range(16, 21)),
])
def test_up_to_four_lines_around_the_failing_one_are_shown(shared, failing, shown):
    lines = [f"value_{number} = {number}" for number in range(1, 21)]
    lines[failing - 1] = "1 / 0"
    answer = shared.exec("\n".join(lines))
    assert answer.error["line"] == failing
    assert context(answer) == {number: lines[number - 1] for number in shown}


def test_a_syntax_error_names_its_line(shared):
    answer = shared.exec(program("""
        a = 1
        b = 2
        c = = 3
        d = 4
    """))
    assert answer.error_type == "SyntaxError"
    assert answer.error["line"] == 3
    assert context(answer)[3] == "c = = 3"
    assert "a" not in shared.value("sorted(globals())"), "half of the code has run"


def test_the_line_is_the_innermost_in_this_calls_code(shared):
    code = "def outer():\n    inner()\ndef inner():\n    return 1 / 0\n\nouter()"
    answer = shared.exec(code)
    assert answer.error["line"] == 4
    assert [line for _, line in frames(answer)] == [6, 2, 4]


def test_an_error_inside_a_library_points_at_the_call(shared):
    answer = shared.exec("import json\ntext = '{'\njson.loads(text)\n")
    assert answer.error["line"] == 3
    assert context(answer)[3] == "json.loads(text)"
    files = [name for name, _ in frames(answer)]
    assert files[0].startswith("<exec-") and files[-1].endswith("decoder.py")


def test_an_error_in_a_function_of_an_earlier_call(shared):
    shared.exec("\n\ndef divide(by):\n    return 1 / by\n")
    answer = shared.exec("x = 0\ndivide(x)")
    assert answer.error["line"] == 2
    assert context(answer) == {1: "x = 0", 2: "divide(x)"}
    assert "    return 1 / by\n" in answer.error["message"], "the earlier call's code is not shown"
    here, there = frames(answer)
    assert here[0] != there[0], "two calls share one file name"
    assert (here[1], there[1]) == (2, 4)


def test_no_frame_of_the_machinery_is_shown(shared):
    own = re.compile(r"<exec-\d+>")
    for code in ("1 / 0", "def f(): 1 / 0\nf()", "await __import__('asyncio').sleep('x')", "1 +",
                 "class R:\n    def __repr__(self): 1 / 0\nR()"):
        answer = shared.exec(code)
        assert not answer.success
        for name, _ in frames(answer):
            assert own.fullmatch(name) or re.search(r"/python3[^/]*/", name), answer


def test_causes_and_contexts_are_shown(shared):
    answer = shared.exec(program("""
        try:
            1 / 0
        except ZeroDivisionError as e:
            raise ValueError('second') from e
    """))
    message = answer.error["message"]
    assert answer.error_type == "ValueError"
    assert answer.error["line"] == 4
    assert "ZeroDivisionError: division by zero" in message
    assert "The above exception was the direct cause of the following exception:" in message


def test_the_members_of_a_group_are_shown(shared):
    answer = shared.exec(
        "raise ExceptionGroup('several', [ValueError('first'), TypeError('second')])")
    assert "ValueError: first" in answer.error["message"]
    assert "TypeError: second" in answer.error["message"]


def test_notes_are_shown(shared):
    answer = shared.exec(program("""
        e = ValueError('v')
        e.add_note('look here')
        raise e
    """))
    assert "look here" in answer.error["message"]


def test_the_message_has_no_colour(shared):
    assert "\x1b" not in shared.exec("1 / 0").error["message"]


def test_text_beyond_ascii(shared):
    answer = shared.exec("名前 = 'ü'\nraise ValueError('日本 ' + 名前)\n")
    assert "ValueError: 日本 ü" in answer.error["message"]
    assert context(answer)[1] == "名前 = 'ü'"


@pytest.mark.parametrize("text", [r"'\ud800'", r"'a\0b'", r"'\x1b[31m'", r"'\n\n\nCode context:'"])
def test_messages_of_any_characters(shared, text):
    answer = shared.exec(f"raise ValueError({text})")
    assert answer.error_type == "ValueError"
    assert answer.error["line"] == 1


def test_an_exception_that_cannot_be_printed(session):
    code = "class Bad(Exception):\n    def __str__(self): raise RuntimeError('no')\nraise Bad()"
    answer = session.exec(code)
    assert answer.error_type == "Bad"
    assert answer.error["line"] == 3
    assert session.value("1") == 1


def test_an_exception_that_takes_for_ever_to_print(session):
    code = "class Bad(Exception):\n    def __str__(self):\n        while True: pass\nraise Bad()"
    assert session.exec(code, timeout_ms=500).error_type == "timeout"
    assert session.value("1") == 1


def test_a_message_of_any_length_is_capped(session):
    answer = session.exec("raise ValueError('Z' * (1 << 26))")
    assert answer.error_type == "ValueError"
    assert "Z" * 1000 in answer.error["message"]
    assert len(answer.body) < 4 << 20
    assert session.value("1") == 1


def test_a_class_name_of_any_length_is_capped(session):
    answer = session.exec("raise type('Z' * (1 << 24), (Exception,), {})('v')")
    assert not answer.success
    assert len(answer.body) < 4 << 20


def test_endless_recursion_makes_no_endless_message(session):
    answer = session.exec(program("""
        def f(n):
            return f(n + 1)

        f(0)
    """))
    assert answer.error_type == "RecursionError"
    assert answer.error["line"] in (2, 4)
    assert len(answer.error["message"]) < 64 * 1024


def test_what_ran_before_the_error_stays(session):
    assert session.exec(program("""
        x = 1
        open('f', 'w').write('f')
        1 / 0
    """)).error_type == "ZeroDivisionError"
    assert session.value("(x, open('f').read())") == [1, "f"]


def test_files_and_output_come_with_the_error(session):
    answer = session.exec(program("""
        import sys
        print('out')
        print('err', file=sys.stderr)
        open('saved.txt', 'w').write('kept')
        raise ValueError('late')
    """))
    assert answer.error_type == "ValueError"
    assert (answer.std_out, answer.std_err) == ("out\n", "err\n")
    assert answer.files == {"saved.txt": b"kept"}


def test_an_error_in_a_thread_is_no_error_of_the_call(session):
    answer = session.exec(program("""
        import threading
        t = threading.Thread(target=lambda: 1 / 0)
        t.start()
        t.join()
        'fine'
    """))
    assert answer.value == "fine"
    assert "ZeroDivisionError" in answer.std_err


@pytest.mark.parametrize("code", [
    "import sys; sys.exit()", "import sys; sys.exit(0)", "exit()", "quit()", "exit(0)",
    "raise SystemExit", "raise SystemExit(None)",
])
def test_leaving_with_status_0_is_success(shared, code):
    answer = shared.exec(program(f"""
        left = {code!r}
        print('before')
        {code}
        print('after')
    """))
    assert answer.success, answer
    assert answer.std_out == "before\n"
    assert answer.value is None
    assert shared.value("left") == code


@pytest.mark.parametrize("code, status", [
    ("import sys; sys.exit(3)", "3"), ("exit(255)", "255"), ("quit(-1)", "-1"),
    ("raise SystemExit(2)", "2"), ("import sys; sys.exit('disk is full')", "disk is full"),
])
def test_leaving_with_another_status_is_system_exit(shared, code, status):
    answer = shared.exec(program(f"""
        left = {code!r}
        {code}
        print('after')
    """))
    assert answer.error_type == "SystemExit"
    assert status in answer.error["message"]
    assert (answer.lost, answer.std_out) == ("none", "")
    assert shared.value("left") == code
