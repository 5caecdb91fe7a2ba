# SPDX-License-Identifier: MIT
"""The exception that ended a call: its type, the traceback, the line, the lines around it."""

import re
import time

import pytest

SERVICE_TYPES = ["validation", "parsing", "resource_limit", "timeout", "crash", "rate_limit",
                 "busy", "capacity", "not_found", "method", "interrupted", "system"]


def test_the_whole_message(worker):
    result = worker.run("print(x)")
    assert result.error == "NameError" and result.line == 1
    assert re.fullmatch(
        r"PythonError: Traceback \(most recent call last\):\n"
        r'  File "<exec-1>", line 1, in <module>\n'
        r"    print\(x\)\n"
        r"          \^\n"
        r"NameError: name 'x' is not defined\n"
        r"\n"
        r"Code context:\n"
        r"1: print\(x\)", result.message)
    assert (result.out, result.err) == ("", "")


@pytest.mark.parametrize("code, kind, line", [
    ("\n1 / 0", "ZeroDivisionError", 2),
    ("def f(): f()\nf()", "RecursionError", 1),
    ("raise KeyboardInterrupt", "KeyboardInterrupt", 1),
    ("raise GeneratorExit", "GeneratorExit", 1),
    ("raise MemoryError", "MemoryError", 1),
    ("raise BaseException('base')", "BaseException", 1),
    ("class Mine(Exception): pass\nraise Mine", "Mine", 2),
    ("import json; json.loads('{')", "JSONDecodeError", 1),
    ("exec('1/0')", "ZeroDivisionError", 1),
    ("x = 1\nexec('1 +')", "SyntaxError", 2),
    ("raise SyntaxError('mine', ('f', 77, 1, 'text'))", "SyntaxError", 1),
    ("raise StopIteration", "StopIteration", 1),
])
def test_the_type_and_the_line(worker, code, kind, line):
    result = worker.run(code)
    assert (result.error, result.line) == (kind, line)
    assert "<vivarium>" not in result.message


@pytest.mark.parametrize("code, kind, line", [
    ("a = 1\nb = = 2", "SyntaxError", 2),
    ("a = 1\n\nreturn 5", "SyntaxError", 3),  # found after parsing
    ("def f():\n    x = 1\n    global x", "SyntaxError", 3),
    ("if 1:\nx = 1", "IndentationError", 2),
    ("if 1:\n\tx = 1\n        y = 2", "TabError", 3),
    ("print('a'", "SyntaxError", 1),
    ("x = '''a\nb", "SyntaxError", 1),
])
def test_errors_of_syntax(worker, code, kind, line):
    result = worker.run(code)
    failing = code.split("\n")[line - 1]
    assert (result.error, result.line) == (kind, line)
    assert result.traceback.startswith(
        f'  File "<exec-1>", line {line}\n    {failing.strip()}\n')
    assert result.context[line - 1] == f"{line}: {failing}"
    assert worker.value("[n for n in dir() if not n.startswith('__')]") == []


@pytest.mark.parametrize("failing, shown", [
    (1, range(1, 6)), (3, range(1, 8)), (10, range(6, 15)), (19, range(15, 21)),
    (20, range(16, 21)),
])
def test_up_to_four_lines_around_the_failing_one(worker, failing, shown):
    lines = [f"v{number} = {number}" for number in range(1, 21)]
    lines[failing - 1] = "1 / 0"
    for end in ("", "\n", "\r\n"):
        result = worker.run("\n".join(lines) + end)
        assert result.line == failing
        assert result.context == [f"{number}: {lines[number - 1]}" for number in shown]


def test_the_line_is_that_of_the_innermost_frame_in_this_code(worker):
    worker.run("def earlier(f): return f()")
    result = worker.run("def inner():\n    return int('x')\n\nearlier(inner)")
    assert (result.error, result.line) == ("ValueError", 2)
    assert re.findall(r'File "([^"]+)", line (\d+)', result.traceback) == [
        ("<exec-2>", "4"), ("<exec-1>", "1"), ("<exec-2>", "2")]
    assert "    def earlier(f): return f()\n" in result.traceback


def test_an_error_in_a_library_shows_its_frames_and_points_at_the_call(worker):
    result = worker.run("import json\njson.loads('{')\n")
    assert result.line == 2 and result.context[1] == "2: json.loads('{')"
    assert re.search(r'File "/[^"]*/json/decoder.py", line \d+, in raw_decode\n    \w',
                     result.traceback)


