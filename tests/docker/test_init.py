# SPDX-License-Identifier: MIT
"""The first process of the container: what dies comes back, and what is to end ends."""

import os
import signal

import pytest

from support.container import Container, docker
from support.processes import everything
from support.together import eventually, in_background

PARTS = ("lighttpd", "vivarium-fcgi", "vivarium-executor", "vivarium-zygote")
LONG = 90  # seconds


@pytest.fixture(scope="module")
def container():
    """One that the tests of this file kill parts of."""
    one = Container(rate_limit=0)
    try:
        yield one.start()
    finally:
        one.discard()


def runs_in(container, session_id):
    """True while a call of the session runs."""
    return container.client.sessions().get(session_id, {}).get("state") == "busy"


@pytest.mark.parametrize("name", PARTS)
def test_a_part_that_is_killed_comes_back(container, session_id, name):
    victim = container.part(name)
    os.kill(victim.pid, signal.SIGKILL)
    eventually(lambda: not victim.alive())
    eventually(lambda: any(each.pid != victim.pid for each in container.parts(name)), within=LONG)
    container.wait_until_healthy()
    eventually(lambda: container.client.session(session_id).exec("6 * 7").status == 200,
               within=LONG)
    assert container.running()


def test_services_are_not_roots(container):
    users = {name: container.part(name).status("Uid").split()[1] for name in PARTS[:3]}
    assert users["lighttpd"] == "33" and users["vivarium-executor"] == "0"
    assert users["vivarium-fcgi"] not in ("0", "33")


def test_orphans_are_reaped(container):
    docker("exec", container.id, "sh", "-c", "sleep 3 & true")
    orphan = eventually(
        lambda: next((each for each in container.tree() if each.program() == "sleep"), None))
    eventually(lambda: orphan.pid not in {each.pid for each in container.tree()})


def test_a_restart_begins_anew(container, session_id):
    session = container.client.session(session_id)
    session.exec("kept = 1")
    container.restart()
    container.wait_until_healthy()
    answer = container.client.session(session_id).exec("'kept' in globals()")
    assert answer.value is False and answer.session["created"] is True


def test_a_stop_lets_a_running_call_end(container, session_id):
    session = container.client.session(session_id)
    running = in_background(lambda: session.exec("import time; time.sleep(2); 42"))
    eventually(lambda: runs_in(container, session_id))
    status, _ = container.stop()
    assert status == 0 and running.result(LONG).value == 42
    container.restart()
    container.wait_until_healthy()


def test_a_stop_is_over_before_the_engine_kills_while_code_runs(container, session_id):
    running = in_background(
        lambda: container.client.session(session_id).exec("while True: pass", timeout_ms=60000))
    eventually(lambda: runs_in(container, session_id))
    members = container.tree()
    status, seconds = container.stop()
    assert status == 0 and seconds < 9
    assert not {(each.pid, each.started) for each in everything()} \
        & {(each.pid, each.started) for each in members}
    running.exception(LONG)


def test_one_that_cannot_be_kept_running_ends_the_container(begin):
    container = begin()
    eventually(container.ready, within=LONG)  # one that dies before ends it at once

    def kill_again():
        if not container.running():
            return True
        for part in container.parts("vivarium-fcgi"):
            os.kill(part.pid, signal.SIGKILL)
        return False

    eventually(kill_again, within=LONG, every=0.05)
    assert container.inspect("State")["ExitCode"] == 1
    assert "vivarium: vivarium-fcgi cannot be kept running: it has ended 8 times in a row" \
        in container.messages()
