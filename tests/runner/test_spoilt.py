# SPDX-License-Identifier: MIT
"""Nothing that code overwrites, closes or sets breaks the next call."""

import pytest

SPOILING = {
    "print": "print = input = None",
    "builtins": "import builtins as b\nb.print = b.open = b.len = b.repr = b.str = b.type = None\n"
                "b.compile = b.exec = b.eval = b.isinstance = b.getattr = b.dict = None\n"
                "b.issubclass = b.iter = b.next = b.sorted = b.range = None",
    "all builtins": "import builtins; vars(builtins).clear()",
    "import": "import builtins; builtins.__import__ = None",
    "__builtins__": "del __builtins__",
    "fake __builtins__": "__builtins__ = {}",
    "no streams": "import sys; del sys.stdout, sys.stderr, sys.stdin",
    "other streams": "import sys; sys.stdout = sys.stderr = sys.stdin = sys.__stdout__ = 5",
    "closed streams": "import sys; sys.stdout.close(); sys.stderr.close(); sys.stdin.close()",
    "detached streams": "import sys; sys.stdout.detach(); sys.stderr.detach()",
    "patched streams": "import sys; sys.stdout.write = sys.stderr.write = lambda text: 0",
    "closed descriptors": "import os; os.close(0); os.close(1); os.close(2)",
    "many closed descriptors": "import os; os.closerange(0, 80)",
    "other descriptors": "import os\nfd = os.open('f', os.O_CREAT | os.O_RDWR)\n"
                         "os.dup2(fd, 0); os.dup2(fd, 1); os.dup2(fd, 2)",
    "descriptors that do not block": "import os\nfor fd in (0, 1, 2): os.set_blocking(fd, False)",
    "json": "import json; json.dumps = json.loads = json.encoder = None",
    "modules": "import sys; sys.modules.clear()",
    "fake modules": "import sys\nfor n in ('json', 'traceback', 'linecache', 'os', 'io', 'ast'):\n"
                    "    sys.modules[n] = None",
    "the import system": "import sys\nsys.path.clear(); sys.meta_path.clear()\n"
                         "sys.path_hooks.clear(); sys.path_importer_cache = None",
    "os": "import os, posix\nfor m in (os, posix):\n"
          "    m.write = m.dup2 = m.getcwd = m.chdir = None",
    "traceback": "import traceback, linecache, ast\ntraceback.TracebackException = None\n"
                 "traceback.format_exception = traceback.walk_tb = traceback.StackSummary = None\n"
                 "linecache.getline = linecache.getlines = linecache.cache = ast.parse = None",
    "contextlib": "import contextlib; contextlib.suppress = None",
    "hooks": "import sys, threading\nsys.excepthook = sys.displayhook = None\n"
             "sys.unraisablehook = threading.excepthook = None",
    "a trace": "import sys, threading\ndef t(*a): return t\n"
               "sys.settrace(t); threading.settrace(t)",
    "a trace that raises": "import sys; sys.settrace(lambda *a: 1/0)",
    "a profile": "import sys; sys.setprofile(lambda *a: None)",
    "a profile that raises": "import sys; sys.setprofile(lambda *a: 1/0)",
    "a profile that raises late": "import sys\nleft = 3\ndef p(*a):\n    global left\n"
                                  "    left -= 1\n    if not left: raise ValueError\n"
                                  "sys.setprofile(p)",
    "a low recursion limit": "import sys; sys.setrecursionlimit(60)",
    "the lowest recursion limit": "import sys\nfor n in range(1, 60):\n    try:\n"
                                  "        sys.setrecursionlimit(n); break\n"
                                  "    except RecursionError: pass",
    "a high recursion limit": "import sys; sys.setrecursionlimit(10**6)",
    "signals ignored": "import signal\nfor s in (2, 14, 15): signal.signal(s, signal.SIG_IGN)",
    "signals by default": "import signal; signal.signal(signal.SIGINT, signal.SIG_DFL)",
    "signals blocked": "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))",
    "an alarm": "import signal; signal.setitimer(signal.ITIMER_REAL, 0.05)",
    "alarms that raise": "import signal\nsignal.signal(signal.SIGALRM, lambda *a: 1/0)\n"
                         "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\ntry:\n"
                         "    while True: pass\nexcept ZeroDivisionError: pass",
    "other timers": "import signal; signal.setitimer(signal.ITIMER_PROF, 0.0001, 0.0001)\n"
                    "signal.setitimer(signal.ITIMER_VIRTUAL, 0.0001, 0.0001)\n"
                    "signal.signal(signal.SIGPROF, lambda *a: 1/0)\n"
                    "signal.signal(signal.SIGVTALRM, lambda *a: 1/0)",
    "signal": "import signal, _signal\nsignal.signal = _signal.signal = _signal.setitimer = None",
    "no garbage collection": "import gc; gc.disable()",
    "a callback of the collector": "import gc; gc.callbacks.append(lambda *a: 1/0)",
    "warnings are errors": "import warnings; warnings.simplefilter('error')",
    "warnings": "import warnings; warnings.warn = warnings.showwarning = warnings.filters = None",
    "no directory": "import os; os.mkdir('d'); os.chdir('d'); os.rmdir('../d')",
    "locale": "import locale, os\nos.environ.clear(); locale.setlocale(locale.LC_ALL, 'C')",
    "main": "import sys; del sys.modules['__main__']\nfor n in list(globals()): del globals()[n]",
    "threading": "import threading\nthreading.Thread = threading.current_thread = None",
    "asyncio": "import asyncio; asyncio.run = asyncio.Runner = asyncio.new_event_loop = None",
    "an open event loop": "import asyncio; asyncio.set_event_loop(asyncio.new_event_loop())",
    "an object that resists its end": "class Z:\n    def __del__(self): raise SystemExit\n"
                                      "z = Z(); Z()",
}


