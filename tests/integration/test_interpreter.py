# SPDX-License-Identifier: MIT
"""The interpreter that a session finds: a real __main__, its names, and that nothing spoils it."""

import pytest

from support.program import program


def test_the_names_that_are_there_from_the_start(session):
    assert session.value("np.arange(3).sum() + pd.Series([4]).sum()") == 7
    assert session.value("plt.__name__") == "matplotlib.pyplot"


def test_the_code_runs_in_main(session):
    code = "def main(): print('ran')\nif __name__ == '__main__':\n    main()"
    assert session.output(code) == "ran\n"
    assert session.value("import __main__, sys; x = 5; (__main__.x, sys.modules['__main__'].x)") \
        == [5, 5]


def test_objects_of_the_codes_own_classes_can_be_pickled(session):
    session.exec(program("""
        import pickle
        class Point:
            def __init__(self, x): self.x = x
    """))
    session.exec("data = pickle.dumps(Point(7))")
    assert session.value("pickle.loads(data).x") == 7


def test_dataclasses_and_type_hints(session):
    code = ("from __future__ import annotations\nimport dataclasses, typing\n"
            "@dataclasses.dataclass\nclass A:\n    x: int\n    y: A | None = None\n"
            "sorted(typing.get_type_hints(A))")
    assert session.value(code) == ["x", "y"]


def test_modules_can_be_written_and_imported(session):
    session.exec("open('helper.py', 'w').write('answer = 42')")
    answer = session.exec("import helper; helper.answer")
    assert answer.value == 42
    assert not any("__pycache__" in name for name in answer.files)
    assert session.value("import uploaded; uploaded.x", files={"uploaded.py": b"x = 'up'"}) == "up"


def test_the_source_of_earlier_calls_is_known(session):
    session.exec("def f(a):\n    # says why\n    return a + 1\n")
    session.exec("def g(a):\n    return a - 1\n")
    sources = session.value("import inspect; [inspect.getsource(f), inspect.getsource(g)]")
    assert sources == [
        "def f(a):\n    # says why\n    return a + 1\n", "def g(a):\n    return a - 1\n"]


def test_top_level_await_and_asyncio_run(session):
    assert session.value(program("""
        import asyncio
        await asyncio.sleep(0)
        5
    """)) == 5
    session.exec(program("""
        async def main():
            await asyncio.sleep(0)
            return 'ran'
    """))
    assert session.value("asyncio.run(main())") == "ran"
    assert session.value("await main()") == "ran"
    assert session.value("await asyncio.gather(main(), main())") == ["ran", "ran"]
    session.exec(program("""
        async def count():
            yield 1
            yield 2
    """))
    assert session.value("[x async for x in count()]") == [1, 2]
    assert session.value(program("""
        async with asyncio.timeout(60):
            x = await main()
        x
    """)) == "ran"


def test_errors_after_an_await(session):
    answer = session.exec(program("""
        import asyncio
        await asyncio.sleep(0)
        1 / 0
    """))
    assert (answer.error_type, answer.error["line"]) == ("ZeroDivisionError", 3)
    assert session.value("await asyncio.sleep(0, 'fine')") == "fine"


def test_state_after_an_error(session):
    session.exec("x = 1; 1 / 0")
    assert session.value("x") == 1


@pytest.mark.parametrize("spoiling", [
    "print = None",
    "import builtins; builtins.print = None",
    "import builtins; builtins.open = None; builtins.len = None; builtins.repr = None",
    "import builtins; builtins.compile = builtins.exec = builtins.eval = None",
    "import builtins; builtins.isinstance = builtins.type = builtins.str = builtins.dict = None",
    "import builtins; builtins.__import__ = None",
    "import builtins; vars(builtins).clear()",
    "import sys; sys.stdout = sys.stderr = sys.stdin = None",
    "import sys; sys.stdout.close(); sys.stderr.close(); sys.stdin.close()",
    "import sys, io; sys.stdout = sys.__stdout__ = io.StringIO()",
    "import json; json.dumps = lambda *a, **k: 'owned'; json.encoder = None",
    "import sys; sys.modules.clear()",
    "import sys; sys.path.clear(); sys.meta_path.clear()",
    "import os; os.write = os.read = os.getcwd = os.listdir = None",
    "import traceback, linecache, ast; traceback.format_exception = linecache.getlines = None\n"
    "ast.parse = traceback.TracebackException = traceback.walk_tb = None",
    "import sys; sys.excepthook = sys.displayhook = None; sys.settrace(lambda *a: 1 / 0)",
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)",
    "import gc; gc.disable()",
    "import sys; sys.setrecursionlimit(60)",
    "for name in list(globals()): del globals()[name]",
    "import sys; del sys.modules['__main__']",
    "import os; os.makedirs('d'); os.chdir('d'); os.rmdir('../d')",
    "import threading; threading.Thread = threading.current_thread = None",
    "import time; time.time = time.monotonic = time.perf_counter = None",
    "import asyncio; asyncio.new_event_loop = asyncio.run = None",
    "import locale; locale.setlocale(locale.LC_ALL, 'C')",
    "import warnings; warnings.simplefilter('error')",
    "import matplotlib.pyplot as p; p.get_fignums = p.close = p.show = None",
])
def test_nothing_that_code_overwrites_breaks_the_next_call(session, spoiling):
    session.exec(spoiling)
    answer = session.exec("6 * 7")
    assert answer.success and answer.value == 42, answer
    assert answer.lost == "none"


