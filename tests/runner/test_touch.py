# SPDX-License-Identifier: MIT
"""touch(), which runs between two calls: no code of the user takes part, and nothing changes."""

BEFORE = """
import gc, linecache, sys
touch = sys.modules['_vivarium_runner'].touch

class Loud:
    def __del__(self):
        died.append(1)

died = []
gc.collect()
gc.set_threshold(1)
"""


def test_it_leaves_no_trace(worker):
    worker.run("_ = 'kept'; import sys; streams = sys.stdin, sys.stdout, sys.stderr")
    names = worker.value("sorted(globals())")
    assert worker.run("sys.modules['_vivarium_runner'].touch()").ok
    assert worker.value("sorted(globals())") == names
    assert worker.value("import linecache; [_, '<exec-0>' in linecache.cache]") == ["kept", False]


def test_the_collector_runs_no_finalizer_meanwhile(worker):
    assert worker.value(BEFORE + """
gc.disable()
one = Loud(); one.me = one; del one  # what only the collector finds
gc.enable()
touch()
at_once = len(died)
[at_once, gc.isenabled(), gc.collect() > 0, len(died)]
""")[:2] == [0, True]
    assert worker.value("gc.collect(); len(died)") == 1


def test_a_collector_that_the_code_has_stopped_stays_so(worker):
    assert worker.value(BEFORE + "gc.disable(); touch(); gc.isenabled()") is False