def test_an_error_without_a_frame_in_this_code_has_no_line_and_no_context(worker):
    worker.run("class Bad:\n    def __repr__(self): 1/0")
    result = worker.run("Bad()")
    assert (result.error, result.line, result.context) == ("ZeroDivisionError", None, None)
    assert 'File "<exec-1>", line 2, in __repr__' in result.traceback
    result = worker.run("x = 1\0")
    assert (result.line, result.context) == (None, None)


@pytest.mark.parametrize("name", SERVICE_TYPES)
def test_no_class_passes_for_a_type_of_the_service(worker, name):
    result = worker.run(f"class {name}(Exception): pass\nraise {name}('mine')")
    assert result.error == f"__main__.{name}"
    (worker.home / "helper.py").write_text(f"class {name}(BaseException): __module__ = ''\n")
    assert worker.run(f"import helper\nraise helper.{name}").error == f"?.{name}"
    assert worker.run(f"raise type({name!r}, (Exception,), {{'__module__': 5}})").error \
        == f"?.{name}"


@pytest.mark.parametrize("make, error", [
    ("type('Z' * 100_000, (Exception,), {})", "Z" * 200),
    ("type('a\\nb\\x1b\\u2028\\u202e', (Exception,), {})", "a\ufffdb\ufffd\ufffd\ufffd"),
    ("type('', (Exception,), {})", "?"),
    ("type('with space ü', (Exception,), {})", "with space ü"),
    ("type(type('S', (str,), {'__len__': None, '__getitem__': None})('sub'), (Exception,), {})",
     "sub"),
    ("type('M', (type,), {'__name__': property(lambda c: 1/0)})"
     "('hidden', (Exception,), {})", "hidden"),
])
def test_hostile_class_names_are_made_safe(worker, make, error):
    assert worker.run(f"raise ({make})('text')").error == error
    assert worker.value("1") == 1


def test_causes_contexts_notes_and_groups(worker):
    result = worker.run("try:\n    1/0\nexcept Exception as e:\n    raise ValueError('v') from e")
    assert result.line == 4
    assert "ZeroDivisionError: division by zero\n\nThe above exception was the direct cause of" \
        " the following exception:\n\nTraceback" in result.traceback
    result = worker.run("try:\n    1/0\nexcept Exception:\n    {}['k']")
    assert "During handling of the above exception, another exception" in result.traceback
    result = worker.run("try:\n    1/0\nexcept Exception:\n    raise ValueError from None")
    assert "ZeroDivisionError" not in result.traceback
    result = worker.run("e = ValueError('v')\ne.add_note('look\\nhere')\nraise e")
    assert result.traceback.endswith("ValueError: v\nlook\nhere")
    result = worker.run("def f(): 1/0\ntry: f()\nexcept Exception as e:\n"
                        "    raise ExceptionGroup('several', [e, TypeError('t')])")
    assert result.error == "ExceptionGroup" and "<vivarium>" not in result.message
    for part in ("ExceptionGroup: several (2 sub-exceptions)", "| TypeError: t", "in f"):
        assert part in result.traceback


def test_a_message_ends_as_python_ends_it(worker):
    assert worker.run("raise ValueError('v\\n\\n')").traceback.endswith("ValueError: v\n\n")
    assert worker.run("raise ValueError").traceback.endswith("\nValueError")
    assert worker.run("raise OSError(2, 'gone', 'f')").traceback.endswith(
        "FileNotFoundError: [Errno 2] gone: 'f'")


def test_no_colour(worker):
    worker.run("import os; os.environ['FORCE_COLOR'] = os.environ['PYTHON_COLORS'] = '1'")
    assert "\x1b" not in worker.run("1 / 0").message


def test_text_beyond_ascii(worker):
    result = worker.run("名前 = 'ü'\nraise ValueError('日本 ' + 名前 + '\\ud800\\0\\x1b')")
    assert result.traceback.endswith("ValueError: 日本 ü\\ud800\0\x1b")
    assert result.context[0] == "1: 名前 = 'ü'"


