# SPDX-License-Identifier: MIT
"""What must be in no process that an attacker might take over: by a look into its memory."""

import os
import re
import uuid

import pytest

from support.must import only_root_can
from support.together import eventually

REGION = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r")


def memory_has(process, secret):
    """Whether the bytes are anywhere in what the process can read; not if it has ended."""
    try:
        return secret_in_memory(process, secret)
    except (FileNotFoundError, ProcessLookupError):
        if process.alive():
            raise
        return False


def secret_in_memory(process, secret):
    """The same of a process that is alive."""
    with open(process.path / "maps", encoding="ascii", errors="replace") as maps:
        regions = [REGION.match(line) for line in maps if "[v" not in line]  # vvar, vsyscall
    with open(process.path / "mem", "rb", buffering=0) as memory:
        for start, end in (map(lambda n: int(n, 16), each.groups()) for each in regions if each):
            if end - start > 1 << 32:
                continue  # reserved by a sanitizer
            memory.seek(start)
            try:
                if secret in memory.read(end - start):
                    return True
            except OSError:  # a mapping beyond the end of its file
                pass
    return False


@pytest.fixture(autouse=True)
def may_look():
    """Only root sees the memory of processes that are not dumpable."""
    only_root_can("look at the memory of other processes")


def test_the_look_finds_what_is_there(sandbox):
    secret = uuid.uuid4().hex.encode()
    sandbox.call(f"kept = b'{secret.decode()}'")
    assert memory_has(sandbox.worker(), secret)
    assert not memory_has(sandbox.supervisor(), uuid.uuid4().hex.encode())


def test_supervisors_do_not_know_other_sessions(start):
    """Records hold the ids of sessions, and whoever has an id has the session."""
    executor = start(pool_size=2)
    secret = b"id-" + uuid.uuid4().hex.encode()
    taken = [executor.acquire(secret) for _ in range(4)]
    taken.append(executor.acquire())
    with executor.connect() as connection:
        for sandbox in taken[:2]:
            connection.send(b"VIVX\1\0\3\0" + sandbox.number.to_bytes(8, "little") + secret)
    assert secret in executor.records().values()
    assert memory_has(executor.launcher(), secret)
    # all those that were forked after the records were there
    with_records = {each.pid for each in executor.supervisors()}
    taken += [executor.acquire(secret) for _ in range(3)]
    eventually(lambda: executor.status()["ready"] == "2")
    for each in executor.supervisors() + executor.workers() + executor.zygotes():
        assert not memory_has(each, secret), (each, each.pid in with_records)


def test_no_process_keeps_the_environment(start):
    secret = uuid.uuid4().hex
    executor = start(environment={"SECRET_OF_THE_OPERATOR": secret})
    sandbox = executor.acquire()
    sandbox.call("1")
    members = executor.tree()
    for each in members:
        assert not memory_has(each, secret.encode()), each
    # what was made for a moment may be gone, but not these
    lasting = {each.pid for each in members if each.alive()}
    for each in [executor.launcher(), *executor.zygotes(), sandbox.supervisor(), sandbox.worker()]:
        assert each.pid in lasting, each
    assert secret not in executor.messages()


def test_a_worker_does_not_know_the_host(start):
    """Neither where it was started, nor by what command."""
    executor = start()
    sandbox = executor.acquire()
    for each in executor.zygotes() + [sandbox.worker()]:
        assert not memory_has(each, os.fsencode(executor.home.name)), each
