# SPDX-License-Identifier: MIT
"""The log speaks of requests, never of what was in them."""

import json
import os
import signal

import pytest

from support.client import exec_target, fresh_id
from support.must import not_with_slots
from support.processes import find
from support.program import program
from support.server import running
from support.together import eventually, in_background


@pytest.fixture(scope="module")
def logged():
    """An instance whose log holds nothing but what these tests cause."""
    with running(rate_limit=0) as instance:
        yield instance


def test_the_log_keeps_secrets(logged):
    name = "who-" + fresh_id()
    session = logged.client.session(name)
    session.exec(program("""
        code_of_mine = 'code-of-mine'
        print('output-of-mine')
        open('file-of-mine', 'w')
        'value-of-mine'
    """), files={"upload-of-mine": b"x"}, stdin="stdin-of-mine")
    session.exec("raise ValueError('error-of-mine')")
    session.exec("import os; os.write(2, b'crash-of-mine'); os._exit(3)")
    session.exec("while True: pass", timeout_ms=300)
    session.post({"code": "1", "files": [{"filename": "../refused-of-mine", "b64_data": "@"}]})
    session.post(b'{"code": broken-of-mine')
    logged.client.get("/path-of-mine")
    log = logged.messages()
    assert "-of-mine" not in log
    assert name not in log
    assert "status=200" in log and "status=422" in log, "the requests were not logged at all"


def test_no_byte_of_a_request_or_of_code_makes_a_log_line(logged):
    session = logged.client.session(fresh_id())
    session.exec(program(r"""
        import sys
        sys.stderr.write('\r\nlevel=info msg="forged"\r\n\x1b]0;t\x07')
        open('a\nlevel=info forged', 'w').close()
        print('\nlevel=error forged')
    """))
    for query in ("sessionId=a%0Alevel%3Dinfo%20forged", "sessionId=%1B%5B2Jforged"):
        logged.client.post("/exec?" + query, {"code": "1"})
    logged.client.get("/none%0Alevel=info%20forged%1B")
    log = logged.messages()
    assert "forged" not in log.replace("%20forged", "")
    assert all(character.isprintable() or character in "\n\t" for character in log)


def limits_of(instance):
    """The limits that the log names in lines of requests."""
    lines = [line for line in instance.messages().splitlines() if " event=request " in line]
    return [field.removeprefix("limit=") for line in lines for field in line.split()
            if field.startswith("limit=")]


def test_a_refusal_names_its_limit(start):
    instance = start(rate_limit=3, max_sessions=2, max_sessions_per_client=1, max_queued=0,
                     trusted_proxies="127.0.0.1", pool_size=1, preload="none")
    call = json.dumps({"code": "import time; time.sleep(3)"}).encode()

    def post(name, address):
        return instance.client.request(
            "POST", exec_target(name), call,
            {"Content-Type": "application/json", "X-Forwarded-For": address})

    running_call = in_background(lambda: post("a", "192.0.2.1"))
    eventually(lambda: instance.client.sessions())
    statuses = [post("a", "192.0.2.1").status, post("b", "192.0.2.1").status]
    assert post("c", "192.0.2.2").status == 200
    statuses += [post("d", "192.0.2.3").status]
    assert running_call.result(30).status == 200
    statuses += [post("a", "192.0.2.1").status, post("a", "192.0.2.1").status]
    assert statuses == [409, 503, 503, 200, 429]
    # a line is written after its answer
    eventually(lambda: len(limits_of(instance)) == 4)
    assert sorted(limits_of(instance)) == [
        "max_queued", "max_sessions", "max_sessions_per_client", "rate_limit"]


def fields(line):
    """The fields of a line whose values have no spaces."""
    return dict(field.split("=", 1) for field in line.split() if "=" in field)


def test_the_loss_of_a_sandbox_names_its_session(logged):
    not_with_slots("the supervisor is no parent of the worker")
    session = logged.client.session(fresh_id())
    session.exec("x = 1")
    supervisor = find(logged.worker_of(session).parent)
    os.kill(supervisor.pid, signal.SIGKILL)
    eventually(lambda: not supervisor.alive())
    assert session.exec("1").lost == "all"

    def events(name):
        return [fields(line) for line in logged.messages().splitlines()
                if f" event={name} " in line]

    died, lost = eventually(lambda: events("sandbox_died"))[-1], events("sandbox_lost")[-1]
    assert lost["sandbox"] == died["sandbox"]
    assert len(lost["session"]) == 4
    # those that made it, and lost it; a line is written after its answer
    eventually(lambda: [request["session"] for request in events("request")].count(
        lost["session"]) >= 2)
