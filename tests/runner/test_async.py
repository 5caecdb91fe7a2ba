# SPDX-License-Identifier: MIT
"""Top-level await, and asyncio as code uses it by itself."""

import pytest


def test_await_and_run_in_one_session(worker):
    assert worker.value("import asyncio\nawait asyncio.sleep(0)\n5") == 5
    worker.run("async def main():\n    await asyncio.sleep(0)\n    return 'ran'")
    assert worker.value("asyncio.run(main())") == "ran"
    assert worker.value("await main()") == "ran"
    assert worker.value("x = await main()\nx") == "ran"
    assert worker.value("await asyncio.gather(main(), main())") == ["ran", "ran"]
    assert worker.value("async with asyncio.timeout(60):\n    x = await main()\nx") == "ran"
    assert worker.value("asyncio.new_event_loop().run_until_complete(main())") == "ran"


def test_asynchronous_loops(worker):
    worker.run("async def count():\n    yield 1\n    yield 2")
    assert worker.value("[x async for x in count()]") == [1, 2]
    assert worker.value("seen = []\nasync for x in count(): seen.append(x)\nseen") == [1, 2]


def test_a_task_of_an_early_statement_runs_in_the_loop_of_the_last(worker):
    code = ("import asyncio\nasync def f(): return 6\ntask = asyncio.create_task(f())\nawait task")
    assert worker.value(code) == 6
    assert worker.run("import asyncio\nasyncio.get_running_loop()").error == "RuntimeError"


def test_the_loop_ends_with_the_call_and_its_tasks_with_it(worker):
    worker.run("import asyncio\nlog = []\nasync def f():\n    try: await asyncio.sleep(999)\n"
               "    except asyncio.CancelledError: log.append('cancelled'); raise\n"
               "task = asyncio.create_task(f()); loop = asyncio.get_running_loop()\n"
               "await asyncio.sleep(0)")
    assert worker.value("[log, task.cancelled(), loop.is_closed()]") == [["cancelled"], True, True]
    assert worker.value("await asyncio.sleep(0, 'next')") == "next"


@pytest.mark.parametrize("code, error, line", [
    ("import asyncio\nawait asyncio.sleep(0)\n1 / 0", "ZeroDivisionError", 3),
    ("import asyncio\n1 / 0\nawait asyncio.sleep(0)", "ZeroDivisionError", 2),
    ("async def f():\n    1 / 0\nawait f()", "ZeroDivisionError", 2),
    ("import asyncio\nawait asyncio.sleep(0)\nraise KeyboardInterrupt", "KeyboardInterrupt", 3),
    ("import asyncio\nraise asyncio.CancelledError\nawait asyncio.sleep(0)", "CancelledError", 2),
    ("await 5", "TypeError", 1),
    ("import asyncio\nawait asyncio.sleep(0)\nasyncio.run(asyncio.sleep(0))", "RuntimeError", 3),
])
def test_errors_show_no_loop(worker, code, error, line):
    result = worker.run(code)
    assert (result.error, result.line) == (error, line)
    assert "<vivarium>" not in result.message
    if error != "RuntimeError":
        assert "asyncio/" not in result.traceback
    assert worker.value("import asyncio\nawait asyncio.sleep(0, 5)") == 5


def test_context_variables_stay(worker):
    worker.run("import asyncio, contextvars, decimal\nv = contextvars.ContextVar('v')\n"
               "v.set(1)\nawait asyncio.sleep(0)")
    assert worker.value("v.get()") == 1
    worker.run("v.set(2)\nawait asyncio.sleep(0)\n1/0")
    assert worker.value("await asyncio.sleep(0)\nv.get()") == 2


def test_a_patched_asyncio_does_not_matter(worker):
    worker.run("import asyncio\nasyncio.run = asyncio.Runner = asyncio.new_event_loop = None")
    assert worker.value("async def f(): return 5\nawait f()") == 5
