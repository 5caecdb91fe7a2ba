# SPDX-License-Identifier: MIT
"""An interpreter that dies: said once, the files still there, a fresh one for the next call."""

import re
import time

import pytest

from support.program import program

# what the code does -> what the message must say of it
DEATHS = {
    "os._exit(3)": ("import os; os._exit(3)", "exit"),
    "os._exit(0)": ("import os; os._exit(0)", "exit"),
    "exit of C": ("import ctypes; ctypes.CDLL(None)._exit(7)", "exit"),
    "reading address 0": ("import ctypes; ctypes.string_at(0)", "segmentation fault|SIGSEGV"),
    "writing address 1": ("import ctypes; ctypes.memset(1, 0, 8)", "segmentation fault|SIGSEGV"),
    "calling address 8": ("import ctypes; ctypes.CFUNCTYPE(None)(8)()",
                          "segmentation fault|SIGSEGV"),
    "abort": ("import os; os.abort()", "abort"),
    "abort of C": ("import ctypes; ctypes.CDLL(None).abort()", "abort"),
    "SIGKILL to itself": ("import os; os.kill(os.getpid(), 9)", "kill"),
    "SIGTERM to itself": ("import os; os.kill(os.getpid(), 15)", "term"),
    # Python counts the depth of its own calls; of those in C each release counts others
    "a recursion in C beyond the stack": (program("""
        import itertools
        chain = iter([1])
        for _ in range(10**6):
            chain = itertools.chain(chain, ())
        next(chain)
    """), "segmentation fault|SIGSEGV"),
    "a thread that kills it": (program("""
        import threading, os, time
        threading.Timer(0.2, lambda: os._exit(5)).start()
        time.sleep(60)
    """), "exit"),
}


@pytest.mark.parametrize("code, said", DEATHS.values(), ids=DEATHS.keys())
def test_deaths(forgetful_session, code, said):
    session = forgetful_session
    session.exec("kept = 1; open('old', 'w').write('o')")
    answer = session.exec(f"print('before', flush=True)\nopen('new', 'w').write('n')\n{code}")
    assert (answer.status, answer.error_type, answer.lost) == (200, "crash", "variables")
    assert answer.std_out == "before\n"
    assert answer.files == {"new": b"n"}
    assert re.search(said, answer.error["message"], re.IGNORECASE), answer.error
    after = session.exec(
        "['kept' in globals(), open('old').read(), open('new').read(), int(np.sum([1]))]")
    assert after.value == [False, "o", "n", 1]
    assert (after.lost, after.session["created"]) == ("none", False)
    assert after.session["execution_count"] == 3


def test_the_exit_status_is_named(session):
    assert "3" in session.exec("import os; os._exit(3)").error["message"]


def test_a_death_again_and_again(forgetful_session):
    session = forgetful_session
    for number in range(8):
        answer = session.exec(f"open('f{number}', 'w').close(); import os; os._exit(1)")
        assert (answer.error_type, answer.lost) == ("crash", "variables")
    assert session.value("import os; len(os.listdir('.'))") == 8


def test_a_death_in_the_first_call(session):
    answer = session.exec("import os; os._exit(3)")
    assert (answer.error_type, answer.lost) == ("crash", "variables")
    assert answer.session["created"] is True
    assert session.exec("1").session["created"] is False


def test_a_death_between_calls_is_told_in_the_next_answer_once(session):
    session.exec(program("""
        kept = 1; open('f', 'w').write('f')
        import threading, os
        threading.Timer(0.5, lambda: os._exit(5)).start()
    """))
    time.sleep(2)
    answer = session.exec("['kept' in globals(), open('f').read()]")
    assert answer.value == [False, "f"]
    assert (answer.lost, answer.session["created"]) == ("variables", False)
    assert session.exec("1").lost == "none"


def test_a_refused_request_does_not_use_up_the_news_of_a_loss(session):
    session.exec("import threading, os\nthreading.Timer(0.3, lambda: os._exit(5)).start()")
    time.sleep(1.5)
    assert session.post({"code": 1}).status == 422
    assert session.exec("1").lost == "variables"


def test_an_uploaded_file_survives_the_death_of_its_call(session):
    session.exec("import os; os._exit(1)", files={"in.csv": b"1,2"})
    assert session.value("open('in.csv').read()") == "1,2"


def test_stdin_output_and_deadline_work_after_a_death(session):
    session.exec("import os; os._exit(1)")
    answer = session.exec("print(input())", stdin="read\n")
    assert answer.std_out == "read\n"
    assert session.exec("while True: pass", timeout_ms=400).error_type == "timeout"
    answer = session.exec("plt.plot([1]); plt.show()")
    assert answer.success and len(answer.files) == 1


def test_other_sessions_do_not_notice(session, new_session):
    other = new_session()
    other.exec("x = 1; open('f', 'w').write('f')")
    for code in ("import os; os._exit(1)", "import ctypes; ctypes.string_at(0)"):
        session.exec(code)
        answer = other.exec("[x, open('f').read()]")
        assert (answer.value, answer.lost) == ([1, "f"], "none")
