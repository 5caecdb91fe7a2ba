# SPDX-License-Identifier: MIT
"""The real __main__ that code runs in, its source, and what stays from call to call."""

import os

import pytest


def test_variables_functions_and_imports_stay(worker):
    assert worker.run("x = 5\nimport math\ndef twice(n): return 2 * n").ok
    assert worker.value("twice(x) + math.floor(1.5)") == 11


def test_what_ran_before_an_error_stays(worker):
    assert worker.run("x = 1; 1/0").error == "ZeroDivisionError"
    assert worker.value("x") == 1


def test_the_code_is_main(worker):
    assert worker.value("import sys, __main__\nx = 7\n[__name__, __main__.x, "
                        "sys.modules['__main__'].__dict__ is globals()]") == ["__main__", 7, True]
    assert worker.run("if __name__ == '__main__': print('ran')").out == "ran\n"


def test_a_fresh_session_has_only_the_names_of_a_fresh_interpreter(worker):
    assert worker.value("sorted(n for n in dir() if not n.startswith('__'))") == []


def test_the_libraries_are_predefined(full_worker):
    assert full_worker.value("sorted(n for n in dir() if not n.startswith('__'))") \
        == ["np", "pd", "plt"]
    assert full_worker.value("[np.__name__, pd.__name__, plt.__name__]") \
        == ["numpy", "pandas", "matplotlib.pyplot"]


def test_main_is_put_back(worker):
    worker.run("x = 1\nimport sys, types\nsys.modules['__main__'] = types.ModuleType('other')\n"
               "__name__ = 'other'")
    assert worker.value("import __main__; [__main__.x, __name__]") == [1, "__main__"]
    worker.run("for name in list(globals()): del globals()[name]")
    assert worker.value("[__name__, len('builtins are back')]") == ["__main__", 17]


def test_classes_can_be_pickled(worker):
    worker.run("import pickle\nclass Point:\n    def __init__(self, x): self.x = x")
    worker.run("data = pickle.dumps(Point(7))")
    assert worker.value("pickle.loads(data).x") == 7


def test_dataclasses_resolve_their_annotations(worker):
    code = ("from __future__ import annotations\nimport dataclasses, typing\n"
            "@dataclasses.dataclass\nclass A:\n    x: int\n    y: A | None = None\n"
            "sorted(typing.get_type_hints(A))")
    assert worker.value(code) == ["x", "y"]


def test_future_imports_stay_like_all_imports(worker):
    assert worker.run("def f(a: no_such_name): pass").error == "NameError"
    worker.run("from __future__ import annotations")
    assert worker.value("def f(a: no_such_name): pass\nf.__annotations__") == {"a": "no_such_name"}


@pytest.mark.parametrize("code", [
    b"x = 1", b"\xef\xbb\xbfx = 1", b"x = 1\r\ny = 2\r\n", b"x = 1\ry = 2", b"x = 1\n\n# end",
    b"# -*- coding: latin-1 -*-\nx = len('\xc3\xbc')", b"x = 1\n\x0c\ny = 2", b"\tx = 1"[1:],
    b"x = 1 # \xe2\x98\x95",
])
def test_texts_of_all_kinds_run(worker, code):
    assert worker.run(code).ok
    assert worker.value("x") == 1


@pytest.mark.parametrize("code", ["", "\n", "# only a comment", "   \n\t\n", "\ufeff", "pass"])
def test_code_that_does_nothing(worker, code):
    result = worker.run(code)
    assert (result.ok, result.json, result.type) == (True, None, None)
    assert result.out == result.err == ""


@pytest.mark.parametrize("code", ["x = 1\0", "\0", "x = '\0'"])
def test_nul_is_refused_as_python_does(worker, code):
    assert worker.run(code).error in ("ValueError", "SyntaxError")
    assert worker.value("1") == 1


def test_the_source_of_earlier_calls_is_known(worker):
    worker.run("def f(a):\n    # says why\n    return a + 1\n")
    worker.run("import inspect\r\ndef g(a):\r\n    return a - 1")
    assert worker.value("inspect.getsource(f)") == "def f(a):\n    # says why\n    return a + 1\n"
    assert worker.value("inspect.getsource(g)") == "def g(a):\n    return a - 1\n"


