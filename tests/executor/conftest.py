# SPDX-License-Identifier: MIT
"""vivarium-executor without vivarium-fcgi: the tests take that one's place."""

import contextlib
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from support.executor import AS_IT_IS, Executor
from support.tiers import Tier, build_file

MOST_SLOTS = 56  # that a test uses at a time


def pytest_configure(config):
    """Make the mark known that names where the tests of a file, or one of them, are to run."""
    config.addinivalue_line("markers", "tiers(*names): the kinds of places to run the test in")


def pytest_generate_tests(metafunc):
    """Run a test once in each tier that it is marked with."""
    mark = metafunc.definition.get_closest_marker("tiers")
    if mark and "tier" in metafunc.fixturenames:
        metafunc.parametrize("tier", mark.args, indirect=True, scope="session")


@pytest.fixture(scope="session")
def tier(request):
    """The name of the tier, or None for the place where the suite runs."""
    param = getattr(request, "param", AS_IT_IS)
    return None if param == AS_IT_IS else param


@contextlib.contextmanager
def running(**settings):
    """An executor for as long as the context lasts."""
    executor = Executor(**settings)
    try:
        yield executor.start()
    finally:
        executor.discard()


@pytest.fixture(scope="session")
def executor(tier):
    """The one that tests share that leave it as it was. What is lost in it, is lost."""
    with running(tier=tier, checkpoint="off") as shared:
        yield shared


@pytest.fixture(scope="session")
def _slots(tier):
    """Settings that let one executor after the other use the same slots, whose roots take long
    to make."""
    if tier != "confined":
        yield {}
        return
    folder = tempfile.mkdtemp(prefix="viv-", dir=Tier(tier).folder_of_scratch(MOST_SLOTS))
    subprocess.run([build_file("vivarium-executor"), "-f", "/dev/null", "--prepare-slots",
                    f"--slot_directory={folder}", f"--slots={MOST_SLOTS}"], check=True)
    yield {"slot_directory": folder}
    shutil.rmtree(folder)


@pytest.fixture
def start(tier, _slots):
    """A function that starts an executor of the test's own with the settings given to it.

    For another user than root a container has but the tier `minimal`.
    """
    def begin(**settings):
        place = {"tier": tier, **_slots}
        if tier == "confined" and settings.get("user") is not None:
            place = {"tier": "minimal"}
        return stack.enter_context(running(**{**place, **settings}))

    with contextlib.ExitStack() as stack:
        yield begin


@pytest.fixture
def folder():
    """A folder with the program and one for slots, for every user."""
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name)
        path.chmod(0o755)
        shutil.copy(build_file("vivarium-executor"), path / "program")
        (path / "program").chmod(0o755)
        (path / "slots").mkdir()
        yield path


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