def test_output_works_after_streams_were_spoilt(session):
    session.exec(program("""
        import sys
        sys.stdout.close()
        sys.stderr = None
        sys.stdin.close()
    """))
    answer = session.exec(program("""
        import sys
        print('out')
        print('err', file=sys.stderr)
        input()
    """), stdin="in\n")
    assert (answer.value, answer.std_out, answer.std_err) == ("in", "out\n", "err\n")


def test_errors_are_told_after_tracebacks_were_spoilt(session):
    session.exec(program("""
        import traceback, linecache, sys
        linecache.getline = linecache.getlines = None
        traceback.format_exception = traceback.TracebackException = None
        sys.excepthook = None
    """))
    answer = session.exec("x = 1\n1 / 0")
    assert (answer.error_type, answer.error["line"]) == ("ZeroDivisionError", 2)


def test_the_working_directory_stays_as_the_code_left_it(session):
    session.exec("import os; os.mkdir('work'); os.chdir('work')")
    answer = session.exec("open('f', 'w').write('f'); os.getcwd()")
    assert answer.value == "/home/earth/work"
    assert answer.files == {"work/f": b"f"}


RANDOM = ("import random, uuid, tempfile\n"
          "[float(np.random.rand()), random.random(), str(uuid.uuid4()), tempfile.mktemp(),"
          " float(np.random.default_rng().random()), os.urandom(8).hex()]")


def test_chance_differs_between_sessions(new_session):
    first, second = (new_session().value("import os\n" + RANDOM) for _ in range(2))
    assert not set(first) & set(second)


def test_the_libraries_speak_of_nothing_missing(session):
    code = ("import matplotlib.pyplot as plt, pandas as pd, numpy as np, zoneinfo, warnings\n"
            "fig, ax = plt.subplots(); ax.plot([1, 2]); fig.savefig('a.png')\n"
            "np.linalg.svd(np.ones((50, 50)))\n"
            "str(zoneinfo.ZoneInfo('Europe/Berlin'))")
    answer = session.exec(code)
    assert answer.value == "Europe/Berlin"
    assert (answer.std_out, answer.std_err) == ("", "")


def test_threads_and_pools_of_threads_work(session):
    code = ("from concurrent.futures import ThreadPoolExecutor\n"
            "from multiprocessing.pool import ThreadPool\n"
            "with ThreadPoolExecutor(4) as pool: a = list(pool.map(abs, range(-3, 0)))\n"
            "with ThreadPool(2) as pool: b = pool.map(abs, [-1])\n"
            "[a, b]")
    assert session.value(code) == [[3, 2, 1], [1]]


def test_common_modules_work(session):
    code = ("import sqlite3, zipfile, tempfile, shutil, csv, decimal\n"
            "db = sqlite3.connect('data.db'); db.execute('create table t (x)')\n"
            "db.execute('insert into t values (5)'); db.commit()\n"
            "with tempfile.TemporaryDirectory() as d:\n"
            "    shutil.copy('data.db', d)\n"
            "    with zipfile.ZipFile('all.zip', 'w') as z: z.write(d + '/data.db', 'data.db')\n"
            "db.execute('select x from t').fetchall()")
    answer = session.exec(code)
    assert answer.value == [[5]]
    assert sorted(answer.files) == ["all.zip", "data.db"]


def test_a_large_problem_in_linear_algebra_ends(session):
    assert session.value("int(np.linalg.svd(np.ones((300, 300)))[1].round()[0])") == 300
