# SPDX-License-Identifier: MIT
"""What becomes of a call whose client does not wait for the answer."""

import time

from support.client import exec_target
from support.processes import WEB_SERVER
from support.together import eventually, in_background


def leave(client, session, code):
    """Ask for code to be run, and close the connection a little later."""
    body = b'{"code": "%s"}' % code.encode()
    with client.connect() as connection:
        connection.sendall(
            f"POST {exec_target(session.name)} HTTP/1.1\r\nHost: x\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
            + body)
        time.sleep(1)


def test_a_call_that_waits(client, session):
    session.exec("import time; ran = []")
    first = in_background(lambda: session.exec("time.sleep(4)"))
    eventually(lambda: client.sessions()[session.name]["state"] == "busy")
    leave(client, session, "ran.append(1)")
    assert first.result(60).success
    # nginx closes its connection to vivarium-fcgi, lighttpd does not
    assert session.value("len(ran)") == {"lighttpd": 1, "nginx": 0}[WEB_SERVER]


def test_a_call_that_runs(client, session):
    """Through nginx it is interrupted; the session is free for its next call, with all it had."""
    session.exec("import time; x = 0")
    leave(client, session, "time.sleep(6); x = 1")
    assert session.value("x") == {"lighttpd": 1, "nginx": 0}[WEB_SERVER]


def test_a_call_that_runs_and_does_not_let_itself_be_interrupted(client, session):
    """It is killed after the grace, or at its deadline."""
    session.exec("x = 0")
    leave(client, session, "def run():\\n try:\\n  while True: pass\\n"
                           " except BaseException: run()\\nwhile True: run()")
    answer = session.exec("'x' in globals()", timeout=180)
    assert answer.success, answer
    assert answer.value == (answer.lost != "variables")
