# SPDX-License-Identifier: MIT
"""vivarium-executor without vivarium-fcgi: the tests take that one's place."""

import contextlib

import pytest

from support.executor import Executor


@contextlib.contextmanager
def running(**settings):
    """An executor for as long as the context lasts."""
    executor = Executor(**settings)
    try:
        yield executor.start()
    finally:
        executor.discard()


@pytest.fixture(scope="session")
def executor():
    """The one that tests share that leave it as it was."""
    with running() as shared:
        yield shared


@pytest.fixture
def start():
    """A function that starts an executor of the test's own with the settings given to it."""
    with contextlib.ExitStack() as stack:
        yield lambda **settings: stack.enter_context(running(**settings))


@pytest.fixture
def sandbox(executor):
    """A sandbox of the test's own."""
    taken = executor.acquire()
    yield taken
    taken.end()


@pytest.fixture(scope="session")
def _bystander(executor):
    taken = executor.acquire()
    taken.call("song = 'sings'\nopen('cage', 'w').write(song)")
    yield taken
    taken.end()


@pytest.fixture
def canary(_bystander):
    """Another sandbox, which has a variable and a file before the test and after it."""
    before = _bystander.call("import os; os.getpid()").value
    yield _bystander
    after = _bystander.call("[song, open('cage').read(), os.listdir(), os.getpid()]")
    assert after.value.replace(" ", "") == f'["sings","sings",["cage"],{before}]'
    assert not after.lost
