# SPDX-License-Identifier: MIT
"""How many sandboxes there are: ready ones, taken ones, and what happens when there is no room."""

import os
import resource
import signal
import time

import pytest

from support import wires
from support.executor import AS_IT_IS, Refused
from support.must import only_root_can
from support.together import at_once, eventually
from support.wires import ACQUIRE, STATUS, request

pytestmark = pytest.mark.tiers(AS_IT_IS, "confined")


def count(executor, key):
    """A number of the executor's state."""
    return int(executor.status()[key])


def refusal(call):
    """The code with which a request is refused; None when it is not."""
    try:
        call()
    except Refused as refused:
        assert str(refused)
        return refused.code
    return None


def acquired_at_last(executor):
    """A sandbox, as soon as there is room for it."""
    taken = []
    eventually(lambda: refusal(lambda: taken.append(executor.acquire())) is None)
    return taken[0]


def test_the_pool_is_filled_again(start):
    executor = start(pool_size=4)
    assert count(executor, "ready") == 4
    taken = [executor.acquire() for _ in range(3)]
    assert count(executor, "sandboxes") == 3
    eventually(lambda: count(executor, "ready") == 4)
    for each in taken:
        each.end()
    time.sleep(0.5)
    assert count(executor, "ready") == 4 and len(executor.supervisors()) == 4


def test_without_a_pool_each_is_made_when_it_is_asked_for(start):
    executor = start(pool_size=0)
    # one was made at the start, to see that it can be
    eventually(lambda: not executor.supervisors())
    for _ in range(3):
        sandbox = executor.acquire()
        assert sandbox.call("6 * 7").value == "42"
        sandbox.end()
    eventually(lambda: not executor.supervisors())
    assert count(executor, "ready") == 0


@pytest.mark.parametrize("pool_size", [0, 4])
def test_fifty_at_once(start, pool_size):
    executor = start(pool_size=pool_size, max_sessions=50)
    sandboxes = at_once([executor.acquire] * 50)
    assert len({each.number for each in sandboxes}) == 50
    answers = at_once([lambda s=sandbox, i=index: s.call(f"x = {i}; x * 2")
                       for index, sandbox in enumerate(sandboxes)])
    assert [answer.value for answer in answers] == [str(2 * i) for i in range(50)]
    assert count(executor, "sandboxes") == 50
    assert refusal(executor.acquire) == wires.CAPACITY
    at_once([sandbox.end for sandbox in sandboxes])
    eventually(lambda: len(executor.supervisors()) == pool_size)
    assert executor.acquire().call("6 * 7").value == "42"


def test_a_full_house_is_capacity(start):
    executor = start(max_sessions=3)
    taken = [executor.acquire() for _ in range(3)]
    assert refusal(executor.acquire) == wires.CAPACITY
    taken.pop().end()
    taken.append(executor.acquire())
    assert refusal(executor.acquire) == wires.CAPACITY
    for each in taken:
        assert each.call("1").value == "1"


@pytest.mark.parametrize("pool_size", [0, 2])
def test_those_that_wait_count(start, pool_size):
    """Not one more is promised than there may be."""
    executor = start(pool_size=pool_size, max_sessions=3)
    replies = at_once([lambda: refusal(executor.acquire)] * 10)
    assert sorted(replies, key=str) == [wires.CAPACITY] * 7 + [None] * 3
    assert count(executor, "sandboxes") == 3


def test_a_client_that_leaves_while_it_waits(start):
    executor = start(pool_size=0, max_sessions=2)
    for _ in range(5):
        connection = executor.connect()
        connection.send(request(ACQUIRE))
        connection.close()
    eventually(lambda: not executor.supervisors())
    assert count(executor, "sandboxes") == 0
    assert refusal(executor.acquire) is None


def test_a_client_that_leaves_without_its_sandbox(start):
    """What it was sent it has never read: nobody would ever end that sandbox."""
    executor = start(pool_size=2, max_sessions=4)
    for _ in range(8):
        connection = executor.connect()
        connection.send(request(ACQUIRE))
        time.sleep(0.05)
        connection.close()
    eventually(lambda: count(executor, "sandboxes") == 0)
    eventually(lambda: len(executor.supervisors()) == 2)


