# SPDX-License-Identifier: MIT
"""A host that has no descriptors or no processes to give: an error at once, then it goes on.

The limits of the kernel are lowered under the parts while they serve, and raised again.
"""

import time

import pytest

from support.client import fresh_id
from support.limits import without_descriptors, without_processes
from support.must import few_can, only_root_can
from support.processes import EXECUTOR, FCGI, ZYGOTE, find
from support.server import running
from support.together import at_once, eventually

# what waits for a sandbox that does not come gives up after 10 s
AT_ONCE = 8


@pytest.fixture(scope="module")
def short():
    """An instance that keeps one sandbox ready."""
    with running(rate_limit=0, pool_size=1) as instance:
        yield instance


@pytest.fixture
def instance(short):
    """That instance, which starts sessions again after each test, by itself."""
    yield short
    short.wait_until_healthy()
    eventually(lambda: short.client.exec("1", fresh_id()).status == 200)


@pytest.fixture
def session(instance):
    """A session with a variable."""
    session = instance.client.session(fresh_id())
    assert session.exec("x = 41").success
    return session


def refusals(instance, count):
    """The answers to so many calls of new sessions, none of which ran."""
    began = time.monotonic()
    answers = [instance.client.exec("1", fresh_id()) for _ in range(count)]
    assert time.monotonic() - began < AT_ONCE
    assert {answer.status for answer in answers} == {503}
    assert {answer.error_type for answer in answers} <= {"system", "capacity"}
    assert all(int(answer.headers["Retry-After"]) >= 1 for answer in answers)
    return answers


def launcher_of(instance):
    """The process that starts sandboxes: the parent of the zygote."""
    return find(instance.part(ZYGOTE).parent)


def limited(process):
    """The process, if the kernel counts the processes of its user alone, and limits them."""
    only_root_can("give the parts users of their own")
    if process.status("Uid").split()[0] == "0":
        few_can("the limit spares root, as whom this part runs here")
    return process


def test_vivarium_fcgi_has_no_descriptors(instance, session):
    with without_descriptors(instance.part(FCGI)):
        refusals(instance, 3)
        assert session.value("x + 1") == 42
        assert instance.client.get("/sessions").status == 200
        answers = at_once([lambda: instance.client.get("/sessions")] * 10)
        assert {answer.status for answer in answers} == {200}
    assert session.exec("x").lost == "none"
    assert "event=accept_failed" in instance.messages()


def test_the_keeper_has_no_descriptors(instance, session):
    keeper = instance.parts(EXECUTOR)[0]
    with without_descriptors(keeper):
        for _ in range(3):
            assert instance.client.exec("1", fresh_id()).success
        assert session.value("x + 1") == 42
        assert instance.client.health().status == 200
    assert keeper.alive()


def test_the_launcher_has_no_descriptors(instance, session):
    launcher = launcher_of(instance)
    with without_descriptors(launcher):
        refusals(instance, 3)
        assert session.value("x + 1") == 42
        eventually(lambda: instance.client.health().status == 503)
    assert launcher.alive()
    assert session.exec("x").lost == "none"


def test_no_sandbox_can_be_made(instance, session):
    launcher = limited(launcher_of(instance))
    with without_processes(launcher):
        instance.client.exec("1", fresh_id())  # takes the one that is ready
        refusals(instance, 3)
        assert session.value("x + 1") == 42
    assert launcher.alive()


def test_no_worker_can_be_made(instance, session):
    zygote = limited(instance.part(ZYGOTE))
    with without_processes(zygote):
        instance.client.exec("1", fresh_id())
        refusals(instance, 3)
        assert session.value("x + 1") == 42
    assert zygote.alive()
    assert "event=worker_not_made" in instance.messages()