@pytest.fixture(params=SPOILING.values(), ids=SPOILING.keys())
def spoilt(request, worker):
    """A worker after a call that has spoilt something."""
    worker.run("kept = 41")
    worker.run(request.param)
    return worker


def test_the_next_call_runs(spoilt):
    result = spoilt.run("6 * 7")
    assert (result.value, result.type, result.out) == (42, "int", "")
    assert spoilt.run("1").value == 1


def test_the_next_error_is_told(spoilt):
    result = spoilt.run("x = 1\n1 / 0\n")
    assert (result.error, result.line) == ("ZeroDivisionError", 2)
    assert result.context == ["1: x = 1", "2: 1 / 0"]
    assert result.message.startswith("PythonError: ")


def test_the_streams_of_the_next_call_are_there(spoilt):
    # writes as print() does, which is itself among what is spoilt
    result = spoilt.run("import sys\nsys.stdout.write('out'); sys.stderr.write('err')\n"
                        "text = sys.stdin.readline()", stdin="in")
    if not result.ok:  # without __import__ there is no import
        assert result.error in ("ImportError", "TypeError")
        return
    assert (result.out, result.err) == ("out", "err")
    assert spoilt.value("text") == "in"


def test_tracebacks_survive_a_patched_traceback_module(worker):
    for name in ("builtins", "traceback", "fake modules", "contextlib"):
        worker.run(SPOILING[name])
        result = worker.run("def f(): 1 / 0\nf()")
        assert 'File "<exec-' in result.traceback and "    def f(): 1 / 0\n" in result.traceback
        assert result.traceback.endswith("ZeroDivisionError: division by zero")


def test_hooks_that_watch_the_code_end_with_its_call(worker):
    worker.run("import sys\ndef t(*a): return t\nsys.settrace(t); sys.setprofile(t)")
    assert worker.value("sys.gettrace() is sys.getprofile() is None") is True


def test_the_builtins_are_the_real_ones_again(worker):
    worker.run("del __builtins__")
    assert worker.value("import builtins; builtins.helper = 5; helper") == 5
    assert worker.value("__builtins__ is builtins") is True


def test_an_alarm_ends_with_its_call(worker):
    """It would end the process, whose disposition for it is the default."""
    assert worker.run("import signal, time; signal.setitimer(signal.ITIMER_REAL, 0.2)").ok
    assert worker.value("time.sleep(0.5); signal.getitimer(signal.ITIMER_REAL)") == [0.0, 0.0]


def test_an_alarm_within_a_call_works(worker):
    code = ("import signal, time\ndef ring(*args): raise TimeoutError('rang')\n"
            "signal.signal(signal.SIGALRM, ring)\nsignal.setitimer(signal.ITIMER_REAL, 0.05)\n"
            "time.sleep(20)")
    result = worker.run(code)
    assert (result.error, result.line) == ("TimeoutError", 2)


def test_a_limit_of_the_session_stays_when_it_is_high(worker):
    worker.run("import sys; sys.setrecursionlimit(5000)")
    assert worker.value("sys.getrecursionlimit()") == 5000
    worker.run("sys.setrecursionlimit(70)")
    assert worker.value("sys.getrecursionlimit()") == 1000


def test_what_the_code_sets_for_itself_stays(worker):
    worker.run("import builtins, warnings, gc\nbuiltins.helper = len\ngc.disable()\n"
               "warnings.simplefilter('ignore')\nimport sys; sys.excepthook = 5")
    assert worker.value("[helper('abc'), gc.isenabled(), sys.excepthook]") == [3, False, 5]
    assert worker.run("warnings.warn('w')").err == ""


def test_much_of_it_in_one_session(worker):
    for name, code in SPOILING.items():
        if name not in ("all builtins", "builtins", "import", "modules", "fake modules", "os",
                        "signal", "signals blocked", "the import system"):
            worker.run(code)
            assert worker.value("6 * 7") == 42, name
