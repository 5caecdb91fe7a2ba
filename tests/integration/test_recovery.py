# SPDX-License-Identifier: MIT
"""Parts that are killed: the server works again by itself, and says what is lost."""

import contextlib
import fcntl
import http.client
import os
import signal
import time

import pytest

from support.client import fresh_id
from support.must import not_with_slots
from support.processes import EXECUTOR, FCGI, WEB_SERVER, ZYGOTE, find, stopped
from support.program import program
from support.server import running
from support.together import eventually, in_background


@pytest.fixture(scope="module")
def battered():
    """An instance whose parts the tests kill, one after the other."""
    with running(checkpoint="off", rate_limit=0, pool_size=1) as instance:
        yield instance


@pytest.fixture
def instance(battered):
    """That instance, well again after each test."""
    yield battered
    battered.wait_until_healthy()
    eventually(lambda: works(battered.client.session(fresh_id())), within=60)


def works(session):
    """True when a session runs code; while parts come back, answers may be errors or none."""
    try:
        return session.exec("6 * 7").status == 200
    except (OSError, http.client.HTTPException):
        return False


def kill(process):
    """SIGKILL, and wait for the end."""
    os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: not process.alive())


def used(instance):
    """A session with a variable and a file."""
    session = instance.client.session(fresh_id())
    session.exec("x = 41; open('f', 'w').write('f')")
    return session


def test_a_worker_killed_between_calls(instance):
    session, other = used(instance), used(instance)
    kill(instance.worker_of(session))
    answer = session.exec("['x' in globals(), open('f').read()]")
    assert (answer.value, answer.lost) == ([False, "f"], "variables")
    assert session.exec("1").lost == "none"
    assert other.value("x") == 41


def test_a_worker_killed_during_a_call(instance):
    session = used(instance)
    worker = instance.worker_of(session)
    call = in_background(
        lambda: session.exec("print('so far', flush=True)\nimport time; time.sleep(60)"))
    time.sleep(0.5)
    kill(worker)
    answer = call.result(30)
    assert (answer.status, answer.success, answer.lost) == (200, False, "variables")
    assert answer.error_type in ("crash", "resource_limit")
    assert answer.std_out == "so far\n"
    assert session.value("open('f').read()") == "f"


def test_a_worker_killed_before_it_has_a_session(instance):
    not_with_slots("a worker is told from a zygote by its namespace")
    workers = eventually(lambda: [each for each in instance.tree()
                                  if each.nested() and each.program() == ZYGOTE])
    for worker in workers:
        kill(worker)
    time.sleep(0.5)
    answer = instance.client.exec("1", fresh_id())
    assert (answer.session["created"], answer.lost) == (True, "none")


def test_a_worker_stopped_from_outside_during_a_call(instance):
    session = used(instance)
    worker = instance.worker_of(session)
    call = in_background(lambda: session.exec("import time; time.sleep(60)", timeout_ms=2000))
    time.sleep(0.5)
    os.kill(worker.pid, signal.SIGSTOP)
    answer = call.result(30)
    assert (answer.error_type, answer.lost) == ("timeout", "variables")
    assert session.value("open('f').read()") == "f"


def test_the_zygote_killed(instance):
    session = used(instance)
    zygote = instance.part(ZYGOTE)
    kill(zygote)
    assert session.value("x + 1") == 42
    eventually(lambda: works(instance.client.session(fresh_id())), within=60)
    for _ in range(3):
        assert instance.client.exec("np.sum([1, 2])", fresh_id()).success
    assert instance.part(ZYGOTE).pid != zygote.pid
    assert session.exec("x").lost == "none"


def test_the_zygote_killed_and_a_dead_interpreter_to_replace(instance):
    session = used(instance)
    kill(instance.part(ZYGOTE))
    session.exec("import os; os._exit(1)")
    eventually(lambda: works(session), within=60)
    assert session.value("open('f').read()") == "f"


def test_vivarium_fcgi_killed(instance):
    session = used(instance)
    part = instance.part(FCGI)
    kill(part)
    instance.wait_until_healthy()
    assert instance.part(FCGI).pid != part.pid
    answer = session.exec("[x + 1, open('f').read()]")
    assert (answer.value, answer.lost) == ([42, "f"], "none")
    assert answer.session["created"] is False
    assert answer.session["execution_count"] == 2
    assert session.name in instance.client.sessions()


def test_no_call_fails_that_begins_while_vivarium_fcgi_starts_again(instance):
    session = instance.client.session(fresh_id())
    for number in range(1, 6):
        os.kill(instance.part(FCGI).pid, signal.SIGKILL)
        answer = session.exec("n = globals().get('n', 0) + 1; n")
        assert (answer.status, answer.value) == (200, number)