def test_a_client_that_read_its_sandbox_keeps_it(start):
    executor = start(pool_size=2)
    with executor.connect() as connection:
        reply = connection.ask(ACQUIRE)
        connection.send(request(STATUS))  # the answer to this it does not read
        time.sleep(0.2)
    time.sleep(0.5)
    assert count(executor, "sandboxes") == 1
    assert wires.Channel(*reply.descriptors).call("1").value == "1"


def test_one_request_at_a_time(start):
    """A second one while the first waits is refused; the first is answered."""
    executor = start(pool_size=0)
    eventually(lambda: executor.zygotes() and not executor.supervisors())
    zygote = executor.zygote().pid
    os.kill(zygote, signal.SIGSTOP)  # no sandbox becomes ready
    with executor.connect() as connection:
        connection.send(request(ACQUIRE))
        connection.send(request(ACQUIRE))
        replies = [connection.receive()]
        os.kill(zygote, signal.SIGCONT)
        replies.append(connection.receive())
    assert [reply.code for reply in replies] == [wires.BAD_GATEWAY, wires.OK]
    assert count(executor, "sandboxes") == 1


def test_zygotes_are_replaced_and_sessions_stay(start):
    executor = start(pool_size=1, zygote_sessions=3)
    first = executor.zygote()
    kept = executor.acquire()
    kept.call("x = 5")
    addresses = set()

    def another_layout():
        sandbox = executor.acquire()
        addresses.add(sandbox.call("id(type)").value)
        sandbox.end()
        return len(addresses) > 1

    eventually(another_layout)
    eventually(lambda: not first.alive())
    assert kept.call("x").value == "5"
    eventually(lambda: len(executor.zygotes()) == 1)


def test_few_descriptors(start):
    """Running out of them refuses what comes; what is there goes on, and room is used again."""
    executor = start(pool_size=0, max_sessions=1000,
                     limits={resource.RLIMIT_NOFILE: 64})
    taken, refused = [], None
    while refused is None and len(taken) < 100:
        refused = refusal(lambda: taken.append(executor.acquire()))
    assert 5 < len(taken) < 64
    assert refused in (wires.SYSTEM, wires.CAPACITY, wires.UNAVAILABLE)
    # connections, too, until none is taken
    idle = [executor.connect() for _ in range(100)]
    time.sleep(0.5)
    for connection in idle:
        connection.close()
    for sandbox in taken:
        assert sandbox.call("6 * 7").value == "42"
    for sandbox in taken:
        sandbox.end()
    assert acquired_at_last(executor).call("1").value == "1"
    assert executor.process.poll() is None


@pytest.mark.tiers(AS_IT_IS)  # elsewhere each session has a user of its own, or all have one
def test_few_processes(start):
    """Where no worker can be made a call is refused at once; it is made when there is room."""
    only_root_can("be a user that has no other process")
    all_of_them = 3 + 2 * 3  # keeper, launcher, zygote, two for each sandbox
    # and one that is there while a worker is made
    executor = start(pool_size=0, checkpoint="off", user=54321,
                     limits={resource.RLIMIT_NPROC: all_of_them + 1})
    taken = [executor.acquire() for _ in range(3)]
    # those of the sandbox that the start is tried with may still be about
    eventually(lambda: len(executor.tree()) == all_of_them)
    assert refusal(executor.acquire) == wires.CAPACITY
    assert "event=worker_not_made" in executor.messages()
    for sandbox in taken:
        assert sandbox.call("6 * 7").value == "42"
    taken.pop().end()
    sandbox = acquired_at_last(executor)
    taken.append(sandbox)
    assert sandbox.call("6 * 7").value == "42"
    # the same for a sandbox that is there already, whose files wait for the next worker
    sandbox.call("open('kept', 'w').write('here')")
    assert sandbox.call("import os; os._exit(1)").outcome == wires.CRASHED
    assert sandbox.call("open('kept').read()").value == '"here"'
