# SPDX-License-Identifier: MIT
"""sys.exit() and the like end the call, never the session."""

import pytest


@pytest.mark.parametrize("leave", [
    "import sys; sys.exit()", "import sys; sys.exit(0)", "import sys; sys.exit(None)", "exit()",
    "quit(0)", "raise SystemExit", "raise SystemExit(False)", "exec('exit()')", "[exit()]",
    "await __import__('asyncio').sleep(0)\nexit()",
    "import asyncio\nasync def f(): exit()\nawait asyncio.gather(f())",
    "import asyncio\nasync def f(): exit()\nasyncio.run(f())",
])
def test_leaving_with_status_0_is_success(worker, leave):
    result = worker.run(f"x = 1\nprint('before')\n{leave}\nprint('after')")
    assert (result.ok, result.json, result.type) == (True, None, None)
    assert (result.out, result.err) == ("before\n", "")
    assert worker.value("x") == 1


@pytest.mark.parametrize("leave, told", [
    ("import sys; sys.exit(3)", "SystemExit: 3"),
    ("exit(255)", "SystemExit: 255"),
    ("quit(-1)", "SystemExit: -1"),
    ("import sys; sys.exit('the disk is full')", "SystemExit: the disk is full"),
    ("exit('')", "SystemExit"),
    ("exit(0.0)", "SystemExit: 0.0"),
    ("raise SystemExit(1, 2)", "SystemExit: (1, 2)"),
    ("class Odd(int):\n    def __eq__(self, other): return True\nexit(Odd(5))", "SystemExit: 5"),
    ("await __import__('asyncio').sleep(0)\nexit(9)", "SystemExit: 9"),
])
def test_leaving_with_another_status_is_an_error(worker, leave, told):
    result = worker.run(f"x = 1\n{leave}\nprint('after')")
    assert result.error == "SystemExit"
    assert told in result.traceback
    assert (result.out, result.err) == ("", "")
    assert worker.value("x") == 1


def test_a_thread_that_leaves_ends_alone(worker):
    result = worker.run("import threading\nt = threading.Thread(target=exit)\n"
                        "t.start(); t.join()\n5")
    assert (result.value, result.err) == (5, "")


def test_a_subclass_of_system_exit(worker):
    worker.run("class Leave(SystemExit):\n    code = property(lambda self: 1/0)")
    assert worker.run("raise Leave(0)").ok
    assert worker.run("raise Leave(4)").error == "Leave"


def test_input_works_after_exit_has_closed_it(worker):
    worker.run("exit()")
    assert worker.value("input()", stdin="text\n") == "text"