def test_nobody_waits_for_a_vivarium_fcgi_that_cannot_start():
    """Who has connected to the socket that is kept for it is answered by the web server."""
    with running(rate_limit=0) as server:
        session = used(server)
        path = server.application_socket()
        server.process.send_signal(signal.SIGSTOP)
        server.kill_application()
        waiting = in_background(lambda: session.exec("x"))
        with open(path.with_name(path.name + ".lock"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # as soon as its last thread has ended
            server.process.send_signal(signal.SIGCONT)
            assert (waiting.result().status, waiting.result().error_type) in (
                (503, "system"), (502, "system"))
        answer = eventually(lambda: (now := session.exec("x")).status == 200 and now)
        assert (answer.value, answer.lost) == (41, "none")


def test_nobody_waits_for_a_vivarium_fcgi_that_dies_at_each_start():
    with running(rate_limit=0) as server:
        session = used(server)
        died = set()
        with stopped(find(server.part(ZYGOTE).parent)):  # it asks the launcher before it answers
            server.kill_application()
            waiting = in_background(lambda: session.exec("x"))

            def struck():
                for part in server.parts(FCGI):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(part.pid, signal.SIGKILL)
                        died.add(part.pid)
                return waiting.done()

            eventually(struck, within=120)
            assert (waiting.result().status, waiting.result().error_type) in (
                (503, "system"), (502, "system"))
        assert len(died) > 2
        answer = eventually(lambda: (now := session.exec("x")).status == 200 and now, within=60)
        assert (answer.value, answer.lost) == (41, "none")


def test_a_start_without_standard_input():
    """No listening socket takes its number, or the one that a part is given its socket at."""
    with running(under=("sh", "-c", 'exec "$@" <&-', "sh"), pool_size=0) as server:
        assert server.client.finds_it_healthy()


def test_vivarium_fcgi_killed_during_a_call(instance):
    session, other = used(instance), used(instance)
    folder = instance.worker_of(session).path / "cwd"
    count = session.exec("0").session["execution_count"]
    call = in_background(lambda: session.exec(program("""
        y = 1
        open('begun', 'w').close()
        import time; time.sleep(20)
        y = 2
    """)))
    eventually((folder / "begun").exists)
    kill(instance.part(FCGI))
    assert call.result(60).status in (500, 502, 503)
    instance.wait_until_healthy()
    assert other.value("x") == 41
    answer = session.exec("[open('f').read(), x, y]")
    assert (answer.value, answer.lost) == (["f", 41, 1], "none")  # interrupted by this call
    assert answer.session["execution_count"] == count + 2  # one is the one that was running


def test_the_executor_killed(instance):
    sessions = [used(instance) for _ in range(3)]
    kill(instance.part(EXECUTOR))
    eventually(lambda: works(instance.client.session(fresh_id())), within=60)
    for session in sessions:
        answer = session.exec("import os; ['x' in globals(), os.path.exists('f')]")
        assert (answer.value, answer.lost) == ([False, False], "all")
        assert session.exec("1").lost == "none"


def test_the_executor_killed_during_calls(instance):
    calls = [in_background(lambda: used(instance).exec("import time; time.sleep(60)"))
             for _ in range(3)]
    time.sleep(1)
    kill(instance.part(EXECUTOR))
    for call in calls:
        answer = call.result(60)
        assert not answer.json["success"]
        assert answer.status in (200, 500, 502, 503)
        if answer.status == 200:
            assert answer.lost == "all"
    eventually(lambda: works(instance.client.session(fresh_id())), within=60)


def test_every_process_of_the_executor_ends_with_it(instance):
    session = used(instance)
    worker = instance.worker_of(session)
    executor = instance.part(EXECUTOR)
    kill(executor)
    eventually(lambda: not worker.alive())


def test_any_process_of_the_executor_killed(instance):
    for number in range(len(instance.parts(EXECUTOR))):
        parts = instance.parts(EXECUTOR)
        if number < len(parts):
            kill(parts[number])
        eventually(lambda: works(instance.client.session(fresh_id())), within=60)


def test_health_says_when_no_sandbox_can_be_started(instance):
    instance.process.send_signal(signal.SIGSTOP)
    try:
        kill(instance.part(EXECUTOR))

        def unhealthy():
            return instance.client.health().status == 503

        eventually(unhealthy)
        answer = instance.client.health()
        assert answer.json["status"] == "unhealthy"
        assert answer.json["reason"]
        began = time.monotonic()
        refused = instance.client.exec("1", fresh_id())
        assert time.monotonic() - began < 5  # at once, on a busy machine, too
        assert (refused.status, refused.error_type) == (503, "system")
        assert int(refused.headers["Retry-After"]) >= 1
        assert instance.client.get("/sessions").status == 200
    finally:
        instance.process.send_signal(signal.SIGCONT)
    eventually(instance.healthy, within=60)


def test_the_web_server_killed(instance):
    session = used(instance)
    before = {each.pid for each in instance.parts(WEB_SERVER)}
    kill(instance.part(WEB_SERVER))
    # those that the killed one has started could still serve for a moment
    eventually(lambda: instance.parts(WEB_SERVER)
               and not before & {each.pid for each in instance.parts(WEB_SERVER)})
    instance.wait_until_healthy()
    assert session.value("x + 1") == 42


def test_everything_killed_at_once(instance):
    for name in (EXECUTOR, FCGI, WEB_SERVER):
        os.kill(instance.part(name).pid, signal.SIGKILL)
    eventually(lambda: works(instance.client.session(fresh_id())), within=60)


def test_the_same_part_killed_again_and_again(instance):
    for _ in range(2):
        kill(instance.part(FCGI))
        instance.wait_until_healthy()
    assert instance.client.exec("6 * 7", fresh_id()).value == 42
