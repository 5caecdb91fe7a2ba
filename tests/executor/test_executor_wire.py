# SPDX-License-Identifier: MIT
"""The executor's socket: what each operation does, and what is refused."""

import os
import signal
import socket

import pytest

from support import wires
from support.executor import AS_IT_IS, Refused
from support.must import only_root_can
from support.processes import stopped
from support.together import at_once, eventually
from support.wires import ACQUIRE, ATTACH, END, NEXT, RECORD, STATUS, request

pytestmark = pytest.mark.tiers(AS_IT_IS, "confined")


@pytest.fixture
def connection(executor):
    """A connection to the shared executor."""
    with executor.connect() as opened:
        yield opened


def test_acquire_gives_a_number_and_a_channel(executor, connection):
    reply = connection.ask(ACQUIRE, 0, b"record")
    assert reply.code == wires.OK and reply.sandbox > 0 and len(reply.descriptors) == 1
    channel = wires.Channel(*reply.descriptors)
    assert channel.socket.family == socket.AF_UNIX and channel.socket.type == socket.SOCK_STREAM
    assert channel.call("1 + 1").value == "2"
    assert executor.records()[reply.sandbox] == b"record"
    assert connection.ask(END, reply.sandbox).code == wires.OK
    assert channel.is_closed()


def test_numbers_are_never_used_again(executor):
    numbers = []
    for _ in range(3):
        sandbox = executor.acquire()
        numbers.append(sandbox.number)
        sandbox.end()
    assert len(set(numbers)) == 3


