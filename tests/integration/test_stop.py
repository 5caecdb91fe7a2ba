# SPDX-License-Identifier: MIT
"""The end of an instance: soon, and with nothing left of it on the machine."""

import os
import signal
import time

import pytest

from support.client import fresh_id
from support.contract import ContractError
from support.must import not_with_slots
from support.program import program
from support.server import DevServer, running
from support.together import eventually, in_background
from support.traces import Traces

SOON = 8
SLEEPING = program("""
    import time, threading
    open('f', 'w').write('x' * 100_000)
    threading.Thread(target=time.sleep, args=(60,)).start()
    time.sleep(60)
""")
STUBBORN = program("""
    while True:
        try: sum(range(10**7))
        except BaseException: pass
""")


@pytest.fixture
def instance():
    """An instance that the test ends itself."""
    instance = DevServer(rate_limit=0, stop_timeout="3s")
    yield instance
    instance.discard()


def outcome(call):
    """How a call fares whose server is ended: a well-formed answer, or the connection's end."""
    try:
        return call()
    except ContractError:
        raise
    except Exception as error:
        return error


def running_calls(instance, count):
    """Start calls that run for a minute and wait until all of them do."""
    client = instance.client
    calls = []
    for number in range(count):
        code = STUBBORN if number % 4 == 0 else SLEEPING
        calls.append(in_background(
            lambda code=code: outcome(lambda: client.exec(code, fresh_id()))))
    eventually(lambda: sum(entry["state"] == "busy" for entry in client.sessions().values())
               == count)
    return calls


def assert_gone(instance, traces):
    """Assert that nothing is left of an instance that has ended."""
    assert traces.left() == []
    with pytest.raises(OSError):
        instance.client.connect(timeout=1)


@pytest.mark.parametrize("typed", [False, True], ids=["SIGTERM", "SIGINT from a terminal"])
def test_during_twenty_running_calls(instance, typed):
    not_with_slots("the roots of twenty new slots take longer than these calls wait")
    instance.start()
    calls = running_calls(instance, 20)
    traces = Traces(instance)
    assert len(traces.members) > 20 and traces.paths, "the traces would not show anything"
    assert traces.left(), "what is running would not be noticed"
    if typed:
        os.killpg(instance.process.pid, signal.SIGINT)  # a terminal sends it to the whole group
        status = instance.process.wait(SOON)
    else:
        status, seconds = instance.stop()
        assert seconds < SOON
    assert_gone(instance, traces)
    assert status == 0
    for call in calls:
        call.result(10)


def test_of_an_idle_instance_whose_port_is_free_again_at_once(instance):
    instance.start()
    instance.client.exec("x = 1", fresh_id())
    traces = Traces(instance)
    status, seconds = instance.stop(signal.SIGINT)
    assert seconds < SOON
    assert_gone(instance, traces)
    assert status == 0
    with running(port=instance.port, rate_limit=0) as again:
        assert again.client.exec("'x' in globals()", fresh_id()).value is False


def test_a_running_call_ends_and_is_answered_and_so_are_those_that_come_meanwhile(instance):
    instance.start()
    client = instance.client
    session = client.session(fresh_id())
    session.exec("x = 41")
    running = in_background(lambda: session.exec("import time; time.sleep(1.5); x + 1"))
    eventually(lambda: "busy" in {each["state"] for each in client.sessions().values()})
    waiting = in_background(lambda: session.exec("x"))
    time.sleep(0.2)
    ended = in_background(instance.stop)
    assert waiting.result(30).status == 503
    meanwhile = client.exec("1", fresh_id())
    assert (meanwhile.status, meanwhile.error_type) == (503, "system")
    assert int(meanwhile.headers["Retry-After"]) > 0
    assert client.get("/sessions").status == 200
    assert not running.done()
    answer = running.result(30)
    assert (answer.value, answer.lost) == (42, "none")
    assert ended.result(30)[0] == 0


def test_a_second_signal_waits_for_no_call(instance):
    instance.settings["stop_timeout"] = "1h"
    instance.start()
    calls = running_calls(instance, 1)
    traces = Traces(instance)
    instance.process.send_signal(signal.SIGINT)
    eventually(lambda: "event=stopping" in instance.messages())
    instance.process.send_signal(signal.SIGINT)
    assert instance.process.wait(30) == 0
    assert_gone(instance, traces)
    calls[0].result(10)


@pytest.mark.parametrize("delay", [0.05, 0.3, 0.8])
def test_during_the_start(instance, delay):
    instance.launch()
    time.sleep(delay)
    traces = Traces(instance)
    _, seconds = instance.stop()
    assert seconds < SOON
    assert traces.left() == []


def test_a_second_signal_while_it_ends_does_no_harm(instance):
    instance.start()
    running_calls(instance, 4)
    traces = Traces(instance)
    instance.process.send_signal(signal.SIGTERM)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
        time.sleep(0.1)
        if instance.process.poll() is None:
            instance.process.send_signal(number)
    instance.process.wait(SOON)
    assert_gone(instance, traces)
