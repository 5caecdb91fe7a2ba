# SPDX-License-Identifier: MIT
"""What goes on while a part of vivarium-executor hangs, and what outlives vivarium-fcgi."""

import os
import subprocess
import time

import pytest

from support.client import fresh_id
from support.processes import EXECUTOR, FCGI, ZYGOTE, find, stopped
from support.program import program
from support.server import running
from support.together import at_once, eventually, in_background

# a call waits for a sandbox for 10 s (fcgi-app/executor_client.h)
SANDBOX_WAIT = 10
# and for the sandbox to take its request for as long (fcgi-app/sandbox_call.h)
SANDBOX_SEND = 10
SLOW = 10  # a busy machine's part in it
IDLE_TIMEOUT = 12


@pytest.fixture(scope="module")
def instance():
    """An instance that keeps one sandbox ready."""
    with running(rate_limit=0, pool_size=1, preload="none") as started:
        yield started


PARTS = {
    "keeper": lambda instance: instance.parts(EXECUTOR)[0],
    "launcher": lambda instance: find(instance.part(ZYGOTE).parent),
    "zygote": lambda instance: instance.part(ZYGOTE),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_the_executor_hangs(instance, name):
    session = instance.client.session(fresh_id())
    assert session.exec("x = 41").success
    with stopped(PARTS[name](instance)):
        assert session.value("x + 1") == 42
        began = time.monotonic()
        assert instance.client.health().status in (200, 503)
        assert instance.client.get("/sessions").status == 200
        assert time.monotonic() - began < SLOW
        began = time.monotonic()
        # one of them has the sandbox that is ready, where one is
        answers = at_once([lambda: instance.client.exec("1", fresh_id(), timeout=60)] * 3)
        assert time.monotonic() - began < SANDBOX_WAIT + SLOW
        assert {answer.status for answer in answers} <= ({200, 503} if name == "zygote" else {503})
        for answer in answers:
            if answer.status == 503:
                assert answer.error_type in ("system", "capacity")
                assert int(answer.headers["Retry-After"]) >= 1
        assert session.value("x + 1") == 42
    eventually(lambda: instance.client.exec("1", fresh_id()).status == 200, within=60)
    assert session.exec("x").lost == "none"


@pytest.mark.parametrize("name", ("keeper", "launcher"))
def test_no_session_is_lost_where_that_part_hangs_while_vivarium_fcgi_starts_anew(instance, name):
    """Before the sessions of before are known, a call might make a second one of the same id.

    What was known of them when it hung may be old: calls go on without it.
    """
    session = instance.client.session(fresh_id())
    assert session.exec("x = 0").success
    with stopped(PARTS[name](instance)):
        for _ in range(5):
            assert session.exec("x += 1").success
            time.sleep(0.1)  # a checkpoint is due
        instance.kill_application()
        client = instance.client
        for refused in (session.exec("x", timeout=60), client.get("/sessions"),
                        client.interrupt(session.name), client.end(session.name)):
            assert (refused.status, refused.error_type) == (503, "system")
            assert int(refused.headers["Retry-After"]) >= 1
        assert client.health().status == 503
    instance.wait_until_healthy()
    answer = session.exec("x")
    assert (answer.value, answer.lost, answer.session["created"]) == (5, "none", False)
    assert answer.session["execution_count"] == 7
    assert session.exec("x").lost == "none"


def test_a_second_vivarium_fcgi_is_refused_and_the_first_goes_on(instance):
    session = instance.client.session(fresh_id())
    assert session.exec("x = 41").success
    first = instance.part(FCGI)
    command = (first.path / "cmdline").read_bytes().split(b"\0")[:-1]
    user, group = (int(first.status(name).split()[0]) for name in ("Uid", "Gid"))
    who = {"user": user, "group": group, "extra_groups": []} if os.geteuid() == 0 else {}
    second = subprocess.run(command, stderr=subprocess.PIPE, timeout=60, check=False, **who)
    assert second.returncode == 1
    assert b"event=start_failed" in second.stderr
    assert first.alive()
    assert session.value("x + 1") == 42


def test_the_idle_clock_goes_on_while_vivarium_fcgi_starts_anew(start):
    instance = start(rate_limit=0, pool_size=1, preload="none",
                     session_idle_timeout=f"{IDLE_TIMEOUT}s")
    name = fresh_id()
    assert instance.client.exec("x = 1", name).success
    last = time.monotonic()
    before = instance.client.sessions()[name]
    time.sleep(IDLE_TIMEOUT * 3 / 4)
    instance.kill_application()
    instance.wait_until_healthy()
    after = instance.client.sessions()[name]
    assert after["execution_count"] == before["execution_count"]
    for key in ("createdAt", "lastAccessedAt"):
        assert abs(after[key] - before[key]) < 1000  # both clocks were read anew
    eventually(lambda: name not in instance.client.sessions(), within=60)
    # from its start it would be 7/4
    assert time.monotonic() - last < IDLE_TIMEOUT * 3 / 2
    assert instance.client.exec("'x' in globals()", name).value is False


def test_a_session_that_is_used_does_not_expire_while_vivarium_fcgi_starts_anew(start):
    """A running call keeps it, for the next vivarium-fcgi as well."""
    instance = start(rate_limit=0, pool_size=1, preload="none",
                     session_idle_timeout=f"{IDLE_TIMEOUT}s")
    session = instance.client.session(fresh_id())
    assert session.exec("x = 1").success
    call = in_background(lambda: session.exec("import time; time.sleep(60)", timeout_ms=60000))
    time.sleep(IDLE_TIMEOUT * 5 / 4)
    instance.kill_application()
    assert call.result(60).status in (502, 503)
    instance.wait_until_healthy()
    time.sleep(IDLE_TIMEOUT / 4)  # the first look for those that nobody uses
    answer = session.exec("x")
    assert (answer.value, answer.lost, answer.session["created"]) == (1, "none", False)


def test_a_call_waits_as_long_as_one_of_before_may_take_to_end(start):
    """It is larger than what the kernel keeps for the sandbox meanwhile."""
    instance = start(rate_limit=0, pool_size=1, preload="none", checkpoint="off",
                     interrupt_grace=f"{SANDBOX_SEND + 3}s")
    session = instance.client.session(fresh_id())
    folder = instance.worker_of(session).path / "cwd"
    count = session.exec("open('f', 'w').write('f')").session["execution_count"]
    call = in_background(lambda: session.exec(program("""
        open('begun', 'w').close()
        while True:
            try: sum(range(10**6))
            except BaseException: pass
    """)))
    eventually((folder / "begun").exists)
    instance.kill_application()
    assert call.result(60).status in (502, 503)
    answer = session.exec("open('f').read()", files={"large": bytes(1 << 20)}, timeout=60)
    assert (answer.value, answer.lost, answer.session["created"]) == ("f", "variables", False)
    assert answer.session["execution_count"] == count + 2