def test_a_record_is_kept_as_it_is(executor, sandbox):
    everything = bytes(range(256)) * (wires.BYTES_MAX // 256)
    for record in (b"", b"short", everything):
        with executor.connect() as connection:
            connection.send(request(RECORD, sandbox.number, record))
            assert connection.ask(NEXT, sandbox.number - 1).bytes == record


def test_all_records_that_wait_come_before_a_later_question(executor, sandbox):
    """Nobody takes a session over as it was before: the launcher stands still meanwhile."""
    with executor.connect() as first, executor.connect() as later:
        assert first.ask(STATUS).code == later.ask(STATUS).code == wires.OK
        with stopped(executor.launcher()):
            for number in range(50):
                first.send(request(RECORD, sandbox.number, b"%d" % number))
            later.send(request(RECORD, sandbox.number, b"last"))
            first.close()
            third = executor.connect()
            third.send(request(NEXT, sandbox.number - 1))
        with third:
            assert third.receive().bytes == b"last"


def test_a_sandbox_that_dies_is_there_or_gone_and_no_fault_of_the_other_side(executor, sandbox):
    """Its supervisor is dead, which the launcher has not seen yet."""
    supervisor = sandbox.supervisor()
    with executor.connect() as connection:
        assert connection.ask(STATUS).code == wires.OK
        with stopped(executor.launcher()):
            connection.send(request(ATTACH, sandbox.number))
            os.kill(supervisor.pid, signal.SIGKILL)
            eventually(lambda: not supervisor.alive())
        assert connection.receive().code in (wires.UNAVAILABLE, wires.NOT_FOUND)
    eventually(lambda: sandbox.number not in executor.records())


def test_a_record_of_no_sandbox_is_passed_over(executor, connection):
    connection.send(request(RECORD, 10 ** 9, b"record"))
    connection.send(request(RECORD, 0, b"record"))
    assert connection.ask(STATUS).code == wires.OK
    assert b"record" not in executor.records().values()


def test_next_lists_the_sandboxes_in_order(executor):
    taken = [executor.acquire(f"{number}".encode()) for number in range(5)]
    taken.pop(2).end()
    records = executor.records()
    mine = [records[each.number] for each in taken]
    assert mine == [b"0", b"1", b"3", b"4"]
    assert list(records) == sorted(records)
    for each in taken:
        each.end()
    assert not {each.number for each in taken} & set(executor.records())


def test_ready_sandboxes_are_in_no_list(executor, connection):
    eventually(lambda: executor.status()["ready"] == "4")
    last = max(executor.records(), default=0)
    assert connection.ask(NEXT, last).sandbox == 0
    for number in range(last + 1, last + 10):
        assert connection.ask(ATTACH, number).code == wires.NOT_FOUND
        assert connection.ask(END, number).code == wires.OK  # and ends none of them
    assert executor.status()["ready"] == "4"


def test_attach_gives_a_new_channel_and_closes_the_old_one(sandbox):
    sandbox.call("x = 5")
    old = sandbox.channel
    sandbox.attach()
    assert old.is_closed()
    assert sandbox.call("x").value == "5"


def test_attach_to_one_that_is_gone_is_not_found(executor):
    sandbox = executor.acquire()
    sandbox.end()
    for number in (sandbox.number, 0, 2 ** 64 - 1):
        with pytest.raises(Refused) as refused:
            executor.ask(ATTACH, number)
        assert refused.value.code == wires.NOT_FOUND


def test_end_of_one_that_is_gone_is_no_failure(executor):
    sandbox = executor.acquire()
    for number in (sandbox.number, sandbox.number, 0, 2 ** 64 - 1):
        assert executor.ask(END, number).code == wires.OK


def test_status_counts(executor):
    before = int(executor.status()["sandboxes"])
    sandbox = executor.acquire()
    assert int(executor.status()["sandboxes"]) == before + 1
    sandbox.end()
    assert int(executor.status()["sandboxes"]) == before
    assert executor.status()["tier"] == (executor.tier.isolation if executor.tier else "isolated")
    eventually(lambda: executor.status()["ready"] == "4")


def test_a_connection_serves_any_number_of_requests(connection):
    for _ in range(500):
        assert connection.ask(STATUS).code == wires.OK


def test_connections_are_served_side_by_side(executor):
    idle = [executor.connect() for _ in range(50)]
    replies = at_once([lambda: executor.ask(STATUS)] * 20)
    assert all(reply.code == wires.OK for reply in replies)
    for each in idle:
        each.close()


# ---- what is refused ----

MALFORMED = {
    "nothing but a magic": request(STATUS)[:4],
    "one byte too few": request(STATUS)[:15],
    "one byte": b"V",
    "another magic": request(STATUS, magic=0x12345678),
    "no magic": request(STATUS, magic=0),
    "the magic of the other wire": request(STATUS, magic=wires.FRAME_MAGIC),
    "an older version": request(STATUS, version=wires.VERSION - 1),
    "a newer version": request(STATUS, version=wires.VERSION + 1),
    "another byte order": request(STATUS, version=wires.VERSION << 8),
    "no operation": request(0),
    "an operation that is none": request(7),
    "the largest operation": request(65535),
}


@pytest.mark.parametrize("message", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_request_gets_an_answer(executor, canary, connection, message):
    connection.send(message)
    reply = connection.receive()
    assert reply.code == wires.BAD_GATEWAY and reply.bytes and not reply.descriptors
    # the connection, where messages keep their borders, goes on
    assert connection.ask(STATUS).code == wires.OK


def test_another_version_is_said_plainly(connection):
    reply = connection.ask(STATUS, version=77)
    assert b"77" in reply.bytes and b"version" in reply.bytes


def test_a_message_that_is_too_long_ends_the_connection(executor, canary, connection):
    connection.send(request(RECORD, 1, b"x" * (wires.BYTES_MAX + 1)))
    with pytest.raises(wires.Gone):
        connection.receive()
    assert executor.status()


def test_a_message_with_descriptors_ends_the_connection(executor, canary, connection):
    before = len(executor.launcher().descriptors())
    with open("/dev/null", "rb") as null:
        connection.send(request(STATUS), [null.fileno()] * 3)
    with pytest.raises(wires.Gone):
        connection.receive()
    assert len(executor.launcher().descriptors()) <= before


def test_an_empty_message_ends_the_connection(executor, canary, connection):
    connection.send(b"")
    with pytest.raises((wires.Gone, ConnectionError)):
        connection.receive()
        connection.ask(STATUS)
    assert executor.status()


def test_one_who_never_reads_is_dropped(executor, canary):
    """Replies that nobody takes hold up nobody else."""
    with executor.connect() as deaf:
        deaf.socket.settimeout(5)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for _ in range(100000):
                deaf.send(request(STATUS))
    assert executor.status()


def as_user(uid, action):
    """What ACTION returns, a text, in a child that is another user; also what it raises."""
    only_root_can("be another user")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(uid, uid, uid)
            told = action()
        except BaseException as error:
            told = f"raised {error!r}"
        finally:
            os.write(writing, str(told).encode())
            os._exit(0)
    os.close(writing)
    with open(reading, encoding="utf-8") as pipe:
        told = pipe.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return told


def test_one_that_may_not_ask_is_refused(executor):
    """By peer credentials: also one that got through the permissions of the file."""
    def ask():
        with executor.connect() as stranger:
            try:
                return f"was answered with {stranger.ask(STATUS).code}"
            except (wires.Gone, ConnectionError):
                return "refused"

    os.chmod(executor.path, 0o666)
    try:
        assert as_user(12345, ask) == "refused"
    finally:
        os.chmod(executor.path, 0o600)
    assert "event=client_refused uid=12345" in executor.messages()


def test_the_client_of_the_settings_may_ask(executor):
    def ask():
        with executor.connect() as client:
            return f"answered with {client.ask(STATUS).code}"

    assert as_user(65534, ask) == f"answered with {wires.OK}"