@pytest.mark.parametrize("method", [
    "def __str__(self): raise RuntimeError('no')",
    "def __str__(self): return 5",
    "def __str__(self): raise SystemExit",
    "def __str__(self): return str(self)",
    "__notes__ = property(lambda self: 1/0)",
    "__cause__ = property(lambda self: 1/0)",
    "__traceback__ = property(lambda self: 1/0)",
    "__class__ = property(lambda self: 1/0)",
    "__notes__ = [type('N', (), {'__str__': lambda self: 1/0})()]",
    "def __getattribute__(self, name): raise RuntimeError('no')",
    "def __str__(self): return type('S', (str,), {'__len__': None, '__getitem__': None})('s')",
])
def test_exceptions_that_resist_being_shown(worker, method):
    result = worker.run(f"class Bad(Exception):\n    {method}\nx = 1\nraise Bad")
    assert (result.error, result.line) == ("Bad", 4)
    assert result.context[3] == "4: raise Bad"
    assert "<vivarium>" not in result.message
    assert worker.value("x") == 1


def test_endless_recursion_makes_no_endless_message(worker):
    result = worker.run("def f(n):\n    return f(n + 1)\n\nf(0)")
    assert (result.error, result.line) == ("RecursionError", 2)
    assert "[Previous line repeated" in result.traceback
    assert len(result.message) < 4096


def test_a_recursion_far_beyond_the_default_limit(worker):
    result = worker.run("import sys\nsys.setrecursionlimit(60_000)\n"
                        "def f(n): return f(n - 1) if n else 1/0\nf(50_000)")
    assert result.error == "ZeroDivisionError"
    assert int(re.search(r"repeated (\d+) more times", result.traceback)[1]) < 1000


def test_a_chain_without_end_is_cut(worker):
    began = time.monotonic()
    result = worker.run("def f():\n    try: 1/0\n    except Exception: f()\nf()")
    assert result.error == "RecursionError"
    assert result.traceback.startswith("[earlier exceptions left out]\n\nTraceback")
    assert time.monotonic() - began < 20
    result = worker.run("a, b = ValueError('a'), ValueError('b')\n"
                        "a.__cause__, b.__cause__ = b, a\nraise a")
    assert result.error == "ValueError" and result.line == 3


def test_the_message_is_capped_and_keeps_both_ends(worker):
    names = [f"function_with_a_long_name_{n}_{'x' * 900}" for n in range(90)]
    code = [f"def {name}(): {after}()" for name, after in zip(names, names[1:])]
    code += [f"def {names[-1]}(): raise ValueError('the end ☕')", f"{names[0]}()"]
    result = worker.run("\n".join(code))
    assert 60_000 < len(result.fields[6]) <= 65536
    assert result.traceback.startswith("Traceback (most recent call last):\n")
    assert re.search(r"\n\.\.\. \[\d+ bytes cut\] \.\.\.\n", result.traceback)
    assert result.traceback.endswith("ValueError: the end ☕")
    assert result.context[-1].startswith("91: function_with")


def test_long_text_of_an_exception_is_cut_early(worker):
    result = worker.run("raise ValueError('Z' * 1_000_000)")
    assert result.traceback.endswith("ZZZ... [991808 characters cut]")
    assert len(result.message) < 10_000
    result = worker.run("raise SyntaxError('Z' * 1_000_000)")
    assert "characters cut" in result.traceback and len(result.message) < 20_000
    assert "cut" not in worker.run("raise ValueError('Z' * 8192)").message


def test_one_endless_line_is_cut_wherever_it_is_shown(worker):
    data = "'" + "x" * 200_000 + "'"
    for code, error in ((f"data = {data}; 1/0", "ZeroDivisionError"), (f"{data} + 1", "TypeError"),
                        (f"data = {data} +", "SyntaxError")):
        result = worker.run(code)
        assert (result.error, result.line) == (error, 1)
        assert re.search(r"\.\.\. \[\d+ characters cut\]$", result.context[0])
        assert len(result.message) < 4096


def test_tracebacks_are_only_in_the_message(worker):
    result = worker.run("import sys\nprint('o')\nprint('e', file=sys.stderr)\n1/0")
    assert (result.out, result.err) == ("o\n", "e\n")


def test_an_error_in_a_thread_goes_to_stderr(worker):
    result = worker.run("import threading\nt = threading.Thread(target=lambda: 1/0)\n"
                        "t.start(); t.join()\n'fine'")
    assert result.value == "fine"
    assert "ZeroDivisionError" in result.err


def test_errors_inside_pandas(full_worker):
    result = full_worker.run("df = pd.DataFrame({'a': [1]})\ndf['b']")
    assert (result.error, result.line) == ("KeyError", 2)
    assert result.traceback.endswith("KeyError: 'b'")