def test_each_call_has_a_file_name_of_its_own(worker):
    worker.run("def f(): pass")
    worker.run("def g(): pass")
    assert worker.value("[f.__code__.co_filename, g.__code__.co_filename]") \
        == ["<exec-1>", "<exec-2>"]


def test_the_source_is_known_again_after_the_cache_was_emptied(worker):
    worker.run("import inspect, linecache\ndef f(): return 1\nlinecache.clearcache()")
    assert worker.value("inspect.getsource(f)") == "def f(): return 1\n"


def test_the_memory_for_sources_is_bounded(worker):
    worker.run("import linecache")
    for _ in range(8):
        worker.run("#" + "x" * 1_000_000)
    kept = worker.value("[n for n in linecache.cache if n.startswith('<exec-')]")
    assert "<exec-1>" not in kept and "<exec-9>" in kept
    assert len(kept) < 8
    large = worker.run("1\n" * 180_000 + "1/0")  # alone above the bound: kept while it runs
    assert large.context[-1] == "180001: 1/0"
    assert worker.value("[n for n in linecache.cache if n.startswith('<exec-')]") == ["<exec-12>"]


def test_thousands_of_small_calls_are_remembered(worker):
    worker.run("import linecache\ndef f(): pass")
    for _ in range(3000):
        worker.run("1")
    assert worker.value("linecache.getlines('<exec-1>')[1]") == "def f(): pass\n"


def test_modules_can_be_written_and_imported_at_once(worker):
    for number in range(3):
        (worker.home / f"m{number}.py").write_text(f"x = {number}")
        os.utime(worker.home, (1, 1))  # as if two changes came in one tick of its clock
        assert worker.value(f"import m{number}; m{number}.x") == number
        assert worker.run(f"import m{number + 1}").error == "ModuleNotFoundError"


def test_warnings_go_to_stderr_each_time(worker):
    for number in (1, 2):
        result = worker.run("import warnings; warnings.warn('careful')")
        assert result.ok and result.out == ""
        assert result.err.startswith(f"<exec-{number}>:1: UserWarning: careful\n")
        assert "warnings.warn('careful')" in result.err


def test_an_expression_deeper_than_a_tree_may_be(worker):
    deep = "1+" * 2000 + "1"
    assert worker.value(f"x = {deep}; y = 3; x") == 2001
    assert worker.value(f"z = {deep}\n") is None
    assert worker.value("[x, y, z]") == [2001, 3, 2001]


def test_threads_of_the_code_survive_the_call(worker):
    worker.run("import threading\ngo, done = threading.Event(), threading.Event()\n"
               "def wait():\n    go.wait()\n    done.set()\nthreading.Thread(target=wait).start()")
    assert worker.value("go.set(); done.wait(20)") is True
    assert worker.value("threading.current_thread() is threading.main_thread()") is True


def test_the_working_directory_stays_where_the_code_went(worker):
    worker.run("import os; os.mkdir('d'); os.chdir('d')")
    assert worker.value("os.getcwd()") == str(worker.home / "d")
    worker.run("os.rmdir('../d')")
    assert worker.value("os.getcwd()") == str(worker.home)


def test_failed_calls_keep_nothing_alive(worker):
    """No cycle through the traceback: memory is free again without a collection."""
    worker.run("import gc, weakref\ngc.disable()\nclass Big: pass\nseen = []")
    fail = "def fail():\n    big = Big()\n    seen.append(weakref.ref(big))\n"
    worker.run(fail + "    1/0\nfail()")
    worker.run(fail + "    raise SystemExit\nfail()")
    worker.run("async def f():\n    big = Big()\n    seen.append(weakref.ref(big))\n    1/0\n"
               "await f()")
    worker.run("class Bad:\n    def __repr__(self):\n        self.big = Big()\n"
               "        seen.append(weakref.ref(self.big))\n        1/0\nBad()")
    worker.run("class Resists(Exception): __notes__ = property(lambda self: 1/0)\n"
               + fail + "    raise Resists\nfail()")
    assert worker.value("[ref() is None for ref in seen]") == [True] * 5
